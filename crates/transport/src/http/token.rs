//! The operator's token.

use std::fmt;

/// The secret that opens every route. Shows itself to nobody but who asks for it by name.
#[derive(Clone, PartialEq, Eq)]
pub struct OperatorToken(String);

/// A text that cannot be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an operator token has {} to {} characters, all of them visible ASCII; this one does not: make one with \
     `head -c 32 /dev/urandom | base64`",
    OperatorToken::SHORTEST,
    OperatorToken::LONGEST
)]
pub struct BadToken;

impl OperatorToken {
    /// Fewest characters: 128 random bits as hexadecimal digits have 32, and nobody should type half of that.
    pub const SHORTEST: usize = 16;
    /// Most characters: fits a header many times.
    pub const LONGEST: usize = 512;

    /// Checks a text.
    ///
    /// # Errors
    ///
    /// [`BadToken`] when it is too short or too long, or cannot stand in a header.
    pub fn new(text: &str) -> Result<Self, BadToken> {
        let length = (Self::SHORTEST..=Self::LONGEST).contains(&text.len());
        (length && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Self(text.to_owned())).ok_or(BadToken)
    }

    /// Makes a new one: 244 random bits from the system, as hexadecimal digits.
    pub fn generate() -> Self {
        Self(format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple()))
    }

    /// The secret itself.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for OperatorToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OperatorToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_random_and_do_not_show() {
        let (one, other) = (OperatorToken::generate(), OperatorToken::generate());
        assert_ne!(one, other);
        assert_eq!(OperatorToken::new(one.secret()), Ok(one.clone()));
        assert!(!format!("{one:?}").contains(&one.secret()[..8]));
        for bad in ["", "short", "with a space in the middle", "ümläüte-ümläüte", &"x".repeat(513)] {
            assert_eq!(OperatorToken::new(bad), Err(BadToken), "{bad}");
        }
    }
}

//! Who asks: the operator, by token or by the cookie that is made from it.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderValue, Method, header};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use taffrail_progress::StateKey;

use crate::http::{HttpConfig, OperatorToken, code::Code, problem::Problem};

/// How long a browser keeps the cookie, in seconds: 30 days.
const COOKIE_AGE_S: u64 = 30 * 24 * 60 * 60;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Principal {
    /// Nobody who said who they are, where nobody need.
    Nobody,
    /// Anybody, on a server without token.
    Anybody,
    /// The operator, with the token.
    Token,
    /// The operator's browser, with the cookie.
    Cookie,
}

impl Principal {
    /// Who acts, as run logs name them.
    pub(crate) const fn actor(self) -> &'static str {
        match self {
            Principal::Nobody | Principal::Anybody => "http:anybody",
            Principal::Token => "http:operator",
            Principal::Cookie => "http:operator-browser",
        }
    }

    /// The word in the access log.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Principal::Nobody => "nobody",
            Principal::Anybody => "anybody",
            Principal::Token => "token",
            Principal::Cookie => "cookie",
        }
    }
}

/// What opens the door.
pub(crate) struct Keys {
    /// None: anybody may.
    token: Option<OperatorToken>,
    cookie_name: String,
    cookie_value: String,
    /// Browsers keep the cookie from unencrypted connections.
    secure: bool,
    /// The code of the printed URL, until somebody used it.
    code: Arc<Mutex<Option<String>>>,
}

impl Keys {
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let token = config.token.clone();
        let derived = |what: &str| token.as_ref().map(|token| derive(token, what)).unwrap_or_default();
        // The name is the token's, too: cookies are shared by all ports of a machine, tokens are not.
        let suffix: String = derived("cookie name").chars().take(8).collect();
        Self {
            cookie_name: format!("taffrail-{suffix}"),
            cookie_value: derived("cookie value"),
            token,
            secure: config.public_url.as_ref().is_some_and(|url| url.scheme_str() == Some("https")),
            code: Arc::default(),
        }
    }

    /// What seals the states of MCP requests: the same on every server with this token, also after a restart. `None` on
    /// one without a token.
    pub(crate) fn state_key(&self) -> Option<StateKey> {
        mac(self.token.as_ref()?, "MCP request states").map(StateKey::from_bytes)
    }

    /// Makes the code that signs a browser in once; a new one replaces the last. `None` where nobody need sign in.
    pub(crate) fn new_code(&self) -> Option<String> {
        self.token.as_ref()?;
        let code = uuid::Uuid::new_v4().simple().to_string();
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) = Some(code.clone());
        Some(code)
    }

    /// Uses a code up.
    pub(crate) fn take_code(&self, given: &str) -> bool {
        let mut code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = code.as_deref().is_some_and(|code| equal(code, given));
        if fits {
            *code = None;
        }
        fits
    }

    /// Whether a text is the token.
    pub(crate) fn is_token(&self, given: &str) -> bool {
        self.token.as_ref().is_some_and(|token| equal(token.secret(), given))
    }

    /// The `Set-Cookie` that signs a browser in.
    pub(crate) fn cookie(&self) -> Option<HeaderValue> {
        self.set_cookie(&self.cookie_value, COOKIE_AGE_S)
    }

    /// The `Set-Cookie` that signs it out.
    pub(crate) fn no_cookie(&self) -> Option<HeaderValue> {
        self.set_cookie("", 0)
    }

    fn set_cookie(&self, value: &str, age_s: u64) -> Option<HeaderValue> {
        let secure = if self.secure { "; Secure" } else { "" };
        let text = format!("{}={value}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}", self.cookie_name);
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Who asks, where somebody must.
    pub(super) fn principal(&self, method: &Method, headers: &HeaderMap) -> Result<Principal, Problem> {
        if self.token.is_none() {
            return Ok(Principal::Anybody);
        }
        if let Some(given) = headers.get(header::AUTHORIZATION) {
            let token = given.to_str().ok().and_then(|given| given.split_once(' '));
            return match token {
                Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && self.is_token(token.trim()) => {
                    Ok(Principal::Token)
                }
                _ => Err(unauthorized("the Authorization is not `Bearer` with this server's operator token")),
            };
        }
        if !self.has_cookie(headers) {
            return Err(unauthorized("there is no operator token"));
        }
        // A cookie comes with whatever page makes the browser send the request.
        if !method.is_safe() && !is_from_own_page(headers) {
            let detail = "a request with the cookie that changes something has to come from a page of this server, and \
                          say so with Origin or Sec-Fetch-Site: other programs send the operator token";
            return Err(Problem::new(Code::UnknownOrigin, detail));
        }
        Ok(Principal::Cookie)
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie_name && equal(value, &self.cookie_value))
    }
}

/// An `Origin`, where there is one, was checked before: it is ours or one that may ask.
fn is_from_own_page(headers: &HeaderMap) -> bool {
    match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
        Some(site) => site == b"same-origin" || (site != b"cross-site" && headers.contains_key(header::ORIGIN)),
        None => headers.contains_key(header::ORIGIN),
    }
}

fn unauthorized(what: &str) -> Problem {
    let detail = format!(
        "{what}: send it as `Authorization: Bearer …` (`taffrail serve` says where it is), or open the URL that \
         `taffrail serve` printed"
    );
    Problem::new(Code::Unauthorized, detail)
}

/// Compares in a time that says nothing about where two texts differ.
fn equal(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// A value that only who has the token can make, as hexadecimal digits.
fn derive(token: &OperatorToken, what: &str) -> String {
    mac(token, what).into_iter().flatten().map(|byte| format!("{byte:02x}")).collect()
}

/// `None` cannot be: HMAC takes keys of any length.
fn mac(token: &OperatorToken, what: &str) -> Option<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(token.secret().as_bytes()).ok()?;
    mac.update(b"taffrail operator, version 1: ");
    mac.update(what.as_bytes());
    Some(mac.finalize().into_bytes().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(token: &str) -> Keys {
        Keys::new(&HttpConfig { token: Some(OperatorToken::new(token).unwrap()), ..HttpConfig::default() })
    }

    fn asks(keys: &Keys, method: Method, headers: &[(&'static str, &str)]) -> Result<Principal, Code> {
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        keys.principal(&method, &headers.collect()).map_err(|problem| problem.code())
    }

    #[test]
    fn the_token_opens_and_nothing_like_it() {
        let keys = keys("0123456789abcdef0123456789abcdef");
        for yes in ["Bearer 0123456789abcdef0123456789abcdef", "bearer  0123456789abcdef0123456789abcdef "] {
            assert_eq!(asks(&keys, Method::POST, &[("authorization", yes)]), Ok(Principal::Token));
        }
        for no in [
            "Bearer 0123456789abcdef0123456789abcdeF",
            "Bearer ",
            "Bearer",
            "Basic 0123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcdef",
            "Bearer 0123456789abcdef0123456789abcdef0",
        ] {
            assert_eq!(asks(&keys, Method::GET, &[("authorization", no)]), Err(Code::Unauthorized), "{no}");
        }
        assert_eq!(asks(&keys, Method::GET, &[]), Err(Code::Unauthorized));
    }

    #[test]
    fn the_cookie_reads_from_anywhere_and_changes_things_from_our_pages_only() {
        let keys = keys("0123456789abcdef0123456789abcdef");
        let cookie = keys.cookie().unwrap().to_str().unwrap().to_owned();
        assert!(cookie.ends_with("; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict"), "{cookie}");
        let pair = format!("other=1; {}; more=2", cookie.split(';').next().unwrap());
        let with = |more: &[(&'static str, &'static str)], method| {
            let mut headers = vec![("cookie", pair.as_str())];
            headers.extend(more.iter().copied());
            asks(&keys, method, &headers)
        };
        assert_eq!(with(&[], Method::GET), Ok(Principal::Cookie));
        assert_eq!(with(&[], Method::POST), Err(Code::UnknownOrigin));
        assert_eq!(with(&[("sec-fetch-site", "same-origin")], Method::POST), Ok(Principal::Cookie));
        assert_eq!(with(&[("origin", "http://localhost:7433")], Method::POST), Ok(Principal::Cookie));
        for site in ["same-site", "none", "cross-site"] {
            assert_eq!(with(&[("sec-fetch-site", site)], Method::POST), Err(Code::UnknownOrigin), "{site}");
        }
        assert_eq!(asks(&keys, Method::GET, &[("cookie", "taffrail-00000000=x")]), Err(Code::Unauthorized));
    }

    #[test]
    fn every_process_with_the_token_takes_the_same_cookie_and_others_do_not() {
        let [one, other, stranger] = ["a".repeat(32), "a".repeat(32), "b".repeat(32)].map(|token| keys(&token));
        assert_eq!(one.cookie(), other.cookie());
        assert_ne!(one.cookie_name, stranger.cookie_name);
        assert_ne!(one.cookie_value, stranger.cookie_value);
        assert!(!one.cookie_value.contains(&"a".repeat(8)));
    }

    #[test]
    fn a_code_works_once() {
        let keys = keys(&"a".repeat(32));
        assert!(!keys.take_code(""));
        let code = keys.new_code().unwrap();
        assert!(!keys.take_code("x"));
        assert!(keys.take_code(&code));
        assert!(!keys.take_code(&code));
    }
}

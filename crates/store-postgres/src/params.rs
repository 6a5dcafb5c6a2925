//! Parameters of a connection string that are ours, or that the driver does not know.

/// What was taken out of a connection string.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// `schema`.
    pub(crate) schema: Option<String>,
    /// `sslrootcert`.
    pub(crate) root_certificates: Option<String>,
    /// `sslmode=verify-full` or `verify-ca`, which for us are `require`: that checks certificate and name.
    pub(crate) verify: bool,
}

impl Own {
    /// Whether the parameter was taken.
    fn take(&mut self, key: &str, value: &str) -> bool {
        match key {
            "schema" => self.schema = Some(value.into()),
            "sslrootcert" => self.root_certificates = Some(value.into()),
            "sslmode" if value == "verify-full" || value == "verify-ca" => self.verify = true,
            _ => return false,
        }
        true
    }
}

/// Takes our parameters out of a connection string, and gives what is left for the driver.
pub(crate) fn take_own(text: &str) -> Result<(String, Own), String> {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") { from_url(text) } else { from_pairs(text) }
}

fn from_url(url: &str) -> Result<(String, Own), String> {
    let mut own = Own::default();
    let Some((start, query)) = url.split_once('?') else { return Ok((url.into(), own)) };
    let mut rest = Vec::new();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !own.take(key, &decode(value)?) {
            rest.push(pair);
        }
    }
    let rest = if rest.is_empty() { start.into() } else { format!("{start}?{}", rest.join("&")) };
    Ok((rest, own))
}

/// Undoes percent-encoding.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16));
        bytes.push(match byte {
            b'%' => match (digit(rest.next()), digit(rest.next())) {
                // Two digits make at most 255.
                (Some(high), Some(low)) => (high * 16 + low) as u8,
                _ => return Err("a `%` in it is not followed by two hexadecimal digits".into()),
            },
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| "a parameter in it is not UTF-8".into())
}

/// `key = value` pairs; a value may be in single quotes, and a backslash takes the next character as it is.
fn from_pairs(text: &str) -> Result<(String, Own), String> {
    let (mut own, mut left, mut rest) = (Own::default(), String::new(), text);
    loop {
        rest = rest.trim_start();
        let Some((key, after)) = rest.split_once('=') else {
            // Nothing, or something that the driver shall complain about.
            left.push_str(rest);
            return Ok((left, own));
        };
        let (value, end) = value(after.trim_start())?;
        if !own.take(key.trim_end(), &value) {
            left.push_str(rest.get(..rest.len() - end.len()).unwrap_or_default());
            left.push(' ');
        }
        rest = end;
    }
}

/// The value at the beginning of `text`, and what follows it.
fn value(text: &str) -> Result<(String, &str), String> {
    let (quoted, body) = text.strip_prefix('\'').map_or((false, text), |body| (true, body));
    let mut value = String::new();
    let mut chars = body.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' if quoted => return Ok((value, chars.as_str())),
            c if !quoted && c.is_whitespace() => return Ok((value, body.get(at..).unwrap_or_default())),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    if quoted { Err("an unterminated quoted value is in it".into()) } else { Ok((value, "")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, left: &str, schema: Option<&str>, roots: Option<&str>, verify: bool) {
        let own = Own { schema: schema.map(Into::into), root_certificates: roots.map(Into::into), verify };
        assert_eq!(take_own(text), Ok((left.into(), own)), "{text}");
    }

    #[test]
    fn ours_are_taken_and_the_rest_stays() {
        let url = "postgres://me:p%40w@h/db";
        check(url, url, None, None, false);
        check(&format!("{url}?schema=a"), url, Some("a"), None, false);
        let all = format!("{url}?sslmode=verify-full&x=%26&sslrootcert=%2Fetc%2Fca.pem&schema=b");
        check(&all, &format!("{url}?x=%26"), Some("b"), Some("/etc/ca.pem"), true);
        check(&format!("{url}?sslmode=require"), &format!("{url}?sslmode=require"), None, None, false);
        check("host=h schema = 'a b' port=1", "host=h port=1 ", Some("a b"), None, false);
        check(r"password='it\'s schema=x' host=h", r"password='it\'s schema=x' host=h ", None, None, false);
        check(r"schema=a\ b sslmode=verify-ca", "", Some("a b"), None, true);
        check("nonsense", "nonsense", None, None, false);
    }

    #[test]
    fn half_of_something_is_refused() {
        for bad in
            ["postgres://h/db?schema=%4", "postgres://h/db?schema=%zz", "postgres://h/db?schema=%ff", "schema='a"]
        {
            assert!(take_own(bad).is_err(), "{bad}");
        }
    }
}

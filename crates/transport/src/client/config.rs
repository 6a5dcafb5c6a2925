//! Which server, under which name, with how much patience.

use std::{fmt, time::Duration};

use reqwest::{Url, header::HeaderValue};

use super::ClientError;

/// How a [`super::Client`] reaches its server.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The server: `http` or `https`, with a path where a proxy serves it below one.
    pub url: ServerUrl,
    /// The bearer token; a server that was started with `--no-auth` needs none.
    pub token: Option<Token>,
    /// How long a connection may take to be made. Default 10 s.
    pub connect_timeout: Duration,
    /// How long an answer may take, beside the time that the server was asked to wait. Default 30 s: a store that
    /// fails is waited for by the server, too.
    pub answer_timeout: Duration,
    /// What this program calls itself in the `User-Agent` header.
    pub user_agent: String,
    /// How much patience followers have.
    pub follow: FollowConfig,
    /// How long is waited before something is tried again.
    pub retry: RetryConfig,
}

impl ClientConfig {
    /// The defaults, for a server.
    pub fn new(url: ServerUrl, token: Option<Token>) -> Self {
        Self {
            url,
            token,
            connect_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(30),
            user_agent: concat!("taffrail/", env!("CARGO_PKG_VERSION")).to_owned(),
            follow: FollowConfig::default(),
            retry: RetryConfig::default(),
        }
    }
}

/// How much patience [`super::Follow`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowConfig {
    /// How long the headers of a stream may take. Default 10 s.
    pub header_time: Duration,
    /// How long a stream may take to bring its first byte. Default 5 s: a server sends its `retry:` at once, and what
    /// does not let that through lets nothing through in time.
    pub first_byte_time: Duration,
    /// How long a stream may be silent before its connection is taken for dead. Default 45 s: servers say something
    /// every 15 s.
    pub silence: Duration,
    /// How long the server is asked to hold a poll. Default 20 s, at most 30 s: proxies commonly allow 60 s.
    pub poll_wait: Duration,
    /// How long is polled before a stream is tried again; twice as long each time, up to 10 min. Default 30 s.
    pub poll_for: Duration,
}

impl Default for FollowConfig {
    fn default() -> Self {
        Self {
            header_time: Duration::from_secs(10),
            first_byte_time: Duration::from_secs(5),
            silence: Duration::from_secs(45),
            poll_wait: Duration::from_secs(20),
            poll_for: Duration::from_secs(30),
        }
    }
}

/// How long followers and producers wait before they try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryConfig {
    /// The first wait after a failure is a random time up to this; it doubles with each failure. Default 500 ms, because
    /// most failures are a server that restarts. What the server asks for (`retry:`, `Retry-After`) is waited before.
    pub first: Duration,
    /// The longest of these waits. Default 30 s.
    pub longest: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self { first: Duration::from_millis(500), longest: Duration::from_secs(30) }
    }
}

/// A server's checked base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl(Url);

impl ServerUrl {
    /// Checks a URL. A path is kept: `https://ci.example/taffrail` asks below that.
    ///
    /// # Errors
    ///
    /// [`ClientError::Url`] when it is no URL, not of `http` or `https`, or has parts that a base cannot have.
    pub fn new(text: &str) -> Result<Self, ClientError> {
        let wrong = |why: &str| ClientError::Url { given: without_secrets(text), why: why.to_owned() };
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        if !(lower.starts_with("http://") || lower.starts_with("https://")) {
            return Err(wrong("it begins with neither http:// nor https://"));
        }
        let mut url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("leave out what follows `?` or `#`: what is wanted is where the server is"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("leave out the user and the password: what opens the door is a token"));
        }
        // A path that does not end in a slash would lose its last part when something is joined to it.
        let path = format!("{}/", url.path().trim_end_matches('/'));
        url.set_path(&path);
        Ok(Self(url))
    }

    /// The URL of something below the base.
    pub(super) fn join(&self, segments: &[&str]) -> Url {
        let mut url = self.0.clone();
        // Fails only for URLs that cannot be a base, which those of http are not.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Its text, without the slash at the end.
    pub fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an error may repeat of a URL: no query, and nothing before an `@`.
fn without_secrets(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        (None, Some((_, host))) => format!("…@{host}"),
        _ => text.to_owned(),
    }
}

/// A bearer token. Never shown: `Debug` hides it, and there is no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Checks a token; white space around it is dropped, for it often comes from a file.
    ///
    /// # Errors
    ///
    /// [`ClientError::Token`] when it is empty or cannot stand in a header.
    pub fn new(text: &str) -> Result<Self, ClientError> {
        let text = text.trim();
        match !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic()) {
            true => Ok(Self(text.to_owned())),
            false => Err(ClientError::Token),
        }
    }

    /// The value of the `Authorization` header (RFC 6750, section 2.1).
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_proxies_are_kept() {
        for (base, expected) in [
            ("http://127.0.0.1:7433", "http://127.0.0.1:7433/api/v1/runs"),
            ("http://127.0.0.1:7433/", "http://127.0.0.1:7433/api/v1/runs"),
            (" https://ci.example/taffrail\n", "https://ci.example/taffrail/api/v1/runs"),
            ("https://ci.example/a/b//", "https://ci.example/a/b/api/v1/runs"),
        ] {
            let url = ServerUrl::new(base).unwrap();
            assert_eq!(url.join(&["api", "v1", "runs"]).as_str(), expected);
            assert!(!url.as_str().ends_with('/'), "{url}");
        }
        let odd = ServerUrl::new("http://h").unwrap().join(&["api", "a/b?c"]);
        assert_eq!(odd.as_str(), "http://h/api/a%2Fb%3Fc");
    }

    #[test]
    fn a_wrong_url_is_told_without_its_secrets() {
        for (given, part) in [
            ("", "neither"),
            ("127.0.0.1:7433", "neither"),
            ("http://", "host"),
            ("http://h:x", "port"),
            ("localhost:7433", "neither"),
            ("ftp://h", "neither"),
            ("http://h/?code=hunter2", "leave out"),
            ("http://h/#hunter2", "leave out"),
            ("https://me:hunter2@h/x", "a token"),
            ("https://hunter2@h/x", "a token"),
            ("me:hunter2@h", "neither"),
        ] {
            let error = ServerUrl::new(given).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("hunter2"), "{given}: {error}");
        }
    }

    #[test]
    fn a_token_is_never_shown() {
        let token = Token::new(" hunter2\n").unwrap();
        let config = ClientConfig::new(ServerUrl::new("http://h").unwrap(), Some(token.clone()));
        assert!(!format!("{config:?} {:?}", token.header()).contains("hunter2"));
        assert_eq!(token.header().unwrap().as_bytes(), b"Bearer hunter2");
        for wrong in ["", " ", "a b", "a\r\nb", "é"] {
            assert!(Token::new(wrong).is_err(), "{wrong:?}");
        }
    }
}

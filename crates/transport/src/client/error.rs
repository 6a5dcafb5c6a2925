//! What can go wrong between here and a server.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use taffrail_mcp_core::Seq;

/// Why a request to a server came to nothing, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The server's URL cannot be one.
    #[error("{given:?} is not the URL of a server ({why}): give one such as http://127.0.0.1:7433")]
    Url {
        /// What was given, without secrets.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// The token cannot be one.
    #[error("the token is empty or has characters that no token has: give the operator token of the server")]
    Token,
    /// The client cannot be set up on this machine.
    #[error("connections to {server} cannot be set up here ({why})")]
    Setup {
        /// The server.
        server: String,
        /// What failed.
        why: String,
    },
    /// No connection came about, or it broke.
    #[error("cannot reach {server}: see that it runs there and that the address is right")]
    Unreachable {
        /// The server.
        server: String,
        /// What failed.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// No answer in time.
    #[error("{server} has not answered within {} s: it, or what is between, is overloaded or stuck", waited.as_secs())]
    TimedOut {
        /// The server.
        server: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The server refused.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// Something answers that is no taffrail server.
    #[error(
        "{server} answers with {status} and {content_type}, as no taffrail server does: see that the address is right, the path too, and look at the proxy if one is between"
    )]
    NotTaffrail {
        /// The server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The type of the body; `nothing` when there is none.
        content_type: String,
        /// How long it asked to wait.
        retry_after: Option<Duration>,
    },
    /// The server is elsewhere. Not followed, because the token is for the server that was named.
    #[error("{server} sends us on to {to}: give that address instead, if you trust it")]
    Redirected {
        /// The server.
        server: String,
        /// Where to.
        to: String,
    },
    /// What the server said cannot be read.
    #[error("{server} says what this version cannot read ({what}): use the same version on both sides")]
    Malformed {
        /// The server.
        server: String,
        /// What, and why.
        what: String,
    },
    /// Records are missing from the server's stream, twice at the same place.
    #[error(
        "record {expected} is missing: the server sends {found} after its predecessor; read the log from there again"
    )]
    Missing {
        /// What comes next.
        expected: Seq,
        /// What came.
        found: Seq,
    },
    /// No event stream comes through, and a thread can be followed in no other way.
    #[error(
        "no event stream of {server} comes through: something between buffers or blocks it; follow a run instead of the thread, or see to the proxy"
    )]
    Blocked {
        /// The server.
        server: String,
    },
}

/// A refusal by the server: an RFC 9457 problem.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{detail} ({status} {code}){}", advice(code))]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// What programs tell problems apart by; kebab-case.
    pub code: String,
    /// What is wrong, and what to do, in the server's words.
    pub detail: String,
    /// How long it asked to wait.
    pub retry_after: Option<Duration>,
    /// All members of the problem, those of this kind among them: `expected`, `head`, `line`, …
    pub members: Map<String, Value>,
}

impl Refusal {
    /// A member that is a number.
    pub fn number(&self, member: &str) -> Option<u64> {
        self.members.get(member)?.as_u64()
    }

    /// A member that is a text.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.members.get(member)?.as_str()
    }
}

/// What the one who runs a client can do, where the server cannot know.
fn advice(code: &str) -> &'static str {
    match code {
        "unauthorized" => ": give the server's operator token",
        "unknown-host" => ": call the server by a name that it answers to",
        _ => "",
    }
}

impl ClientError {
    /// The refusal, if it is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether the same request may succeed later without anybody changing it: nobody is there, something is
    /// overloaded or starting, a connection broke.
    pub fn is_transient(&self) -> bool {
        // Too many requests, too early, a request that took too long, and what proxies and servers say while the
        // server is away.
        let passing = |status: u16| matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=530);
        match self {
            Self::Unreachable { .. } | Self::TimedOut { .. } => true,
            Self::Refused(refusal) => passing(refusal.status),
            Self::NotTaffrail { status, .. } => passing(*status),
            _ => false,
        }
    }

    /// Whether what was asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.status == 404)
    }

    /// How long the server asked to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after,
            Self::NotTaffrail { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        let refusal = |status, code: &str, detail: &str| {
            let (code, detail) = (code.to_owned(), detail.to_owned());
            ClientError::Refused(Box::new(Refusal { status, code, detail, retry_after: None, members: Map::new() }))
        };
        let unauthorized = refusal(401, "unauthorized", "no token was given");
        assert_eq!(unauthorized.to_string(), "no token was given (401 unauthorized): give the server's operator token");
        assert!(!unauthorized.is_transient() && !unauthorized.is_not_found());
        let missing = refusal(404, "no-run", "no run x");
        assert_eq!(missing.to_string(), "no run x (404 no-run)");
        assert!(missing.is_not_found());
        for (status, transient) in [(400, false), (409, false), (413, false), (429, true), (500, true), (503, true)] {
            assert_eq!(refusal(status, "x", "x").is_transient(), transient, "{status}");
        }
    }
}

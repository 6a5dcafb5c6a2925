//! Log levels: what a client may ask for, and which one a record has.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

/// An MCP log level, least severe first. Our own because rmcp's is not ordered and is marked deprecated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names of RFC 5424")]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Level {
    /// All of them, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    /// Reads a level as a client sends it.
    pub(crate) fn from_value(value: &Value) -> Option<Self> {
        let name = value.as_str()?;
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }

    /// The level of a record, by its type; types that are not known are as important as lifecycle.
    pub fn of_record(json: &str) -> Self {
        /// The two fields that decide.
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(rename = "type", borrow)]
            kind: Cow<'a, str>,
            #[serde(borrow, default)]
            status: Option<Cow<'a, str>>,
        }
        let Ok(head) = serde_json::from_str::<Head<'_>>(json) else {
            return Self::Info;
        };
        match (&*head.kind, head.status.as_deref()) {
            ("log" | "message", _) => Self::Debug,
            ("clipped" | "gap" | "note", _) => Self::Warning,
            ("run-finished", Some("halt")) => Self::Error,
            _ => Self::Info,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_the_type() {
        let check = |json: &str, expected| assert_eq!(Level::of_record(json), expected, "{json}");
        check(r#"{"seq":1,"type":"run-start"}"#, Level::Info);
        check(r#"{"type":"log","text":"\"type\":\"note\""}"#, Level::Debug);
        check(r#"{"type":"message"}"#, Level::Debug);
        check(r#"{"type":"progress"}"#, Level::Info);
        check(r#"{"type":"clipped"}"#, Level::Warning);
        check(r#"{"type":"gap"}"#, Level::Warning);
        check(r#"{"type":"note","level":"info"}"#, Level::Warning);
        check(r#"{"type":"run-finished","status":"done"}"#, Level::Info);
        check(r#"{"type":"run-finished","status":"halt"}"#, Level::Error);
        check(r#"{"type":"something-new","status":5}"#, Level::Info);
    }

    #[test]
    fn names_are_read_back_and_ordered() {
        for level in Level::ALL {
            assert_eq!(Level::from_value(&Value::from(level.as_str())), Some(level));
        }
        assert!(Level::ALL.is_sorted());
        assert_eq!(Level::from_value(&Value::from("loud")), None);
        assert_eq!(Level::from_value(&Value::from(3)), None);
    }
}

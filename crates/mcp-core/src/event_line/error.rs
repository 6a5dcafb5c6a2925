//! What can be wrong with a line.

/// A line that is not an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct EventLineError {
    /// Where that shows: the byte of the line, from 1.
    pub column: usize,
    /// What is wrong.
    pub fault: EventLineFault,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventLineFault {
    /// Not UTF-8, which JSON must be.
    #[error("not UTF-8: send bytes that are no text as base64, in a field `b64`")]
    NotUtf8,
    /// Not an object.
    #[error("not a JSON object: send one object a line")]
    NotObject,
    /// Not JSON.
    #[error("not JSON: {what}")]
    Syntax {
        /// What is wrong.
        what: &'static str,
    },
    /// Something follows the object.
    #[error("something follows the object: send one object a line")]
    More,
    /// A field is there twice, and readers would differ in which of the two they take.
    #[error("the field {field:?} is there twice")]
    Twice {
        /// Its name, shortened.
        field: String,
    },
    /// There is no `type`.
    #[error("the field \"type\" is missing")]
    NoType,
    /// The `type` cannot be one.
    #[error("a type has 1 to 128 letters, digits, '.', '_', '-', ':' and '/'")]
    BadType,
    /// The type is one of what readers are told beside records.
    #[error("{kind:?} is told to readers and never stored: give the event another type")]
    ToldType {
        /// The type.
        kind: String,
    },
    /// A common field has a value that cannot be read.
    #[error("the field {field:?} {what}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What it must be.
        what: &'static str,
    },
    /// An event that a run's state depends on does not have the shape of its type.
    #[error("not a {kind}: {what}")]
    Shape {
        /// The type.
        kind: String,
        /// What is wrong.
        what: String,
    },
    /// Something else.
    #[error("{0}")]
    Record(String),
}

impl EventLineFault {
    /// At this offset.
    pub(super) fn at(self, offset: usize) -> EventLineError {
        EventLineError { column: offset + 1, fault: self }
    }
}

/// The error without its place, which is told by itself.
pub(super) fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

/// A name, not at any length.
pub(super) fn shown(name: &[u8]) -> String {
    const MOST: usize = 60;
    let name = String::from_utf8_lossy(name);
    let mut shown: String = name.chars().take(MOST).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown
}

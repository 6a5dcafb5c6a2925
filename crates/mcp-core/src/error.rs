//! What can be wrong with ids and records.

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// Empty, or longer than 128 bytes.
    #[error("an id has 1 to 128 characters, this one has {length}")]
    Length {
        /// Bytes given.
        length: usize,
    },
    /// A character that is not a letter, a digit, `.`, `_` or `-`, or a first one that is not a letter or digit.
    #[error("{id:?} is not an id: use letters, digits, '.', '_' and '-', beginning with a letter or digit")]
    Character {
        /// The text given.
        id: String,
    },
}

/// Why bytes are not a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Not a JSON object.
    #[error("not a JSON object")]
    Json(#[source] serde_json::Error),
    /// A common field is absent.
    #[error("field \"{field}\" is missing")]
    Missing {
        /// Its name.
        field: &'static str,
    },
    /// A common field has a value that cannot be read.
    #[error("field \"{field}\" is not valid")]
    Field {
        /// Its name.
        field: &'static str,
        /// What was wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

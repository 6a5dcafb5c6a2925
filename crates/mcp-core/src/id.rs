//! Ids of runs and threads.

use std::{borrow::Cow, fmt, marker::PhantomData, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::IdError;

/// What an [`Id`] names.
pub trait IdKind: Copy + Eq + std::hash::Hash + fmt::Debug + Send + Sync + 'static {
    /// For messages and schemas: `run`, `thread`.
    const NAME: &'static str;
}

/// Marks [`RunId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunKind;
impl IdKind for RunKind {
    const NAME: &'static str = "run";
}

/// Marks [`ThreadId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKind;
impl IdKind for ThreadKind {
    const NAME: &'static str = "thread";
}

/// Names one run.
pub type RunId = Id<RunKind>;
/// Names one log. A run belongs to one thread, by default its own, with the same id.
pub type ThreadId = Id<ThreadKind>;

/// A checked id: 1 to 128 ASCII letters, digits, `.`, `_`, `-`, beginning with a letter or digit.
///
/// So an id is safe as a file name, in a URL path and inside JSON without escaping, which the record encoder relies
/// on. A clone is one reference count.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id<K> {
    text: Arc<str>,
    kind: PhantomData<K>,
}

impl<K: IdKind> Id<K> {
    /// Longest id, in bytes: fits a file name with a suffix on every file system.
    pub const MAX: usize = 128;

    /// Checks a text.
    ///
    /// # Errors
    ///
    /// [`IdError`] when the length or a character is out of bounds.
    pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > Self::MAX {
            return Err(IdError::Length { length: text.len() });
        }
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let all_well = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if !(starts_well && all_well) {
            return Err(IdError::Character { id: text.chars().take(64).collect() });
        }
        Ok(Self { text: text.into(), kind: PhantomData })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<RunId> for ThreadId {
    /// The default thread of a run.
    fn from(run: RunId) -> Self {
        Self { text: run.text, kind: PhantomData }
    }
}

impl<K> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<K> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<K: IdKind> FromStr for Id<K> {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::new(text)
    }
}

impl<K> Serialize for Id<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de, K: IdKind> Deserialize<'de> for Id<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::new(text).map_err(serde::de::Error::custom)
    }
}

impl<K: IdKind> schemars::JsonSchema for Id<K> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}-id", K::NAME).into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_as_file_names() {
        for good in ["a", "0190-x", "A.b_c-9", &"x".repeat(128)] {
            assert_eq!(RunId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", ".hidden", "-x", "a/b", "a b", "é", "a\"", "a\n", &"x".repeat(129)] {
            assert!(RunId::new(bad).is_err(), "{bad:?}");
        }
    }
}

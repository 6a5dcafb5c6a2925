//! What a caller can choose.

use std::time::Duration;

/// How a [`crate::SqliteStore`] behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What an answered append survives. Default: [`Durability::Full`].
    pub durability: Durability,
    /// Most connections that read at once, at least 1; each is opened when it is first needed and costs up to 2 MiB.
    /// Default: 3.
    pub readers: usize,
    /// How long an append waits for writers in other processes before it fails with
    /// [`taffrail_relay::StoreError::Unavailable`]. Default: 10 s.
    pub busy_timeout: Duration,
    /// Largest size of the database file, in bytes, the write-ahead log (up to 64 MiB more) not counted. Appends
    /// beyond it fail with [`taffrail_relay::StoreError::Full`]; a trim makes room. Binds only appends through this
    /// value. Default: none.
    pub max_bytes: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self { durability: Durability::Full, readers: 3, busy_timeout: Duration::from_secs(10), max_bytes: None }
    }
}

/// What an answered append survives.
///
/// The store contract asks for [`Durability::Full`]; the others are for tests and throwaway stores. With all of them
/// the file stays consistent: a loss is of the last appends, whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A crash of the machine: one `fdatasync` a commit.
    #[default]
    Full,
    /// A crash of the process. A crash of the machine may lose the last seconds.
    Process,
}

impl Durability {
    /// The value of `PRAGMA synchronous`.
    pub(crate) const fn pragma(self) -> &'static str {
        match self {
            Durability::Full => "FULL",
            Durability::Process => "NORMAL",
        }
    }
}

//! What a caller can choose.

use std::{path::PathBuf, time::Duration};

/// How a [`crate::PostgresStore`] behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The schema that holds everything of this store. Letters, digits, `_` and `-`, at most 63 bytes. The parameter
    /// `schema` of the connection string has precedence. Default: `taffrail`.
    pub schema: String,
    /// Most connections that read at once, at least 1; each is opened when it is first needed. Two more, one that
    /// writes and one that hears of changes, are always open. Default: 4.
    pub readers: usize,
    /// How long one statement may take, on the server; the answer may take 2 s more, and then the connection is given
    /// up. Default: 30 s.
    pub statement_timeout: Duration,
    /// How long a read waits for a server that is away, until it fails. Appends fail at once: the relay tries them
    /// again. Default: 10 s.
    pub patience: Duration,
    /// Time between two looks for changes that no notification told of. Default: [`crate::POLL_EVERY`].
    pub poll: Duration,
    /// What an answered append survives. Default: [`Durability::Full`].
    pub durability: Durability,
    /// A file of certificates, in PEM form, that are trusted besides the platform's. The parameter `sslrootcert` of
    /// the connection string has precedence. Default: none.
    pub root_certificates: Option<PathBuf>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            schema: "taffrail".into(),
            readers: 4,
            statement_timeout: Duration::from_secs(30),
            patience: Duration::from_secs(10),
            poll: crate::POLL_EVERY,
            durability: Durability::Full,
            root_certificates: None,
        }
    }
}

/// What an answered append survives.
///
/// The store contract asks for [`Durability::Full`]; the other is for tests and throwaway stores. With both of them the
/// database stays consistent: a loss is of the last appends, whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A crash of the server's machine, and of the primary, where the server waits for a standby. The server's own
    /// setting of `synchronous_commit` holds, except `off`.
    #[default]
    Full,
    /// A crash of this process. A crash of the server may lose the last second.
    Process,
}

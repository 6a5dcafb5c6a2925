//! What goes wrong inside, and what that means to a caller.

use std::{io, path::Path, sync::Arc};

use rusqlite::{ErrorCode, ffi};
use taffrail_relay::StoreError;

/// A failure that does not know its file yet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// SQLite refused.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// What is stored cannot have been written by us.
    #[error("{0}")]
    Damaged(String),
    /// What was asked breaks a rule of the contract, or a limit of the format.
    #[error("{0}")]
    Refused(String),
}

impl Fault {
    /// The error that a caller sees. `doing` completes "could not …".
    pub(crate) fn on(self, path: &Path, doing: &str) -> StoreError {
        let owned = || path.to_path_buf();
        match self {
            Fault::Damaged(detail) => StoreError::Corrupt { path: owned(), detail },
            Fault::Refused(why) => unavailable(path, doing, io::Error::new(io::ErrorKind::InvalidInput, why)),
            Fault::Sql(error) => match kind(&error) {
                Kind::Full => StoreError::Full { path: owned() },
                Kind::ReadOnly => StoreError::ReadOnly { path: owned() },
                Kind::Corrupt => StoreError::Corrupt { path: owned(), detail: error.to_string() },
                Kind::Other => unavailable(path, doing, error),
            },
        }
    }
}

/// The error of a file operation of our own on `path`.
pub(crate) fn io_error(path: &Path, doing: &str, error: io::Error) -> StoreError {
    use io::ErrorKind as K;
    match error.kind() {
        K::StorageFull | K::QuotaExceeded => StoreError::Full { path: path.to_path_buf() },
        K::PermissionDenied | K::ReadOnlyFilesystem => StoreError::ReadOnly { path: path.to_path_buf() },
        _ => unavailable(path, doing, error),
    }
}

fn unavailable(path: &Path, doing: &str, source: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Unavailable { what: format!("could not {doing} {}", path.display()), source: Arc::new(source) }
}

enum Kind {
    Full,
    ReadOnly,
    Corrupt,
    Other,
}

fn kind(error: &rusqlite::Error) -> Kind {
    let code = match error {
        rusqlite::Error::SqliteFailure(code, _) | rusqlite::Error::SqlInputError { error: code, .. } => code,
        // A column of ours that holds another type or range than we ever write.
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..) => return Kind::Corrupt,
        _ => return Kind::Other,
    };
    match code.code {
        ErrorCode::DiskFull => Kind::Full,
        // The shared memory file could not grow; SQLite has no better word for a full disk there.
        ErrorCode::SystemIoFailure if code.extended_code == ffi::SQLITE_IOERR_SHMSIZE => Kind::Full,
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Kind::ReadOnly,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Kind::Corrupt,
        _ => Kind::Other,
    }
}

/// Whether another connection was in the way.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

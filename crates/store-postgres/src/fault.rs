//! What goes wrong inside, and what that means to a caller.

use std::{error::Error, fmt::Write, sync::Arc, time::Duration};

use taffrail_relay::StoreError;
use tokio_postgres::error::SqlState;

/// A failure that does not know its database yet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The server, or the connection to it.
    #[error("{}", words(.0))]
    Sql(#[from] tokio_postgres::Error),
    /// No server could be reached, or none of them takes writes; what each said.
    #[error("{0}")]
    Unreachable(String),
    /// No answer in time.
    #[error("no answer within {} s", .0.as_secs_f32())]
    Hung(Duration),
    /// What is stored cannot have been written by us.
    #[error("{0}")]
    Damaged(String),
    /// The schema is of a version that we do not know.
    #[error("its format is {found}")]
    Newer { schema: String, found: u32 },
    /// What was asked breaks a rule of the contract, or a limit of the format.
    #[error("{0}")]
    Refused(String),
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl Fault {
    /// The error that a caller sees. `doing` completes "could not …", followed by `place`.
    pub(crate) fn on(self, place: &str, doing: &str) -> StoreError {
        match self {
            Fault::Damaged(detail) => StoreError::Damaged { place: place.into(), detail },
            Fault::Newer { schema, found } => StoreError::NewerSchema {
                place: format!("schema {schema:?} of {place}"),
                found,
                known: crate::FORMAT_VERSION,
            },
            Fault::Closed => StoreError::Closed,
            Fault::Sql(error) if error.code() == Some(&SqlState::DISK_FULL) => StoreError::Full { path: place.into() },
            other => StoreError::Unavailable { what: format!("could not {doing} {place}"), source: Arc::new(other) },
        }
    }

    /// Whether a new connection may have more success, now or when the server is back.
    pub(crate) fn is_connection_lost(&self) -> bool {
        match self {
            Fault::Unreachable(_) => true,
            Fault::Sql(error) => match error.code() {
                // The driver's own errors: the socket, or something that nobody can go on after.
                None => true,
                Some(code) => {
                    LOST.contains(code) || code.code().starts_with("08") || *code == SqlState::FEATURE_NOT_SUPPORTED
                }
            },
            _ => false,
        }
    }

    /// Whether the same statement, again, is likely to succeed: it collided with others and was rolled back.
    pub(crate) fn is_collision(&self) -> bool {
        let Fault::Sql(error) = self else { return false };
        error.code().is_some_and(|code| COLLISIONS.contains(code))
    }

    /// Whether the server refused because of what this statement holds.
    pub(crate) fn is_about_content(&self) -> bool {
        let Fault::Sql(error) = self else { return false };
        // Bad data, broken constraints, limits of the program.
        error.code().is_some_and(|code| ["22", "23", "54"].iter().any(|class| code.code().starts_with(class)))
    }
}

/// The server ends the connection, or is not one to write to (any more); a pooler does not know our statements.
const LOST: [SqlState; 6] = [
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::DATABASE_DROPPED,
    SqlState::READ_ONLY_SQL_TRANSACTION,
    SqlState::INVALID_SQL_STATEMENT_NAME,
];

const COLLISIONS: [SqlState; 2] = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];

/// An error of the driver in words, with what to do about the usual ones.
pub(crate) fn words(error: &tokio_postgres::Error) -> String {
    let Some(db) = error.as_db_error() else {
        // The driver leaves what happened to the source.
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {cause}");
            source = cause.source();
        }
        return text;
    };
    let mut text = db.message().to_owned();
    for more in [db.detail(), db.hint(), advice(db.code())].into_iter().flatten() {
        let _ = write!(text, "; {more}");
    }
    text
}

fn advice(code: &SqlState) -> Option<&'static str> {
    Some(match code.code() {
        "28P01" | "28000" => "check user and password in the connection string, and pg_hba.conf on the server",
        "3D000" => "make the database with `createdb`, or correct its name",
        "42501" => "grant the role what docs/postgres.md lists",
        "53300" => "raise max_connections, or let each process have fewer readers",
        "42P01" | "3F000" | "42883" => "the schema was changed or removed while it was used",
        _ => return None,
    })
}

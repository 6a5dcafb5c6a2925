//! Which store a server works on.

use std::{path::PathBuf, str::FromStr, sync::Arc};

use anyhow::{Context as _, Result};
use taffrail_relay::{MemoryStore, Store};
use taffrail_runs::{Hosts, Layout};
use taffrail_store_postgres::PostgresStore;
use taffrail_store_sqlite::SqliteStore;

/// A store as it is named on the command line. Its `Debug` text may hold a password: show [`StoreChoice::kind`].
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum StoreChoice {
    /// The data directory's own.
    Own,
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    Postgres(String),
    /// Nothing is kept.
    Memory,
}

impl std::fmt::Debug for StoreChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind())
    }
}

impl FromStr for StoreChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => Ok(Self::Postgres(text.to_owned())),
            Some(("memory", "")) => Ok(Self::Memory),
            _ => Err("expected sqlite:PATH, postgres://USER:PASSWORD@HOST/DATABASE or memory:".to_owned()),
        }
    }
}

impl StoreChoice {
    /// What it is, without what it is called.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Own | Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
            Self::Memory => "memory",
        }
    }

    /// Opens it, and tells how processes that share it learn which of them are alive: those of one file by locks in the
    /// folder `live` beside it, whatever data directory each has; those of a database by the database.
    pub(crate) async fn open(&self, layout: &Layout) -> Result<(Arc<dyn Store>, Hosts)> {
        let sqlite = |path: PathBuf| -> Result<(Arc<dyn Store>, Hosts)> {
            let path = std::path::absolute(&path).with_context(|| format!("cannot use {}", path.display()))?;
            let store = SqliteStore::open(path.clone(), Default::default())?;
            // The file is there now: names for it that differ lead to one folder.
            let file = path.canonicalize().with_context(|| format!("cannot use {}", path.display()))?;
            Ok((Arc::new(store), Hosts::Files(file.with_file_name("live"))))
        };
        match self {
            Self::Own => sqlite(layout.store()),
            Self::Sqlite(path) => sqlite(path.clone()),
            Self::Memory => Ok((Arc::new(MemoryStore::new()), Hosts::Files(layout.live()))),
            Self::Postgres(url) => {
                let store = Arc::new(PostgresStore::open(url, Default::default()).await?);
                let hosts = Hosts::Leases(store.clone());
                Ok((store, hosts))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type() {
        let parse = |text: &str| text.parse::<StoreChoice>();
        assert_eq!(parse("sqlite:/a/b.db"), Ok(StoreChoice::Sqlite("/a/b.db".into())));
        assert_eq!(parse("memory:"), Ok(StoreChoice::Memory));
        let url = "postgres://me:secret@db/x";
        assert_eq!(parse(url), Ok(StoreChoice::Postgres(url.to_owned())));
        assert_eq!(format!("{:?}", parse(url).unwrap()), "postgres");
        for bad in ["", "sqlite:", "sqlite", "memory:x", "postgres:x", "mysql://x", "/a/b.db"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}

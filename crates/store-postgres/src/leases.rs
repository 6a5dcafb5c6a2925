//! Who is alive, as rows.

use taffrail_mcp_core::BoxFuture;
use taffrail_relay::{Leases, StoreError};

use crate::{
    PostgresStore,
    query::{Question, signed, text},
};

/// Names are kept as bytes: no encoding can refuse them.
fn names<const N: usize>(sql: &'static str, names: [String; N]) -> Question {
    let mut params: Vec<crate::pool::Param> = Vec::with_capacity(N);
    for name in names {
        params.push(Box::new(name.into_bytes()));
    }
    (sql, params)
}

const BEAT: &str = "
INSERT INTO {schema}.holders AS h (name, beats) VALUES ($1, 1)
ON CONFLICT (name) DO UPDATE SET beats = h.beats + 1 WHERE NOT h.revoked RETURNING h.beats";

const REVOKE: &str = "
UPDATE {schema}.holders h SET revoked = true WHERE h.name = $1 AND (h.revoked OR h.beats = $2) RETURNING h.beats";

impl Leases for PostgresStore {
    fn take(&self, key: String, holder: String) -> BoxFuture<'static, Result<bool, StoreError>> {
        let question = names("SELECT {schema}.take($1, $2)", [key, holder]);
        self.ask("take a lease in", question, |rows| {
            Ok(rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
        })
    }

    fn release(&self, key: String, holder: String) -> BoxFuture<'static, Result<(), StoreError>> {
        let question = names("DELETE FROM {schema}.leases WHERE key = $1 AND holder = $2", [key, holder]);
        self.ask("release a lease in", question, |_| Ok(()))
    }

    fn holder(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        let question = names("SELECT holder FROM {schema}.leases WHERE key = $1", [key]);
        self.ask("read", question, |rows| rows.first().map(text).transpose())
    }

    fn beat(&self, holder: String) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.ask("say that a process is alive to", names(BEAT, [holder]), |rows| Ok(!rows.is_empty()))
    }

    fn holders(&self) -> BoxFuture<'static, Result<Vec<(String, u64)>, StoreError>> {
        let question = names("SELECT name, beats FROM {schema}.holders WHERE NOT revoked ORDER BY name", []);
        self.ask("read", question, |rows| {
            rows.iter().map(|row| Ok((text(row)?, row.try_get::<_, i64>(1)?.unsigned_abs()))).collect()
        })
    }

    fn revoke(&self, holder: String, beats: u64) -> BoxFuture<'static, Result<bool, StoreError>> {
        let (sql, mut params) = names(REVOKE, [holder]);
        params.push(Box::new(signed(beats)));
        self.ask("revoke a holder in", (sql, params), |rows| Ok(!rows.is_empty()))
    }

    fn leave(&self, holder: String) -> BoxFuture<'static, Result<(), StoreError>> {
        self.ask("leave", names("SELECT {schema}.leave($1)", [holder]), |_| Ok(()))
    }
}

//! Format of the schema, and how one comes to be.

use crate::{conn::Conn, fault::Fault, target::Target};

/// Newest format that this program knows, kept in the table `taffrail_format`.
///
/// - 1: the first.
pub const FORMAT_VERSION: u32 = 1;

/// The step to each version from the one before.
const MIGRATIONS: [&str; FORMAT_VERSION as usize] = [include_str!("schema/1.sql")];

/// First half of the advisory lock under which a schema is made or changed: "tfrl". The second is its name's hash.
const LOCK: i32 = i32::from_be_bytes(*b"tfrm");

/// Whether there is a table of versions, and how much else there is.
const LOOK: &str = "
SELECT count(*) FILTER (WHERE c.relname = 'taffrail_format') > 0, count(*)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1";

const HAS_SCHEMA: &str = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1";

/// Makes the schema when there is none, checks that it is ours, and brings it to [`FORMAT_VERSION`].
///
/// Any number of processes may do so at once. A schema that is not ours is left as it is. A role that may not make
/// anything can do this when there is nothing to make.
pub(crate) async fn prepare(conn: &mut Conn, target: &Target) -> Result<(), Fault> {
    if look(conn, target).await? == FORMAT_VERSION {
        return Ok(());
    }
    conn.batch("BEGIN").await?;
    let done = bring_up(conn, target).await;
    conn.batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    done
}

async fn bring_up(conn: &mut Conn, target: &Target) -> Result<(), Fault> {
    conn.query("SELECT pg_advisory_xact_lock($1, hashtext($2))", &[&LOCK, &target.schema]).await?;
    // Another process may have been faster.
    let version = look(conn, target).await?;
    if version == 0 && count(conn, HAS_SCHEMA, target).await? == 0 {
        conn.batch("CREATE SCHEMA {schema}").await?;
    }
    for step in MIGRATIONS.iter().skip(version as usize) {
        conn.batch(step).await?;
    }
    Ok(())
}

async fn count(conn: &mut Conn, sql: &'static str, target: &Target) -> Result<i64, Fault> {
    let rows = conn.query(sql, &[&target.schema]).await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?.unwrap_or(0))
}

/// The format of the schema; 0 when it is empty or not there.
async fn look(conn: &mut Conn, target: &Target) -> Result<u32, Fault> {
    let rows = conn.query(LOOK, &[&target.schema]).await?;
    let (ours, objects) = match rows.first() {
        Some(row) => (row.try_get(0)?, row.try_get::<_, i64>(1)?),
        None => (false, 0),
    };
    if !ours {
        let other = || format!("schema {:?} holds tables of another program", target.schema);
        return if objects == 0 { Ok(0) } else { Err(Fault::Damaged(other())) };
    }
    let rows = conn.query("SELECT version FROM {schema}.taffrail_format", &[]).await?;
    let version = match rows.as_slice() {
        [row] => row.try_get::<_, i32>(0)?,
        _ => 0,
    };
    match u32::try_from(version) {
        Ok(version @ 1..=FORMAT_VERSION) => Ok(version),
        Ok(found) if found > FORMAT_VERSION => Err(Fault::Newer { schema: target.schema.clone(), found }),
        _ => Err(Fault::Damaged(format!("table taffrail_format of schema {:?} tells no version", target.schema))),
    }
}

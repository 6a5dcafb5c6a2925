//! What the writer does inside a transaction.

use rusqlite::{Connection, OptionalExtension, params};
use taffrail_mcp_core::{RunId, Seq, ThreadId};
use taffrail_relay::{Appended, Trimmed};

use crate::{
    fault::Fault,
    prepare::{BlockRow, Prepared, RunRow},
    schema::{SEQ_BITS, SEQ_MAX, THREAD_MAX},
};

/// Most stored bytes that one step of a trim removes: SQLite walks through every page that it frees, and appends wait
/// meanwhile.
const TRIM_STEP_BYTES: u64 = 16 << 20;

/// The key of a block.
pub(crate) const fn block_id(thread: i64, first: u64) -> i64 {
    // Fits: `first` was checked against SEQ_MAX, or is cut to it for a search.
    thread << SEQ_BITS | (if first > SEQ_MAX { SEQ_MAX } else { first }) as i64
}

/// The first position in the key of a block.
pub(crate) const fn block_first(id: i64) -> u64 {
    id as u64 & SEQ_MAX
}

/// Does all of an append, or nothing of it.
pub(crate) fn append(conn: &Connection, append: &Prepared) -> Result<Appended, Fault> {
    if let Some(claim) = &append.claim
        && let Some(value) = claimed(conn, &claim.key)?
    {
        return Ok(Appended::Claimed { value });
    }
    let mut find = conn.prepare_cached("SELECT no, head FROM threads WHERE name = ?")?;
    let found = find.query_row([append.thread.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
    let found: Option<(i64, u64)> = found.optional()?;
    let head = Seq(found.map_or(0, |(_, head)| head));
    if head != append.expected {
        return Ok(Appended::Conflict { head });
    }
    if let Some(last) = append.rows.last() {
        let raw: u64 = append.rows.iter().map(|row| row.raw).sum();
        let stored: u64 = append.rows.iter().map(|row| row.packed.bytes().len() as u64).sum();
        let no = match found {
            Some((no, _)) => {
                conn.prepare_cached(
                    "UPDATE threads SET head = ?2, bytes = bytes + ?3, stored = stored + ?4, updated = ?5 WHERE no = ?1",
                )?
                .execute(params![no, append.head.0, raw, stored, last.ts])?;
                no
            }
            None => conn
                .prepare_cached(
                    "INSERT INTO threads (name, head, first, bytes, stored, updated) VALUES (?1, ?2, 1, ?3, ?4, ?5)",
                )?
                .insert(params![append.thread.as_str(), append.head.0, raw, stored, last.ts])?,
        };
        if no > THREAD_MAX {
            return Err(Fault::Refused("the store has no number left for a new thread".into()));
        }
        append.rows.iter().try_for_each(|row| insert(conn, no, row))?;
    }
    append.runs.iter().try_for_each(|run| replace(conn, run))?;
    if let Some(claim) = &append.claim {
        conn.prepare_cached("INSERT INTO claims (key, value, run) VALUES (?1, ?2, ?3)")?.execute(params![
            claim.key,
            claim.value,
            append.claimant.as_ref().map(RunId::as_str)
        ])?;
    }
    Ok(Appended::Stored)
}

/// The value of a claim.
pub(crate) fn claimed(conn: &Connection, key: &str) -> Result<Option<String>, Fault> {
    let mut find = conn.prepare_cached("SELECT value FROM claims WHERE key = ?")?;
    Ok(find.query_row([key], |row| row.get(0)).optional()?)
}

fn insert(conn: &Connection, thread: i64, row: &BlockRow) -> Result<(), Fault> {
    conn.prepare_cached(
        "INSERT INTO blocks (id, count, ts, run, codec, raw, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        block_id(thread, row.first),
        row.count,
        row.ts,
        row.run.as_ref().map(RunId::as_str),
        row.packed.codec(),
        row.raw,
        row.packed.bytes(),
    ])?;
    Ok(())
}

/// Replaces the state of a run. The usual case, a status that stays, touches no index.
fn replace(conn: &Connection, row: &RunRow) -> Result<(), Fault> {
    let same = conn.prepare_cached("UPDATE runs SET fold = ?3 WHERE run = ?1 AND status = ?2")?.execute(params![
        row.run.as_str(),
        row.status,
        row.fold
    ])?;
    if same == 0 {
        conn.prepare_cached(
            "INSERT INTO runs (run, thread, status, fold) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (run) DO UPDATE SET status = excluded.status, fold = excluded.fold",
        )?
        .execute(params![row.run.as_str(), row.thread.as_str(), row.status, row.fold])?;
    }
    Ok(())
}

/// Removes some blocks from the front of a thread, none with a record after `through`. Tells what it removed and
/// whether there is nothing more to do.
pub(crate) fn trim(conn: &Connection, thread: &ThreadId, through: Seq) -> Result<(Trimmed, bool), Fault> {
    let mut removed = Trimmed::default();
    let no = conn
        .prepare_cached("SELECT no FROM threads WHERE name = ?")?
        .query_row([thread.as_str()], |row| row.get::<_, i64>(0));
    let Some(no) = no.optional()? else { return Ok((removed, true)) };
    let (mut last_id, mut first_kept, mut stored, mut done) = (None, 0, 0, true);
    {
        let mut blocks = conn.prepare_cached(
            "SELECT id, count, raw, length(bytes) FROM blocks WHERE id > ?1 AND id <= ?2 ORDER BY id",
        )?;
        let mut rows = blocks.query(params![block_id(no, 0), block_id(no, through.0)])?;
        while let Some(row) = rows.next()? {
            let (id, count): (i64, u64) = (row.get(0)?, row.get(1)?);
            let next = block_first(id).saturating_add(count);
            if next > through.0.saturating_add(1) {
                break;
            }
            if stored > TRIM_STEP_BYTES {
                done = false;
                break;
            }
            (last_id, first_kept) = (Some(id), next);
            removed.records += count;
            removed.bytes += row.get::<_, u64>(2)?;
            stored += row.get::<_, u64>(3)?;
        }
    }
    if let Some(last_id) = last_id {
        conn.prepare_cached("DELETE FROM blocks WHERE id > ?1 AND id <= ?2")?
            .execute(params![block_id(no, 0), last_id])?;
        conn.prepare_cached(
            "UPDATE threads SET first = ?2, bytes = bytes - ?3, stored = stored - ?4,
             trimmed_records = trimmed_records + ?5, trimmed_bytes = trimmed_bytes + ?3 WHERE no = ?1",
        )?
        .execute(params![no, first_kept, removed.bytes, stored, removed.records])?;
    }
    Ok((removed, done))
}

/// Removes a run from the index, and its claims.
pub(crate) fn forget(conn: &Connection, run: &RunId) -> Result<(), Fault> {
    conn.prepare_cached("DELETE FROM runs WHERE run = ?")?.execute([run.as_str()])?;
    conn.prepare_cached("DELETE FROM claims WHERE run = ?")?.execute([run.as_str()])?;
    Ok(())
}

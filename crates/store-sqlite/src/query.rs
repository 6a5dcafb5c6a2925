//! What readers ask.

use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use taffrail_mcp_core::{RunFold, RunId, Seq, ThreadId, Timestamp};
use taffrail_relay::{Block, Extent, ListRuns, ReadBlocks, ThreadUsage, Trimmed};

use crate::{
    apply::block_first,
    codec::{Lines, unpack},
    fault::Fault,
    schema::{SEQ_BITS, SEQ_MAX},
};

/// Runs on a page when the query does not say.
const DEFAULT_RUNS: usize = 100;

/// Reads blocks. One statement, so one consistent view.
pub(crate) fn read(conn: &Connection, query: &ReadBlocks) -> Result<Vec<Block>, Fault> {
    let mut blocks = Vec::new();
    let wanted = query.after.next().0;
    if wanted > query.until.0 || wanted > SEQ_MAX {
        return Ok(blocks);
    }
    let of_thread = query.run.as_ref().map(|run| run.as_str() == query.thread.as_str());
    let sql = statement(of_thread, query.backwards);
    let mut statement = conn.prepare_cached(&sql)?;
    let (thread, until) = (query.thread.as_str(), query.until.0.min(SEQ_MAX));
    let mut rows = match (&query.run, of_thread) {
        (Some(run), Some(false)) => statement.query(params![thread, wanted, until, run.as_str()])?,
        _ => statement.query(params![thread, wanted, until])?,
    };
    let mut size = 0;
    while let Some(row) = rows.next()? {
        let first = Seq(block_first(row.get(0)?));
        let count: u64 = row.get(1)?;
        if first.plus(count).0 <= wanted {
            // The search begins at the last block that starts at or before the first record wanted.
            if query.backwards {
                break;
            }
            continue;
        }
        let raw: u64 = row.get(5)?;
        let fits = size + raw <= query.max_bytes as u64;
        if !blocks.is_empty() && query.backwards && !fits {
            break;
        }
        // Read from the end, a block's last lines are the first that are wanted.
        let (skip, max_bytes) = match query.backwards {
            true => (0, usize::MAX),
            false => (
                wanted.saturating_sub(first.0),
                query.max_bytes.saturating_sub(usize::try_from(size).unwrap_or(usize::MAX)),
            ),
        };
        let (block, to_end) = block(row, query, (first, count, raw), (skip, max_bytes), blocks.last())?;
        size += block.bytes.len() as u64;
        blocks.push(block);
        if !to_end || size >= query.max_bytes as u64 {
            break;
        }
    }
    if query.backwards {
        blocks.reverse();
    }
    Ok(blocks)
}

/// `of_thread`: whether the run to look for is named as the thread; `None` for all runs.
fn statement(of_thread: Option<bool>, backwards: bool) -> String {
    let (inner, outer) = match of_thread {
        None => ("", ""),
        Some(true) => (" AND f.run IS NULL", " AND b.run IS NULL"),
        Some(false) => (" AND f.run = ?4", " AND b.run = ?4"),
    };
    let order = if backwards { " DESC" } else { "" };
    format!(
        "SELECT b.id, b.count, b.ts, b.run, b.codec, b.raw, b.bytes FROM threads t CROSS JOIN blocks b
         WHERE t.name = ?1 AND b.id <= (t.no << {SEQ_BITS}) + ?3{outer} AND b.id >= coalesce(
             (SELECT f.id FROM blocks f WHERE f.id > t.no << {SEQ_BITS} AND f.id <= (t.no << {SEQ_BITS}) + ?2{inner}
              ORDER BY f.id DESC LIMIT 1),
             (t.no << {SEQ_BITS}) + ?2)
         ORDER BY b.id{order}"
    )
}

/// The wanted part of one block, and whether nothing of the block follows.
fn block(
    row: &Row<'_>,
    query: &ReadBlocks,
    (first, count, raw): (Seq, u64, u64),
    (skip, max_bytes): (u64, usize),
    before: Option<&Block>,
) -> Result<(Block, bool), Fault> {
    let damaged = |what: String| Fault::Damaged(format!("record {first} of thread {}: {what}", query.thread));
    let stored = row.get_ref(6)?.as_blob().map_err(|e| damaged(e.to_string()))?;
    let Lines { skipped, bytes, to_end } = unpack(row.get(4)?, raw, stored, skip, max_bytes).map_err(damaged)?;
    let lines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
    let left = count.checked_sub(skipped).filter(|left| if to_end { lines == *left } else { lines < *left });
    if left.is_none() || bytes.last() != Some(&b'\n') || (skipped == 0 && to_end && bytes.len() as u64 != raw) {
        return Err(damaged(format!("{lines} lines in {} bytes where {count} in {raw} were expected", bytes.len())));
    }
    let name = row.get_ref(3)?.as_str_or_null().map_err(|e| damaged(e.to_string()))?;
    let name = name.unwrap_or(query.thread.as_str());
    let run = match before {
        Some(before) if before.run.as_str() == name => before.run.clone(),
        _ => RunId::new(name).map_err(|e| damaged(e.to_string()))?,
    };
    let ts = Timestamp::from_micros(row.get(2)?);
    Ok((Block { run, first: first.plus(skipped), count: lines, ts, bytes }, to_end))
}

/// How far a thread goes.
pub(crate) fn extent(conn: &Connection, thread: &ThreadId) -> Result<Extent, Fault> {
    let mut find = conn.prepare_cached("SELECT first, head FROM threads WHERE name = ?")?;
    let extent = find
        .query_row([thread.as_str()], |row| Ok(Extent { first: Seq(row.get(0)?), head: Seq(row.get(1)?) }))
        .optional()?;
    Ok(extent.unwrap_or_default())
}

/// The state of a run.
pub(crate) fn run(conn: &Connection, run: &RunId) -> Result<Option<RunFold>, Fault> {
    let mut find = conn.prepare_cached("SELECT fold FROM runs WHERE run = ?")?;
    let json: Option<String> = find.query_row([run.as_str()], |row| row.get(0)).optional()?;
    json.map(|json| fold(&json)).transpose()
}

fn fold(json: &str) -> Result<RunFold, Fault> {
    serde_json::from_str(json).map_err(|e| Fault::Damaged(format!("the state of a run cannot be read: {e}")))
}

/// Runs, those that began last first. A cursor that is not in the index (any more) gives an empty page.
pub(crate) fn runs(conn: &Connection, query: &ListRuns) -> Result<Vec<RunFold>, Fault> {
    let before = match &query.before {
        None => Some(i64::MAX),
        Some(run) => conn
            .prepare_cached("SELECT no FROM runs WHERE run = ?")?
            .query_row([run.as_str()], |row| row.get(0))
            .optional()?,
    };
    let Some(before) = before else { return Ok(Vec::new()) };
    let limit = if query.limit == 0 { DEFAULT_RUNS } else { query.limit };
    // SQLite takes a signed number.
    let limit_sql = i64::try_from(limit).unwrap_or(i64::MAX);
    let thread = query.thread.as_ref().map(ThreadId::as_str);
    let mut found = Vec::new();
    if query.status.is_empty() {
        let sql = match thread {
            Some(_) => "SELECT no, fold FROM runs WHERE thread = ?3 AND no < ?1 ORDER BY no DESC LIMIT ?2",
            None => "SELECT no, fold FROM runs WHERE no < ?1 AND ?3 IS NULL ORDER BY no DESC LIMIT ?2",
        };
        collect(conn, sql, params![before, limit_sql, thread], &mut found)?;
    }
    // One query for each status reads its index backwards and stops; `IN` would sort all of them. The plus keeps
    // SQLite from choosing the index of statuses where that of threads is better.
    let sql = match thread {
        Some(_) => "SELECT no, fold FROM runs WHERE thread = ?3 AND +status = ?4 AND no < ?1 ORDER BY no DESC LIMIT ?2",
        None => "SELECT no, fold FROM runs WHERE status = ?4 AND no < ?1 AND ?3 IS NULL ORDER BY no DESC LIMIT ?2",
    };
    for (i, status) in query.status.iter().enumerate() {
        if !query.status.iter().take(i).any(|earlier| earlier == status) {
            collect(conn, sql, params![before, limit_sql, thread, status.as_str()], &mut found)?;
        }
    }
    found.sort_unstable_by_key(|(no, _)| std::cmp::Reverse(*no));
    found.truncate(limit);
    found.iter().map(|(_, json)| fold(json)).collect()
}

fn collect(conn: &Connection, sql: &str, with: impl Params, into: &mut Vec<(i64, String)>) -> Result<(), Fault> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(with)?;
    while let Some(row) = rows.next()? {
        into.push((row.get(0)?, row.get(1)?));
    }
    Ok(())
}

/// Sizes of all threads.
pub(crate) fn threads(conn: &Connection) -> Result<Vec<ThreadUsage>, Fault> {
    let mut statement = conn.prepare_cached(
        "SELECT name, first, head, bytes, stored, updated, trimmed_records, trimmed_bytes
         FROM threads ORDER BY updated, no",
    )?;
    let mut rows = statement.query([])?;
    let mut threads = Vec::new();
    while let Some(row) = rows.next()? {
        let name: String = row.get(0)?;
        threads.push(ThreadUsage {
            thread: ThreadId::new(&name).map_err(|e| Fault::Damaged(format!("thread {name:?}: {e}")))?,
            extent: Extent { first: Seq(row.get(1)?), head: Seq(row.get(2)?) },
            bytes: row.get(3)?,
            stored_bytes: row.get(4)?,
            updated: Timestamp::from_micros(row.get(5)?),
            trimmed: Trimmed { records: row.get(6)?, bytes: row.get(7)? },
        });
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, db::Db, schema};

    /// A page is found by descents in trees, never by a scan or a sort, however many threads and blocks there are.
    #[test]
    fn pages_are_found_without_scan_or_sort() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::new(&dir.path().join("store.db"), Config::default()).unwrap();
        let (conn, _turnstile) = schema::prepare(&db).unwrap();
        for of_thread in [None, Some(true), Some(false)] {
            for backwards in [false, true] {
                let sql = statement(of_thread, backwards);
                let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let with: &[&str] = if of_thread == Some(false) { &["", "", "", ""] } else { &["", "", ""] };
                let steps: Vec<String> = plan
                    .query_map(rusqlite::params_from_iter(with), |row| row.get(3))
                    .unwrap()
                    .collect::<Result<_, _>>()
                    .unwrap();
                let plan = steps.join("; ");
                assert!(!plan.contains("SCAN") && !plan.contains("B-TREE"), "{of_thread:?} {backwards}: {plan}");
                let by = if of_thread == Some(false) {
                    "blocks_of_run (run=? AND rowid>? AND rowid<?)"
                } else {
                    "PRIMARY KEY (rowid>? AND rowid<?)"
                };
                assert_eq!(steps.iter().filter(|step| step.contains(by)).count(), 2, "{plan}");
            }
        }
    }
}

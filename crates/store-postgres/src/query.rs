//! What readers ask, and how rows become answers.

use taffrail_mcp_core::{RunFold, RunId, Seq, ThreadId, Timestamp};
use taffrail_relay::{Block, Extent, ListRuns, ReadBlocks, ReadWindow, ThreadUsage, Trimmed, Window};
use tokio_postgres::Row;

use crate::{codec::unpack, fault::Fault, pool::Param, prepare::SEQ_MAX};

/// Runs on a page when the query does not say.
const DEFAULT_RUNS: usize = 100;

/// A statement and its parameters.
pub(crate) type Question = (&'static str, Vec<Param>);

/// A number for SQL; those that are too large for it mean "no limit" or "past everything" here.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Asks for blocks; `None` when there cannot be any.
pub(crate) fn read(query: &ReadBlocks) -> Option<Question> {
    let wanted = query.after.next().0;
    if wanted > query.until.0 || wanted > SEQ_MAX || query.after.0 == u64::MAX {
        return None;
    }
    let thread = query.thread.as_str();
    let own = query.run.as_ref().is_some_and(|run| run.as_str() == thread);
    let of_run = query.run.as_ref().map(|run| run.as_str().to_owned()).filter(|_| !own);
    let params: Vec<Param> = vec![
        Box::new(thread.to_owned()),
        Box::new(signed(wanted)),
        Box::new(signed(query.until.0)),
        Box::new(own),
        Box::new(of_run),
        Box::new(signed(query.max_bytes as u64)),
        Box::new(query.backwards),
    ];
    Some(("SELECT first, count, ts, run, codec, raw, bytes FROM {schema}.read($1, $2, $3, $4, $5, $6, $7)", params))
}

/// The blocks of an answer to [`read`], ascending.
pub(crate) fn blocks(rows: &[Row], query: &ReadBlocks) -> Result<Vec<Block>, Fault> {
    let mut blocks: Vec<Block> = Vec::with_capacity(rows.len());
    for row in rows {
        let block = block(row, &query.thread, blocks.last())?;
        blocks.push(block);
    }
    if query.backwards {
        blocks.reverse();
    }
    Ok(blocks)
}

/// How many bytes of lines an answer to [`read`] has.
pub(crate) fn raw_bytes(rows: &[Row]) -> usize {
    let raw = |row: &Row| row.try_get::<_, Option<i32>>(5).ok().flatten().and_then(|raw| usize::try_from(raw).ok());
    rows.iter().filter_map(raw).sum()
}

/// Asks for a run's state, the extent of its thread, and blocks of it, in one look.
pub(crate) fn window(query: &ReadWindow) -> Question {
    let wanted = query.after.0.saturating_add(1).min(SEQ_MAX + 1);
    let params: Vec<Param> = vec![
        Box::new(query.run.as_str().to_owned()),
        Box::new(signed(wanted)),
        Box::new(signed(query.max_bytes as u64)),
    ];
    (WINDOW, params)
}

/// Each row is a block, or nothing when there is none; the first tells the rest.
const WINDOW: &str = "
SELECT b.first, b.count, b.ts, b.run, b.codec, b.raw, b.bytes,
    CASE WHEN row_number() OVER () = 1 THEN r.fold END, coalesce(h.first, 0), coalesce(h.head, 0)
FROM {schema}.runs r LEFT JOIN {schema}.threads h ON h.name = r.thread
LEFT JOIN LATERAL {schema}.read(r.thread, $2, 9223372036854775807, r.run = r.thread, nullif(r.run, r.thread), $3, false) b
    ON true
WHERE r.run = $1";

/// The answer to [`window`].
pub(crate) fn windowed(rows: &[Row], query: ReadWindow) -> Result<Option<Window>, Fault> {
    let Some(first) = rows.first() else { return Ok(None) };
    let fold = fold_at(first, 7)?;
    let extent = Extent { first: Seq(unsigned(first, 8)?), head: Seq(unsigned(first, 9)?) };
    let none = first.try_get::<_, Option<i64>>(0)?.is_none();
    let rows = if none { &[] } else { rows };
    let blocks = blocks(rows, &query.of_thread(fold.thread.clone()))?;
    Ok(Some(Window { fold, extent, blocks }))
}

fn block(row: &Row, thread: &ThreadId, before: Option<&Block>) -> Result<Block, Fault> {
    let first = Seq(unsigned(row, 0)?);
    let damaged = |what: String| Fault::Damaged(format!("record {first} of thread {thread}: {what}"));
    let number = |at: usize| -> Result<u64, Fault> {
        let number: i32 = row.try_get(at)?;
        u64::try_from(number).map_err(|_| damaged(format!("{number} where a size is expected")))
    };
    let (count, raw) = (number(1)?, number(5)?);
    let stored: &[u8] = row.try_get(6)?;
    // Fits: it came from 32 bits.
    let bytes = unpack(row.try_get(4)?, raw as usize, stored).map_err(damaged)?;
    let lines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
    if lines != count || bytes.last() != Some(&b'\n') {
        return Err(damaged(format!("{lines} lines where {count} were expected")));
    }
    let name = row.try_get::<_, Option<&str>>(3)?.unwrap_or(thread.as_str());
    let run = match before {
        Some(before) if before.run.as_str() == name => before.run.clone(),
        _ => RunId::new(name).map_err(|e| damaged(e.to_string()))?,
    };
    Ok(Block { run, first, count, ts: Timestamp::from_micros(unsigned(row, 2)?), bytes })
}

fn unsigned(row: &Row, at: usize) -> Result<u64, Fault> {
    let number: i64 = row.try_get(at)?;
    u64::try_from(number)
        .map_err(|_| Fault::Damaged(format!("{number} where a position, a time or a size is expected")))
}

/// Asks how far threads go.
pub(crate) fn extents(threads: &[ThreadId]) -> Question {
    let names: Vec<String> = threads.iter().map(|thread| thread.as_str().to_owned()).collect();
    (EXTENTS, vec![Box::new(names)])
}

const EXTENTS: &str = "
SELECT coalesce(h.first, 0), coalesce(h.head, 0)
FROM unnest($1::text[]) WITH ORDINALITY w (name, i) LEFT JOIN {schema}.threads h ON h.name = w.name ORDER BY w.i";

/// An answer to [`extents`].
pub(crate) fn extent(row: &Row) -> Result<Extent, Fault> {
    Ok(Extent { first: Seq(unsigned(row, 0)?), head: Seq(unsigned(row, 1)?) })
}

/// Asks for the state of a run.
pub(crate) fn run(run: &RunId) -> Question {
    ("SELECT fold FROM {schema}.runs WHERE run = $1", vec![Box::new(run.as_str().to_owned())])
}

/// A state of a run.
pub(crate) fn fold(row: &Row) -> Result<RunFold, Fault> {
    fold_at(row, 0)
}

fn fold_at(row: &Row, at: usize) -> Result<RunFold, Fault> {
    let json: &[u8] = row.try_get(at)?;
    serde_json::from_slice(json).map_err(|e| Fault::Damaged(format!("the state of a run cannot be read: {e}")))
}

/// Asks for runs, those that began last first. A cursor that is not in the index (any more) gives an empty page.
pub(crate) fn runs(query: ListRuns) -> Question {
    let limit = signed(if query.limit == 0 { DEFAULT_RUNS } else { query.limit } as u64);
    let before = query.before.map(|run| run.as_str().to_owned());
    let mut statuses: Vec<&'static str> = query.status.iter().map(|status| status.as_str()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    let mut params: Vec<Param> = vec![Box::new(before), Box::new(limit)];
    let sql = match (query.thread, statuses.is_empty()) {
        (None, true) => RUNS,
        (None, false) => {
            params.push(Box::new(statuses));
            RUNS_IN_STATUS
        }
        (Some(thread), all) => {
            params.push(Box::new(thread.as_str().to_owned()));
            params.push(Box::new((!all).then_some(statuses)));
            RUNS_OF_THREAD
        }
    };
    (sql, params)
}

/// A number after the last one, or that of the run which is the cursor, or null when that is not there.
macro_rules! runs_before {
    ($from:literal) => {
        concat!(
            "WITH cursor AS MATERIALIZED (SELECT CASE WHEN $1::text IS NULL THEN 9223372036854775807
                ELSE (SELECT c.no FROM {schema}.runs c WHERE c.run = $1) END AS no) ",
            $from
        )
    };
}

const RUNS: &str =
    runs_before!("SELECT r.fold FROM {schema}.runs r WHERE r.no < (SELECT no FROM cursor) ORDER BY r.no DESC LIMIT $2");

/// Each status has its own place in an index, read backwards; together they would be sorted.
const RUNS_IN_STATUS: &str = runs_before!(
    "SELECT f.fold FROM unnest($3::text[]) s (status) CROSS JOIN LATERAL (
        SELECT r.no, r.fold FROM {schema}.runs r WHERE r.status = s.status AND r.no < (SELECT no FROM cursor)
        ORDER BY r.no DESC LIMIT $2) f
    ORDER BY f.no DESC LIMIT $2"
);

const RUNS_OF_THREAD: &str = runs_before!(
    "SELECT r.fold FROM {schema}.runs r
    WHERE r.thread = $3 AND r.no < (SELECT no FROM cursor) AND ($4::text[] IS NULL OR r.status = ANY ($4))
    ORDER BY r.no DESC LIMIT $2"
);

/// Asks for the value of a claim.
pub(crate) fn claim(key: String) -> Question {
    ("SELECT value FROM {schema}.claims WHERE digest = sha256($1)", vec![Box::new(key.into_bytes())])
}

/// Text that is kept as bytes.
pub(crate) fn text(row: &Row) -> Result<String, Fault> {
    let bytes: &[u8] = row.try_get(0)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| Fault::Damaged("a name that is not UTF-8".into()))
}

/// Asks for the sizes of all threads.
pub(crate) fn threads() -> Question {
    let sql = "SELECT name, first, head, bytes, stored, updated, trimmed_records, trimmed_bytes
               FROM {schema}.threads ORDER BY updated, no";
    (sql, Vec::new())
}

/// A row of the answer to [`threads`].
pub(crate) fn usage(row: &Row) -> Result<ThreadUsage, Fault> {
    let name: &str = row.try_get(0)?;
    Ok(ThreadUsage {
        thread: ThreadId::new(name).map_err(|e| Fault::Damaged(format!("thread {name:?}: {e}")))?,
        extent: Extent { first: Seq(unsigned(row, 1)?), head: Seq(unsigned(row, 2)?) },
        bytes: unsigned(row, 3)?,
        stored_bytes: unsigned(row, 4)?,
        updated: Timestamp::from_micros(unsigned(row, 5)?),
        trimmed: Trimmed { records: unsigned(row, 6)?, bytes: unsigned(row, 7)? },
    })
}

/// Most blocks that one step of a trim removes.
const TRIM_STEP: i64 = 500;

/// Removes some blocks from the front of a thread, none with a record after `through`.
///
/// The row of the thread, which appends wait for, is changed last, and holds for a moment only.
pub(crate) fn trim(thread: &ThreadId, through: Seq) -> Question {
    let params: Vec<Param> =
        vec![Box::new(thread.as_str().to_owned()), Box::new(signed(through.0.min(SEQ_MAX))), Box::new(TRIM_STEP)];
    (TRIM, params)
}

const TRIM: &str = "
WITH log AS MATERIALIZED (SELECT h.no FROM {schema}.threads h WHERE h.name = $1),
old AS MATERIALIZED (
    SELECT b.thread, b.first FROM {schema}.blocks b
    WHERE b.thread = (SELECT no FROM log) AND b.first <= $2 AND b.first + b.count - 1 <= $2
    ORDER BY b.first LIMIT $3),
gone AS (
    DELETE FROM {schema}.blocks b USING old WHERE b.thread = old.thread AND b.first = old.first
    RETURNING b.first + b.count AS next, b.count, b.raw, octet_length(b.bytes) AS stored),
total AS MATERIALIZED (
    SELECT count(*) AS blocks, max(next) AS next, sum(count)::int8 AS records, sum(raw)::int8 AS raw,
        sum(stored)::int8 AS stored FROM gone)
UPDATE {schema}.threads h SET
    first = greatest(h.first, t.next), bytes = h.bytes - t.raw, stored = h.stored - t.stored,
    trimmed_records = h.trimmed_records + t.records, trimmed_bytes = h.trimmed_bytes + t.raw
FROM total t WHERE h.name = $1 AND t.blocks > 0
RETURNING t.records, t.raw, t.blocks";

/// What a step of a trim removed, and whether there may be more.
pub(crate) fn trimmed(rows: &[Row]) -> Result<(Trimmed, bool), Fault> {
    let Some(row) = rows.first() else { return Ok((Trimmed::default(), false)) };
    let blocks: i64 = row.try_get(2)?;
    Ok((Trimmed { records: unsigned(row, 0)?, bytes: unsigned(row, 1)? }, blocks >= TRIM_STEP))
}

/// Removes a run from the index, and its claims.
pub(crate) fn forget(run: &RunId) -> Question {
    let sql = "WITH claims AS (DELETE FROM {schema}.claims WHERE run = $1) DELETE FROM {schema}.runs WHERE run = $1";
    (sql, vec![Box::new(run.as_str().to_owned())])
}

//! `run_logs`: a window of a log, as text or as JSON.

use std::{
    fmt::Write as _,
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use super::{
    args::{Format, LogsArgs, Stream, WaitSeconds},
    backend::{Backend, LogPage, LogQuery, Record, WaitUntil},
    call::{Call, Failure},
    empty_reads::{EmptyReads, Position},
    line::line,
    window::{self, Room, Window},
};

/// Records of a window when nothing else is asked for: as many as an HTTP page has.
const DEFAULT_LIMIT: u32 = 200;
const MAX_LIMIT: u32 = 2000;

/// Hosts cut results at 8 to 50 KB, in the middle; below that we say ourselves what is missing.
const DEFAULT_BYTES: u64 = 6000;
const MAX_BYTES: u64 = 40_000;
/// Less has no room for what must be said beside the records.
const MIN_BYTES: u64 = 500;

/// Room for the sentence that follows a record which was cut.
const CUT_NOTE: usize = 260;

/// A wait that comes back with records which the filters leave out is not started again at once.
const BREATH: Duration = Duration::from_millis(100);

/// Answers `run_logs`.
pub(super) async fn run_logs(
    reader: &impl Reader,
    empty_reads: &Mutex<EmptyReads>,
    shared_fs: bool,
    args: LogsArgs,
) -> Result<CallToolResult, Failure> {
    let (handle_only, max_bytes) = (args.max_bytes == Some(0), bytes(&args));
    let query = query(&args);
    let limit = patience(empty_reads, &query, args.wait_s)?;
    let page = read_until(reader, &query, Instant::now() + limit).await?;
    if query.limit > 0 {
        lock(empty_reads).note(Position::of(&query), page.records.is_empty() && !page.done, Instant::now());
    }
    let view =
        View { query: &query, page: &page, spool: page.spool.as_deref().filter(|_| shared_fs), max_bytes, handle_only };
    Ok(match args.format {
        Format::Text => CallToolResult::success(vec![ContentBlock::text(view.text())]),
        Format::Json => view.json(),
    })
}

fn bytes(args: &LogsArgs) -> usize {
    let bytes = args.max_bytes.unwrap_or(DEFAULT_BYTES).clamp(MIN_BYTES, MAX_BYTES);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// What is asked of the log.
fn query(args: &LogsArgs) -> LogQuery {
    let limit = match args.max_bytes {
        Some(0) => 0,
        _ => args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
    };
    LogQuery {
        run: args.run.clone(),
        after: args.cursor.unwrap_or(0),
        limit,
        // A record's JSON is larger than its line by its common fields; what was read and does not fit is
        // read again from the next cursor.
        max_bytes: bytes(args) * 2 + limit as usize * 200,
        tail: args.tail.map(|tail| tail.clamp(1, MAX_LIMIT)),
        grep: args.grep.clone(),
        types: Vec::new(),
        state: args.state.clone(),
        stream: args.stream.map(Stream::as_str).map(str::to_owned),
    }
}

fn lock(empty_reads: &Mutex<EmptyReads>) -> MutexGuard<'_, EmptyReads> {
    empty_reads.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a read waits for something: as long as the caller asked for, or longer when the same was read in vain before.
fn patience(
    empty_reads: &Mutex<EmptyReads>,
    query: &LogQuery,
    asked: Option<WaitSeconds>,
) -> Result<Duration, Failure> {
    // Who says 0 means it.
    if asked == Some(WaitSeconds::NONE) {
        return Ok(Duration::ZERO);
    }
    let asked = asked.unwrap_or(WaitSeconds::NONE).limit()?;
    Ok(lock(empty_reads).wait(Position::of(query), asked, Instant::now()))
}

/// Who reads and waits.
pub(super) trait Reader: Sync {
    fn backend(&self) -> &dyn Backend;
    fn is_abandoned(&self) -> bool;
    fn wait(&self, run: &str, until: WaitUntil, limit: Duration) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl Reader for Call {
    fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned()
    }

    async fn wait(&self, run: &str, until: WaitUntil, limit: Duration) -> Result<(), Failure> {
        self.wait_alive(run, until, limit).await
    }
}

/// Reads a page; while there is nothing in it yet, waits for something until `deadline`.
async fn read_until(reader: &impl Reader, query: &LogQuery, deadline: Instant) -> Result<LogPage, Failure> {
    let mut page = reader.backend().logs(query.clone()).await?;
    if query.limit == 0 {
        return Ok(page);
    }
    let mut query = query.clone();
    while page.records.is_empty() && !page.done {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || reader.is_abandoned() {
            break;
        }
        reader.wait(&query.run, WaitUntil::RecordAfter(page.next), left).await?;
        query.after = page.next;
        let (matched, scanned) = (page.matched, page.scanned);
        page = reader.backend().logs(query.clone()).await?;
        page.matched += matched;
        page.scanned += scanned;
        if page.records.is_empty() {
            tokio::time::sleep(BREATH.min(left)).await;
        }
    }
    Ok(page)
}

/// A page on its way into a result.
struct View<'a> {
    query: &'a LogQuery,
    page: &'a LogPage,
    spool: Option<&'a str>,
    max_bytes: usize,
    handle_only: bool,
}

impl View<'_> {
    fn text(&self) -> String {
        // The numbers in the notes are never longer than the head's.
        let longest = Window {
            shown: Vec::new(),
            next: self.page.head,
            older: self.query.tail.map(|_| (self.page.head, self.page.head)),
        };
        let mut most = self.notes(&longest);
        let _ = write!(most, "{}", self.rest(self.page.head.saturating_sub(1)));
        let window = self.choose(most.len(), line, |record, bytes| {
            let whole = line(record);
            let shown = window::head(&whole, bytes.saturating_sub(CUT_NOTE));
            format!(
                "{shown}…\n[cut: record {} holds {} bytes, of which {} are shown; the whole record: {}]",
                record.seq,
                whole.len(),
                shown.len(),
                self.whole(record)
            )
        });
        let mut text = String::new();
        for line in &window.shown {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(&self.notes(&window));
        text
    }

    fn json(&self) -> CallToolResult {
        // Fields other than the records.
        let around = 300 + self.spool.map_or(0, str::len);
        let window =
            self.choose(around, |record| record.json.to_string(), |record, bytes| self.cut_json(record, bytes));
        let page = self.page;
        let mut document = json!({
            "next": window.next, "head": page.head, "first": page.first,
            "done": page.done && window.next >= page.next,
            "matched": page.matched, "scanned": page.scanned,
        });
        if let Some(object) = document.as_object_mut() {
            if let Some((from, to)) = self.not_shown(&window) {
                object.insert("not_shown".to_owned(), json!({ "from": from, "to": to }));
            }
            if let Some(spool) = self.spool {
                object.insert("spool".to_owned(), Value::from(spool));
            }
        }
        let mut fields = document.to_string();
        fields.remove(0);
        let text = format!("{{\"records\":[{}],{fields}", window.shown.join(","));
        let mut result = CallToolResult::success(Vec::new());
        result.structured_content = serde_json::from_str(&text).ok();
        result.content = vec![ContentBlock::text(text)];
        result
    }

    fn choose(
        &self,
        beside: usize,
        render: impl Fn(&Record) -> String,
        cut: impl Fn(&Record, usize) -> String,
    ) -> Window {
        let records = if self.handle_only { &[] } else { self.page.records.as_slice() };
        let room = Room {
            // Even the least window shows something.
            bytes: self.max_bytes.saturating_sub(beside).max(CUT_NOTE + 40),
            newest: self.query.tail.is_some(),
            end: self.page.next,
        };
        window::choose(records, room, render, cut)
    }

    /// What follows the records: what was left out, what there is beside them, and the cursor.
    fn notes(&self, window: &Window) -> String {
        let page = self.page;
        let mut notes = String::new();
        let mut note = |text: String| {
            notes.push_str(&text);
            notes.push('\n');
        };
        if self.handle_only {
            note(format!("[log of run {}: records {} to {}]", self.query.run, page.first, page.head));
        } else if page.records.is_empty() && page.done {
            note("[nothing more: the run is finished]".to_owned());
        } else if page.records.is_empty() && page.next >= page.head {
            note("[nothing new yet; pass wait_s to wait for it]".to_owned());
        } else if page.done && window.next >= page.next {
            note("[end of the log: the run is finished]".to_owned());
        }
        if self.is_filtered() && !self.handle_only {
            note(format!("[{} of {} records looked at match]", page.matched, page.scanned));
        }
        if let Some((from, to)) = window.older {
            note(format!(
                "[not shown: matching records from {from} to {to}; call again with cursor {} and without tail]",
                from.saturating_sub(1)
            ));
        } else if let (Some(_), Some(first)) = (self.query.tail, page.records.first()) {
            let after = self.query.after;
            if first.seq > page.first.max(after + 1) {
                let seq = first.seq;
                note(format!(
                    "[not shown: what comes before record {seq}; call again with cursor {after} and without tail]"
                ));
            }
        }
        if window.next < page.head && !(page.done && window.next >= page.next) {
            note(self.rest(window.next));
        }
        if let Some(spool) = self.spool {
            note(format!("[whole log: {spool}]"));
        }
        notes.push_str(&format!("next cursor: {}", window.next));
        notes
    }

    fn rest(&self, next: u64) -> String {
        let (from, to) = (next + 1, self.page.head);
        let which = if from == to { format!("record {to}") } else { format!("records {from} to {to}") };
        format!("[not shown: {which}; call again with cursor {next}]")
    }

    /// What of the log lies past this window or, with `tail`, before it in the page.
    fn not_shown(&self, window: &Window) -> Option<(u64, u64)> {
        let rest = (window.next < self.page.head).then(|| (window.next + 1, self.page.head));
        window.older.or(rest)
    }

    fn is_filtered(&self) -> bool {
        let LogQuery { grep, state, stream, .. } = self.query;
        grep.is_some() || state.is_some() || stream.is_some()
    }

    /// How to get a record whole.
    fn whole(&self, record: &Record) -> String {
        let run = &self.query.run;
        let before = record.seq.saturating_sub(1);
        match self.spool {
            // Room for the fields beside it.
            _ if record.json.len() as u64 + 1000 < MAX_BYTES => {
                let arguments = json!({
                    "run": run, "cursor": before, "limit": 1, "format": "json", "max_bytes": MAX_BYTES,
                });
                format!("run_logs {arguments}")
            }
            Some(_) => "in the file of the whole log".to_owned(),
            None => format!("GET /api/v1/runs/{run}/events?after={before}&limit=1"),
        }
    }

    /// A record of about `bytes` bytes: its longest text is cut, and a field `cut` says so.
    fn cut_json(&self, record: &Record, bytes: usize) -> String {
        let mut value: Value = serde_json::from_str(&record.json).unwrap_or_default();
        let cut = json!({ "bytes": record.json.len(), "whole": self.whole(record) });
        let Some(object) = value.as_object_mut() else {
            return json!({ "seq": record.seq, "cut": cut }).to_string();
        };
        object.insert("cut".to_owned(), cut);
        let length = |value: &Value| value.as_str().map_or(0, str::len);
        let longest = object.iter().max_by_key(|(_, value)| length(value));
        let Some((key, text)) = longest.map(|(key, value)| (key.clone(), value.clone())) else {
            return json!({ "seq": record.seq }).to_string();
        };
        let text = text.as_str().unwrap_or_default();
        let mut keep = bytes.saturating_sub(record.json.len().saturating_sub(text.len()));
        loop {
            if let Some(object) = value.as_object_mut() {
                object.insert(key.clone(), Value::from(window::head(text, keep)));
            }
            let short = value.to_string();
            // Escapes may make a text several times longer.
            if short.len() <= bytes || keep == 0 {
                return short;
            }
            keep = keep.saturating_sub(short.len() - bytes).min(keep * 3 / 4);
        }
    }
}

//! What a caller sees of a run while it waits for it: progress, where it has a token for it.

use futures_util::StreamExt as _;
use memchr::memmem;
use serde_json::Value;
use taffrail_mcp_core::RunId;
use taffrail_progress::ProgressSource as _;
use tokio::time::timeout;

use super::{
    backend::{Backend, Followed, LogQuery, Record},
    call::Call,
    reporter::Reporter,
    snapshot, told,
};
use crate::forward::FLUSH_LIMIT;

/// Records that are looked at together: of a flood of lines only the last one of each lot is read.
const LOT: usize = 512;

/// Pages of what happened before a call, and records in each: more than budgets allow, unless they were raised.
const PAST_PAGES: usize = 8;
const PAST_RECORDS: u32 = 2000;
const PAST_BYTES: usize = 1 << 20;

/// What makes the number.
const LIFECYCLE: [&str; 4] = ["state-start", "state-done", "branch-start", "branch-done"];

/// A run that a call waits for, once or several times.
pub(super) struct Watched {
    pub(super) run: String,
    /// Records after this are news.
    pub(super) seen: u64,
    reporter: Option<Reporter>,
    position: u64,
}

impl Watched {
    /// Waits for `run`, whose records after `seen` are news to the caller.
    pub(super) async fn new(call: &Call, run: String, seen: u64) -> Self {
        let mut watched = Self { run, seen, reporter: None, position: 0 };
        if call.context.meta.get_progress_token().is_some() {
            // What cannot be read is not told; the call itself says what is wrong.
            let snapshot = call.backend.snapshot(&watched.run).await.unwrap_or_default();
            let (states, words) = (states(call, &snapshot).await, told::of_snapshot(&snapshot, None));
            watched.reporter = Some(Reporter::new(&call.cx.progress_source(), &states, &words));
            watched.catch_up(call).await;
        }
        watched
    }

    /// Counts what had happened before.
    async fn catch_up(&mut self, call: &Call) {
        for _ in 0..PAST_PAGES {
            if self.position >= self.seen {
                return;
            }
            let query = LogQuery {
                run: self.run.clone(),
                after: self.position,
                limit: PAST_RECORDS,
                max_bytes: PAST_BYTES,
                types: LIFECYCLE.map(str::to_owned).to_vec(),
                ..LogQuery::default()
            };
            let Ok(page) = call.backend.logs(query).await else { return };
            let seen = self.seen;
            for record in page.records.iter().filter(|record| record.seq <= seen) {
                self.report(record);
            }
            self.position = page.next.min(self.seen);
            if page.next >= page.head {
                return;
            }
        }
        self.position = self.seen;
    }

    fn report(&mut self, record: &Record) {
        if let Some(reporter) = &mut self.reporter {
            reporter.record(&record.json);
        }
    }

    /// Reports what comes, up to `last` if there is one, else for ever. Dropping it loses nothing.
    pub(super) async fn reports(&mut self, backend: &dyn Backend, last: Option<u64>) {
        if self.reporter.is_some() {
            let mut lots = backend.follow(&self.run, self.position).ready_chunks(LOT);
            while last.is_none_or(|last| self.position < last)
                && let Some(lot) = lots.next().await
            {
                self.take(&lot.into_iter().filter_map(Result::ok).collect::<Vec<_>>());
            }
        }
        if last.is_none() {
            std::future::pending().await
        }
    }

    fn take(&mut self, lot: &[Followed]) {
        let is_output = |item: &Followed| matches!(item, Followed::Record(record) if is_output(&record.json));
        let last_output = lot.iter().rposition(is_output);
        for (at, item) in lot.iter().enumerate() {
            match item {
                Followed::Record(record) => {
                    self.position = record.seq;
                    if Some(at) == last_output || !is_output(item) {
                        self.report(record);
                    }
                }
                Followed::Reached(seq) => self.position = *seq,
            }
        }
    }

    /// The call ends with this snapshot: the last progress is what it says.
    pub(super) async fn ends(&mut self, backend: &dyn Backend, snapshot: &Value) {
        if self.reporter.is_none() {
            return;
        }
        // What is not there in time was not needed: the snapshot says how it stands.
        let _ = timeout(FLUSH_LIMIT, self.reports(backend, Some(snapshot::head(snapshot)))).await;
        if let Some(reporter) = &mut self.reporter {
            reporter.end(snapshot);
        }
    }
}

/// Whether a record is a line of output, told without reading it: common fields come first.
fn is_output(json: &str) -> bool {
    let head = json.as_bytes().get(..HEAD_BYTES).unwrap_or(json.as_bytes());
    memmem::find(head, br#""type":"log""#).is_some()
}

/// Two ids, a number, a time and the type are in less.
const HEAD_BYTES: usize = 2 * RunId::MAX + 160;

/// The states of the run's playbook, where it is one that can be found by its name.
async fn states(call: &Call, snapshot: &Value) -> Vec<String> {
    let Some(name) = snapshot.get("playbook").and_then(Value::as_str) else { return Vec::new() };
    let Ok(contracts) = call.backend.list_playbooks(Some(name.to_owned())).await else { return Vec::new() };
    let states = contracts.first().and_then(|contract| contract.get("states")).and_then(Value::as_array);
    let name = |state: &Value| state.get("name").and_then(Value::as_str).map(str::to_owned);
    states.into_iter().flatten().filter_map(name).collect()
}

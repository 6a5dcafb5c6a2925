//! A backend in memory whose runs do what a test tells them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, stream, stream::BoxStream};
use serde_json::{Map, Value, json};
use taffrail_mcp_core::Decision;
use taffrail_transport::mcp::backend::{
    Backend, BackendError, BackendErrorKind, Decide, Finding, Followed, ListRuns, LogPage, LogQuery, PlaybookRef,
    PlaybookReport, Record, Reply, ResumeRun, RunHandle, RunList, StartRun, WaitUntil,
};
use tokio::sync::watch;

/// Runs by id, `run-1` first.
#[derive(Clone, Default)]
pub(crate) struct Fake(Arc<Inner>);

#[derive(Default)]
struct Inner {
    runs: Mutex<BTreeMap<String, Run>>,
    changed: watch::Sender<u64>,
    /// Streams begun.
    followed: AtomicUsize,
}

struct Run {
    playbook: String,
    key: Option<String>,
    status: &'static str,
    state: Option<String>,
    records: Vec<Arc<str>>,
    /// Records up to this seq are gone.
    trimmed: u64,
    extra: Map<String, Value>,
}

impl Fake {
    fn runs(&self) -> MutexGuard<'_, BTreeMap<String, Run>> {
        self.0.runs.lock().unwrap()
    }

    fn change<T>(&self, run: &str, change: impl FnOnce(&mut Run) -> T) -> T {
        let out = change(self.runs().get_mut(run).expect("a run"));
        self.0.changed.send_modify(|version| *version += 1);
        out
    }

    /// Appends a record of `kind` with `fields`.
    pub(crate) fn push(&self, run: &str, kind: &str, fields: &str) {
        self.change(run, |it| it.push(run, kind, fields));
    }

    pub(crate) fn log(&self, run: &str, text: &str) {
        let text = Value::from(text);
        self.push(run, "log", &format!(r#""state":"build","stream":"stdout","text":{text}"#));
    }

    /// Ends a run, with a reason unless it is `done`.
    pub(crate) fn finish(&self, run: &str, status: &'static str) {
        self.change(run, |it| {
            it.status = status;
            let error = if status == "done" { "null" } else { "\"gate-failed\"" };
            it.push(run, "run-finished", &format!(r#""status":"{status}","error":{error}"#));
        });
    }

    pub(crate) fn enter(&self, run: &str, state: &str) {
        self.change(run, |it| {
            it.state = Some(state.to_owned());
            it.push(run, "state-start", &format!(r#""depth":0,"state":"{state}","step":1,"kind":"run""#));
        });
    }

    /// The end of a state, or of one of its branches.
    pub(crate) fn leave(&self, run: &str, state: &str) {
        self.push(run, "state-done", &format!(r#""depth":0,"state":"{state}","step":1,"policy":"ok","to":"next""#));
    }

    pub(crate) fn trim(&self, run: &str, to: u64) {
        self.change(run, |it| it.trimmed = to);
    }

    pub(crate) fn status(&self, run: &str) -> &'static str {
        self.runs().get(run).map_or("none", |run| run.status)
    }

    /// Waits, in a thread of the test, until there are `count` runs.
    pub(crate) fn until_started(&self, count: usize) {
        until(|| self.runs().len() >= count);
    }

    /// Waits, in a thread of the test, until `count` calls have begun to follow a run.
    pub(crate) fn until_followed(&self, count: usize) {
        until(|| self.0.followed.load(Ordering::SeqCst) >= count);
    }

    fn check(&self, run: &str) -> Result<(), BackendError> {
        assert!(run != "panic", "on purpose");
        if self.runs().contains_key(run) {
            return Ok(());
        }
        Err(not_found(format!("no run {run}; list_runs shows the runs there are")))
    }
}

fn until(reached: impl Fn() -> bool) {
    for _ in 0..4000 {
        if reached() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain");
}

impl Run {
    fn push(&mut self, run: &str, kind: &str, fields: &str) {
        let seq = self.records.len() + 1;
        let comma = if fields.is_empty() { "" } else { "," };
        let json = format!(
            r#"{{"seq":{seq},"thread":"{run}","run":"{run}","ts":"2026-11-30T12:00:00.000000Z","type":"{kind}"{comma}{fields}}}"#
        );
        self.records.push(json.into());
    }

    fn head(&self) -> u64 {
        self.records.len() as u64
    }

    fn finished(&self) -> bool {
        matches!(self.status, "done" | "halt" | "cancelled" | "interrupted")
    }

    fn snapshot(&self, run: &str) -> Value {
        let mut snapshot = json!({
            "run": run, "thread": run, "playbook": self.playbook, "status": self.status,
            "state": self.state, "step": 1, "head": self.head(),
            "started_at": "2026-11-30T12:00:00.000000Z", "elapsed_ms": 1500,
            "usage": {
                "steps": 1, "wall_ms": 1500, "log_lines": 2, "log_bytes": 20,
                "clipped_lines": 0, "clipped_bytes": 0,
            },
            "spool": format!("/spool/{run}.jsonl"),
        });
        snapshot.as_object_mut().unwrap().extend(self.extra.clone());
        snapshot
    }

    /// The records after `after`, and the gap before them.
    fn after(&self, run: &str, after: u64) -> Vec<Record> {
        let mut out = Vec::new();
        let mut at = after;
        if at < self.trimmed {
            let (from, to) = (at + 1, self.trimmed);
            at = to;
            let json = json!({
                "type": "gap", "thread": run, "from": from, "to": to, "reason": "retention", "next": to,
            });
            out.push(Record { seq: to, json: json.to_string().into() });
        }
        let records = (at + 1..).zip(self.records.iter().skip(at as usize));
        out.extend(records.map(|(seq, json)| Record { seq, json: json.clone() }));
        out
    }
}

fn not_found(message: String) -> BackendError {
    BackendError::new(BackendErrorKind::NotFound, message)
}

/// What a started playbook does at once; tests do the rest.
fn begin(run: &str, playbook: &str, it: &mut Run) {
    it.push(run, "run-start", r#""machine":"m","depth":0,"entry":"build","resumed":false"#);
    match playbook {
        "quick" => {
            it.state = Some("build".to_owned());
            it.push(run, "state-start", r#""machine":"m","depth":0,"state":"build","step":1,"kind":"run""#);
            it.push(run, "log", r#""state":"build","stream":"stdout","text":"hello""#);
            it.push(run, "log", r#""state":"build","stream":"stderr","text":"a warning""#);
            it.push(run, "state-done", r#""machine":"m","depth":0,"state":"build","step":1,"gate":null,"policy":"ok","to":"END","output":"hello","exit":{"code":0}"#);
            it.push(run, "run-finished", r#""machine":"m","depth":0,"status":"done","error":null,"at":null"#);
            it.status = "done";
        }
        "gate" | "twice" | "vault" => {
            it.state = Some("agree".to_owned());
            it.status = "suspended";
            it.extra.insert(
                "approval".to_owned(),
                json!({"approval": "ap-1", "state": "agree", "message": "Deploy 1.2?", "hash": "00ff", "by": "human"}),
            );
            it.extra.insert("checkpoint".to_owned(), json!("cp-1"));
            it.push(
                run,
                "approval-requested",
                r#""approval":"ap-1","state":"agree","message":"Deploy 1.2?","hash":"00ff","by":"human""#,
            );
        }
        _ => {}
    }
}

impl Backend for Fake {
    fn start(&self, request: StartRun) -> Reply<'_, RunHandle> {
        async move {
            let StartRun { playbook, inputs: _, thread: _, idempotency_key } = request;
            match playbook.as_str() {
                "quick" | "slow" | "gate" | "twice" | "vault" => {}
                "panic" => panic!("on purpose"),
                _ => return Err(not_found(format!("no playbook {playbook}; list_playbooks shows what there is"))),
            }
            let mut runs = self.runs();
            let known = runs.iter().find(|(_, run)| run.key.is_some() && run.key == idempotency_key);
            if let Some((run, _)) = known {
                return Ok(RunHandle { run: run.clone(), after: 0 });
            }
            let run = format!("run-{}", runs.len() + 1);
            let mut it = Run {
                playbook: playbook.clone(),
                key: idempotency_key,
                status: "running",
                state: None,
                records: Vec::new(),
                trimmed: 0,
                extra: Map::new(),
            };
            begin(&run, &playbook, &mut it);
            runs.insert(run.clone(), it);
            drop(runs);
            self.0.changed.send_modify(|version| *version += 1);
            Ok(RunHandle { run, after: 0 })
        }
        .boxed()
    }

    fn resume(&self, request: ResumeRun) -> Reply<'_, RunHandle> {
        async move {
            let run = request.run.unwrap_or_else(|| "run-1".to_owned());
            self.check(&run)?;
            if request.inputs.contains_key("decision") {
                let message = format!("the gate of {run} is for a person; tell them to decide");
                return Err(BackendError::new(BackendErrorKind::Denied, message));
            }
            let after = self.change(&run, |it| {
                it.status = "running";
                it.extra.clear();
                it.head()
            });
            self.finish(&run, "done");
            Ok(RunHandle { run, after })
        }
        .boxed()
    }

    fn decide(&self, request: Decide) -> Reply<'_, RunHandle> {
        async move {
            let Decide { run, approval, hash, decision, content, .. } = request;
            self.check(&run)?;
            let pending = self.change(&run, |it| it.extra.get("approval").cloned());
            let Some(pending) = pending.filter(|it| it["approval"] == approval.as_str() && it["hash"] == hash.as_str())
            else {
                return Err(BackendError::new(
                    BackendErrorKind::Conflict,
                    format!("{run} does not wait for {approval}"),
                ));
            };
            if pending["schema"].is_object() && content.as_ref().is_none_or(|it| it["region"] != "eu") {
                return Err(BackendError::new(BackendErrorKind::Invalid, "region must be eu"));
            }
            let after = self.change(&run, |it| {
                it.status = "running";
                it.extra.clear();
                it.push(&run, "approval-resolved", &format!(r#""decision":{}"#, json!(decision)));
                it.head()
            });
            if pending["schema"].is_null() && self.change(&run, |it| it.playbook == "twice") {
                self.change(&run, |it| {
                    it.status = "suspended";
                    let region = json!({"type": "object", "properties": {"region": {"type": "string"}}});
                    it.extra.insert(
                        "approval".to_owned(),
                        json!({
                            "approval": "ap-2", "state": "region", "message": "Which region?", "hash": "11",
                            "by": "agent", "schema": region,
                        }),
                    );
                });
                return Ok(RunHandle { run, after });
            }
            self.finish(&run, if decision == Decision::Approve { "done" } else { "halt" });
            Ok(RunHandle { run, after })
        }
        .boxed()
    }

    fn run_of_checkpoint(&self, checkpoint: &str) -> Option<String> {
        Some(checkpoint.strip_prefix("cp-")?).map(|number| format!("run-{number}"))
    }

    fn secrets<'a>(&'a self, run: &'a str) -> Reply<'a, Vec<String>> {
        let secrets = if self.runs()[run].playbook == "vault" { vec!["key".to_owned()] } else { Vec::new() };
        async move { Ok(secrets) }.boxed()
    }

    fn snapshot<'a>(&'a self, run: &'a str) -> Reply<'a, Value> {
        async move {
            if run == "stuck" {
                std::future::pending::<()>().await;
            }
            self.check(run)?;
            Ok(self.change(run, |it| it.snapshot(run)))
        }
        .boxed()
    }

    fn wait<'a>(&'a self, run: &'a str, until: WaitUntil) -> Reply<'a, ()> {
        async move {
            let mut changed = self.0.changed.subscribe();
            loop {
                self.check(run)?;
                changed.borrow_and_update();
                let reached = self.runs().get(run).is_none_or(|it| match until {
                    WaitUntil::GoesOnAfter(after) => {
                        let changes = ["run-start", "state-start", "run-finished", "approval-requested"];
                        let is_change = |record: &Record| {
                            changes.iter().any(|kind| record.json.contains(&format!(r#""type":"{kind}""#)))
                        };
                        it.after(run, after).iter().any(is_change)
                    }
                    _ if it.finished() => true,
                    WaitUntil::Settled => it.status != "running",
                    WaitUntil::StateAfter(after) => it.after(run, after).iter().any(|record| {
                        record.json.contains(r#""type":"state-start""#) || record.json.contains("approval-")
                    }),
                    WaitUntil::RecordAfter(after) => it.head() > after,
                });
                if reached {
                    return Ok(());
                }
                let _ = changed.changed().await;
            }
        }
        .boxed()
    }

    fn logs(&self, query: LogQuery) -> Reply<'_, LogPage> {
        async move {
            let run = query.run.as_str();
            self.check(run)?;
            let runs = self.runs();
            let it = runs.get(run).expect("a run");
            let mut page = LogPage {
                next: query.after,
                head: it.head(),
                first: it.trimmed + 1,
                spool: Some(format!("/spool/{run}.jsonl")),
                ..LogPage::default()
            };
            let matches = |record: &Record| {
                let has = |what: &Option<String>| what.as_ref().is_none_or(|what| record.json.contains(what));
                let kind = |kind: &String| record.json.contains(&format!(r#""type":"{kind}""#));
                has(&query.grep)
                    && (query.types.is_empty() || query.types.iter().any(kind))
                    && has(&query.state.as_ref().map(|state| format!(r#""state":"{state}""#)))
                    && has(&query.stream.as_ref().map(|stream| format!(r#""stream":"{stream}""#)))
            };
            let mut bytes = 0;
            for record in it.after(run, query.after) {
                let full = page.records.len() == query.limit as usize
                    || bytes > 0 && bytes + record.json.len() > query.max_bytes;
                if full && query.tail.is_none() {
                    break;
                }
                page.next = record.seq;
                page.scanned += 1;
                if matches(&record) {
                    page.matched += 1;
                    bytes += record.json.len();
                    page.records.push(record);
                }
            }
            if let Some(tail) = query.tail {
                let from = page.records.len().saturating_sub(tail as usize);
                page.records.drain(..from);
            }
            page.done = it.finished() && page.next == it.head();
            Ok(page)
        }
        .boxed()
    }

    fn cancel<'a>(&'a self, run: &'a str, _reason: Option<String>) -> Reply<'a, Value> {
        async move {
            self.check(run)?;
            if self.status(run) == "running" {
                self.finish(run, "cancelled");
            }
            self.snapshot(run).await
        }
        .boxed()
    }

    fn list_runs(&self, query: ListRuns) -> Reply<'_, RunList> {
        async move {
            let runs = self.runs();
            let wanted = |status: &str| query.status.as_deref().is_none_or(|wanted| wanted == status);
            // By number, the newest first.
            let age = |id: &str| (id.len(), id.to_owned());
            let older = |id: &str| query.before.as_deref().is_none_or(|before| age(id) < age(before));
            let mut rows: Vec<_> = runs.iter().filter(|(id, run)| wanted(run.status) && older(id)).collect();
            rows.sort_by_key(|(id, _)| std::cmp::Reverse(age(id)));
            let rows: Vec<_> = rows.into_iter().map(|(id, run)| run.snapshot(id)).collect();
            let limit = query.limit as usize;
            let before = (rows.len() > limit).then(|| rows[limit - 1]["run"].as_str().unwrap().to_owned());
            Ok(RunList { runs: rows.into_iter().take(limit).collect(), before })
        }
        .boxed()
    }

    fn list_playbooks(&self, name: Option<String>) -> Reply<'_, Vec<Value>> {
        async move {
            let inputs = json!([
                {"name": "targets", "type": "array", "required": false, "default": ["linux"]},
                {"name": "version", "type": "string", "required": true},
            ]);
            Ok(match name.as_deref() {
                Some("release") => vec![json!({
                    "name": "release", "description": "Build and deploy.", "inputs": inputs,
                    "states": [{"name": "build"}, {"name": "agree"}],
                })],
                Some("slow") => {
                    let states = ["build", "test", "agree", "deploy"].map(|name| json!({"name": name}));
                    vec![json!({"name": "slow", "description": "Takes its time.", "inputs": [], "states": states})]
                }
                Some(name) => return Err(not_found(format!("no playbook {name}; there are quick and release"))),
                None => vec![
                    json!({"name": "quick", "description": "Says hello.", "inputs": []}),
                    json!({"name": "release", "description": "Build and deploy.", "inputs": inputs}),
                ],
            })
        }
        .boxed()
    }

    fn check_playbook(&self, playbook: PlaybookRef) -> Reply<'_, PlaybookReport> {
        async move {
            let findings = match &playbook {
                PlaybookRef::Source(source) if source.contains("gates") => vec![
                    Finding { error: false, line: 3, column: 5, message: "state `b` is never reached".to_owned() },
                    Finding {
                        error: true,
                        line: 7,
                        column: 9,
                        message: "unknown key `gatez`; did you mean `gates`?".to_owned(),
                    },
                ],
                _ => Vec::new(),
            };
            Ok(PlaybookReport { playbook: Some("release".to_owned()), findings })
        }
        .boxed()
    }

    fn follow(&self, run: &str, after: u64) -> BoxStream<'static, Result<Followed, BackendError>> {
        let (fake, run) = (self.clone(), run.to_owned());
        let changed = fake.0.changed.subscribe();
        fake.0.followed.fetch_add(1, Ordering::SeqCst);
        let pages = stream::unfold((fake, run, after, changed, false), |state| async move {
            let (fake, run, after, mut changed, over) = state;
            if over {
                return None;
            }
            loop {
                changed.borrow_and_update();
                let (records, over) = {
                    let runs = fake.runs();
                    let it = runs.get(&run)?;
                    let mut records = it.after(&run, after);
                    // A read's worth.
                    records.truncate(500);
                    let last = records.last().map_or(after, |record| record.seq);
                    (records, it.finished() && last == it.head())
                };
                if let Some(last) = records.last() {
                    let last = last.seq;
                    return Some((records, (fake, run, last, changed, over)));
                }
                if over || changed.changed().await.is_err() {
                    return None;
                }
            }
        });
        pages.flat_map(|records| stream::iter(records.into_iter().map(Followed::Record).map(Ok))).boxed()
    }
}

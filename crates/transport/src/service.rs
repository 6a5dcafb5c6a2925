//! The MCP tools on Taffrail's own service.

use std::{collections::VecDeque, path::PathBuf, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::BoxFuture, stream, stream::BoxStream};
use serde_json::{Map, Value};
use taffrail_engine::playbook::{Diagnostic, Severity};
use taffrail_mcp_core::{LineHead, RunId, RunStatus, Seq, Snapshot, Start, ThreadId};
use taffrail_relay::{Block, Delivery, Follower, ListRuns as ListStored, RelayError};
use taffrail_runs::{
    Approve, Cancel, LogQuery as Window, PlaybookRef as Checked, Resume, RunsError, Service, Start as StartWork, Until,
    Work,
};

use crate::mcp::backend::{
    Backend, BackendError, BackendErrorKind, Decide, Finding, Followed, ListRuns, LogPage, LogQuery, PlaybookRef,
    PlaybookReport, Record, Reply, ResumeRun, RunHandle, RunList, StartRun, WaitUntil,
};

/// Runs of the list by default.
const LISTED: usize = 20;

/// A [`Backend`] that is a [`Service`] in this process.
#[derive(Debug, Clone)]
pub struct ServiceBackend {
    service: Service,
    /// Whether callers share our disk, so that paths mean something to them.
    shared_fs: bool,
    /// Who asks, as the log names them.
    actor: Arc<str>,
}

impl ServiceBackend {
    /// Serves `service`. `actor` is who the log says asked.
    pub fn new(service: Service, shared_fs: bool, actor: &str) -> Self {
        Self { service, shared_fs, actor: actor.into() }
    }

    fn document(&self, mut snapshot: Snapshot) -> Result<Value, BackendError> {
        if !self.shared_fs {
            snapshot.spool = None;
        }
        serde_json::to_value(snapshot).map_err(|error| BackendError::new(BackendErrorKind::Internal, error))
    }
}

impl From<RunsError> for BackendError {
    fn from(error: RunsError) -> Self {
        let kind = if error.is_not_found() {
            BackendErrorKind::NotFound
        } else if error.is_conflict() {
            BackendErrorKind::Conflict
        } else if error.is_denied() {
            BackendErrorKind::Denied
        } else if error.is_unavailable() {
            BackendErrorKind::Unavailable
        } else {
            BackendErrorKind::Invalid
        };
        Self::new(kind, error)
    }
}

impl From<RelayError> for BackendError {
    fn from(error: RelayError) -> Self {
        RunsError::from(error).into()
    }
}

impl Backend for ServiceBackend {
    fn start(&self, request: StartRun) -> Reply<'_, RunHandle> {
        Box::pin(async move {
            let StartRun { playbook, inputs, thread, idempotency_key } = request;
            let thread = thread.map(ThreadId::new).transpose().map_err(RunsError::from)?;
            let work = Work::Playbook { name: playbook, paths: self.shared_fs };
            let start = StartWork { inputs, thread, idempotency_key, ..StartWork::new(work) };
            let started = self.service.start(start).await?;
            let after = if started.existing { 0 } else { started.after.0 };
            Ok(RunHandle { run: started.run.to_string(), after })
        })
    }

    fn resume(&self, request: ResumeRun) -> Reply<'_, RunHandle> {
        Box::pin(async move {
            let ResumeRun { run, checkpoint, inputs } = request;
            let actor = self.actor.to_string();
            let resumed = self.service.resume(Resume { run, checkpoint, inputs, actor, human: false }).await?;
            Ok(RunHandle { run: resumed.run.to_string(), after: resumed.after.0 })
        })
    }

    fn decide(&self, request: Decide) -> Reply<'_, RunHandle> {
        Box::pin(async move {
            let Decide { run, approval, hash, seen, decision, content, inputs } = request;
            let run = run_id(&run)?;
            let secrets = self.service.secrets_among(&run, inputs).await?;
            let actor = format!("{} (a person was asked)", self.actor);
            let decided = Approve {
                run: run.clone(),
                approval: Some(approval),
                decision,
                hash: Some(hash),
                seen_seq: Some(Seq(seen)),
                content: content.map(Value::Object),
                inputs: secrets.clone(),
                actor: actor.clone(),
            };
            self.service.approve(decided).await?;
            let goes_on = Resume { run: Some(run.to_string()), checkpoint: None, inputs: secrets, actor, human: true };
            let resumed = self.service.resume(goes_on).await?;
            Ok(RunHandle { run: resumed.run.to_string(), after: resumed.after.0 })
        })
    }

    fn run_of_checkpoint(&self, checkpoint: &str) -> Option<String> {
        Service::run_of_checkpoint(checkpoint).map(|run| run.to_string())
    }

    fn secrets<'a>(&'a self, run: &'a str) -> Reply<'a, Vec<String>> {
        Box::pin(async move { Ok(self.service.secrets_of(&run_id(run)?).await?) })
    }

    fn snapshot<'a>(&'a self, run: &'a str) -> Reply<'a, Value> {
        Box::pin(async move {
            let run = run_id(run)?;
            self.document(self.service.snapshot(&run).await?)
        })
    }

    fn wait<'a>(&'a self, run: &'a str, until: WaitUntil) -> Reply<'a, ()> {
        Box::pin(async move {
            let run = run_id(run)?;
            let until = match until {
                WaitUntil::Settled => Until::Settled,
                WaitUntil::StateAfter(seq) => Until::ChangedAfter(Seq(seq)),
                WaitUntil::GoesOnAfter(seq) => Until::GoesOnAfter(Seq(seq)),
                WaitUntil::RecordAfter(seq) => Until::RecordAfter(Seq(seq)),
            };
            self.service.wait(&run, until).await?;
            Ok(())
        })
    }

    fn logs(&self, query: LogQuery) -> Reply<'_, LogPage> {
        Box::pin(async move {
            let run = run_id(&query.run)?;
            let window = Window {
                start: start_after(query.after),
                limit: query.limit as usize,
                max_bytes: query.max_bytes,
                tail: query.tail.map(|tail| tail as usize),
                grep: query.grep,
                types: query.types,
                state: query.state,
                stream: query.stream,
                ..Window::default()
            };
            let page = self.service.logs(&run, window).await?;
            let gap = page.gap.map(|gap| Record { seq: gap.to.0, json: gap.to_json().into() });
            let lines = page.lines.iter().filter_map(|line| record(line));
            let spool = self.service.snapshot(&run).await?.spool.filter(|_| self.shared_fs);
            Ok(LogPage {
                records: gap.into_iter().chain(lines).collect(),
                next: page.meta.next.0,
                head: page.meta.head.0,
                first: page.meta.first.0,
                done: page.meta.done,
                matched: page.meta.matched,
                scanned: page.meta.scanned,
                spool,
            })
        })
    }

    fn cancel<'a>(&'a self, run: &'a str, reason: Option<String>) -> Reply<'a, Value> {
        Box::pin(async move {
            let run = run_id(run)?;
            let request = Cancel { run: run.clone(), reason, actor: self.actor.to_string(), kill: false };
            self.service.cancel(request).await?;
            self.document(self.service.snapshot(&run).await?)
        })
    }

    fn list_runs(&self, query: ListRuns) -> Reply<'_, RunList> {
        Box::pin(async move {
            let ListRuns { status, thread, limit, before } = query;
            let status = status.map(|status| parse_status(&status)).transpose()?;
            let limit = if limit == 0 { LISTED } else { limit as usize };
            let stored = ListStored {
                status: status.into_iter().collect(),
                thread: thread.map(ThreadId::new).transpose().map_err(RunsError::from)?,
                before: before.map(RunId::new).transpose().map_err(RunsError::from)?,
                // One more than asked for tells whether there are more.
                limit: limit + 1,
            };
            let mut snapshots = self.service.runs(stored).await?;
            let more = snapshots.len() > limit;
            snapshots.truncate(limit);
            let before = snapshots.last().filter(|_| more).map(|last| last.run.to_string());
            let runs = snapshots.into_iter().map(|snapshot| self.document(snapshot)).collect::<Result<_, _>>()?;
            Ok(RunList { runs, before })
        })
    }

    fn list_playbooks(&self, name: Option<String>) -> Reply<'_, Vec<Value>> {
        Box::pin(async move {
            if let Some(name) = name {
                return Ok(vec![to_value(&self.service.contract(name).await?)]);
            }
            let listed = self.service.playbooks().await?;
            Ok(listed
                .into_iter()
                .map(|listed| match listed.contract {
                    Ok(contract) => {
                        let mut contract = to_value(&contract);
                        // A table has no room for more; asked for by name, everything comes.
                        if let Some(object) = contract.as_object_mut() {
                            object.retain(|key, _| matches!(key.as_str(), "name" | "description" | "inputs"));
                        }
                        contract
                    }
                    Err(diagnostic) => broken(&listed.name, &diagnostic),
                })
                .collect())
        })
    }

    fn check_playbook(&self, playbook: PlaybookRef) -> Reply<'_, PlaybookReport> {
        Box::pin(async move {
            let playbook = match playbook {
                PlaybookRef::Name(name) => Checked::Name(name),
                PlaybookRef::Path(path) if self.shared_fs => Checked::Path(PathBuf::from(path)),
                PlaybookRef::Path(_) => {
                    let message = "this server does not share your disk: pass the playbook's text as source";
                    return Err(BackendError::new(BackendErrorKind::Invalid, message));
                }
                PlaybookRef::Source(source) => Checked::Source(source),
            };
            let parsed = self.service.check(playbook).await?;
            Ok(PlaybookReport {
                playbook: parsed.playbook.map(|playbook| playbook.name),
                findings: parsed.diagnostics.iter().map(finding).collect(),
            })
        })
    }

    fn follow(&self, run: &str, after: u64) -> BoxStream<'static, Result<Followed, BackendError>> {
        let service = self.service.clone();
        let run = run.to_owned();
        let opening: BoxFuture<'static, Result<Following, BackendError>> = Box::pin(async move {
            let run = RunId::new(&run).map_err(|_| RunsError::NoRun { run })?;
            let follower = service.follow(&run, start_after(after)).await?;
            Ok(Following { service, run, follower, told: after, ready: VecDeque::new() })
        });
        let records = stream::once(opening).map(|opened| match opened {
            Ok(following) => stream::unfold(following, Following::step).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        });
        records.flatten().boxed()
    }
}

/// A follower of one run, until the run is over.
struct Following {
    service: Service,
    run: RunId,
    follower: Follower,
    /// The last position that was told, by a record or by itself.
    told: u64,
    /// Read and not yet taken: at most one delivery.
    ready: VecDeque<Followed>,
}

impl Following {
    async fn step(mut self) -> Option<(Result<Followed, BackendError>, Self)> {
        match self.next().await {
            Ok(None) => None,
            Ok(Some(item)) => Some((Ok(item), self)),
            Err(error) => Some((Err(error), self)),
        }
    }

    async fn next(&mut self) -> Result<Option<Followed>, BackendError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                let (Followed::Record(Record { seq, .. }) | Followed::Reached(seq)) = &item;
                self.told = *seq;
                return Ok(Some(item));
            }
            match self.follower.try_next().await? {
                Some(delivery) => self.take(delivery),
                None if self.follower.position().0 > self.told => {
                    self.ready.push_back(Followed::Reached(self.follower.position().0));
                }
                None => {
                    // A look at the run also settles one whose host is gone, which nothing else would tell.
                    let fold = self.service.fold(&self.run).await?;
                    if fold.status.ended() && fold.last <= self.follower.position() {
                        return Ok(None);
                    }
                    if let Ok(delivery) = tokio::time::timeout(LOOK_EVERY, self.follower.next()).await {
                        self.take(delivery?);
                    }
                }
            }
        }
    }

    fn take(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Gap(gap) => {
                let json = gap.to_json().into();
                self.ready.push_back(Followed::Record(Record { seq: gap.to.0, json }));
            }
            Delivery::Blocks(blocks) => {
                let lines = blocks.iter().flat_map(Block::lines).filter_map(|line| record(&line));
                self.ready.extend(lines.map(Followed::Record));
            }
        }
    }
}

/// How often a quiet run is looked at while it is followed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What cannot be an id is the id of no run.
fn run_id(run: &str) -> Result<RunId, RunsError> {
    RunId::new(run).map_err(|_| RunsError::NoRun { run: run.to_owned() })
}

fn start_after(after: u64) -> Start {
    match after {
        0 => Start::Beginning,
        after => Start::After(Seq(after)),
    }
}

fn record(line: &[u8]) -> Option<Record> {
    let seq = LineHead::parse(line)?.seq.0;
    Some(Record { seq, json: std::str::from_utf8(line.trim_ascii_end()).ok()?.into() })
}

fn to_value(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// A playbook that cannot run, as an entry of the list.
fn broken(name: &str, diagnostic: &Diagnostic) -> Value {
    let mut entry = Map::new();
    entry.insert("name".into(), name.into());
    entry.insert("description".into(), format!("Broken: {diagnostic}").into());
    entry.insert("error".into(), diagnostic.to_string().into());
    Value::Object(entry)
}

fn finding(diagnostic: &Diagnostic) -> Finding {
    let Diagnostic { severity, origin: _, line, column, message, help } = diagnostic;
    let message = match help {
        Some(help) => format!("{message}; {help}"),
        None => message.clone(),
    };
    let place = |n: &usize| u32::try_from(*n).unwrap_or(u32::MAX);
    Finding { error: *severity == Severity::Error, line: place(line), column: place(column), message }
}

fn parse_status(text: &str) -> Result<RunStatus, BackendError> {
    serde_json::from_value(Value::from(text)).map_err(|_| {
        let message = format!("{text:?} is no status: use running, suspended, done, halt, cancelled or interrupted");
        BackendError::new(BackendErrorKind::Invalid, message)
    })
}

//! Sending the events of a run that happens here to a server, each once, whatever happens to the connection.

mod machine;

use std::{collections::VecDeque, num::NonZeroU64};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use taffrail_mcp_core::{CancelRequested, ProducerId, RunId, Snapshot, ThreadId};
use tokio::time::{Instant, sleep_until, timeout_at};

use self::machine::{Begun, Machine, Step, Verdict};
use super::{Client, ClientError, IngestAnswer, IngestBatch, StartRun, jitter};

/// A failure that is over with the next try is nobody's business.
const TOLD_AFTER: u32 = 2;

/// Events that go together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Newline-ended JSON objects.
    pub lines: Bytes,
    /// How many.
    pub count: u64,
    /// The run's `run-finished` is the last of them: nothing comes after.
    pub last: bool,
}

/// Where the events are kept until the server has them: numbered from 1 on, and the same whenever they are read.
pub trait Source: Send {
    /// Events from a number on, as many as are there and have about so many bytes together; one whatever it has; none
    /// when there are none yet. The future may be dropped at any time.
    fn read(&mut self, from: NonZeroU64, most_bytes: usize) -> impl Future<Output = Batch> + Send;

    /// Waits until there may be more than the last read found. The future may be dropped at any time.
    fn more(&mut self) -> impl Future<Output = ()> + Send;
}

/// A run that is to be made there.
#[derive(Debug, Clone, PartialEq)]
pub struct PushRun {
    /// The log that it goes to.
    pub thread: ThreadId,
    /// How it is started. Has an idempotency key, so that trying again makes no second one.
    pub start: StartRun,
    /// Its id there, when it is known to be made.
    pub made: Option<RunId>,
    /// Who numbers the events; the same for all events of the run.
    pub producer: ProducerId,
    /// Everything up to this number has arrived, as far as is known. The server corrects it.
    pub acknowledged: u64,
}

/// How the sending goes.
#[derive(Debug, Clone, PartialEq)]
pub enum Pushed {
    /// The run is there.
    Made(Box<Snapshot>),
    /// All events up to this number have arrived.
    Acknowledged(u64),
    /// Somebody asked the server for the run's end: end it here.
    Cancel(CancelRequested),
    /// The server is away, or refuses for the moment; it is tried again for ever. Told when it has failed twice.
    Lost {
        /// What happened.
        why: String,
    },
    /// All is well again.
    Restored,
    /// Everything has arrived. The last item.
    Done,
}

/// Sends the events of a run. Made by [`Client::push`].
///
/// Holds one batch, of 1 MiB at most. Dropping it ends the sending; what was not acknowledged is sent by the next one.
pub struct Push<S> {
    client: Client,
    run: PushRun,
    source: S,
    machine: Machine,
    io: Option<BoxFuture<'static, Result<Answer, ClientError>>>,
    ready: VecDeque<Pushed>,
    /// Failures since something was taken.
    failures: u32,
    cancel: Option<CancelRequested>,
    failed: Option<ClientError>,
    over: bool,
}

/// What the server answered.
enum Answer {
    Made(Box<Snapshot>),
    Taken(IngestAnswer),
}

impl Client {
    /// Sends the events of a run that happens here, from a source. Nothing is sent before the first item is asked for.
    pub fn push<S: Source>(&self, run: PushRun, source: S) -> Push<S> {
        let retry = self.caller.config().retry;
        let machine = Machine::new(Instant::now(), retry, run.made.is_some(), run.acknowledged.saturating_add(1));
        Push {
            client: self.clone(),
            run,
            source,
            machine,
            io: None,
            ready: VecDeque::new(),
            failures: 0,
            cancel: None,
            failed: None,
            over: false,
        }
    }
}

impl<S: Source> Push<S> {
    /// What happens next; `None` after [`Pushed::Done`] and after an error. May be dropped at any time without losing
    /// anything.
    ///
    /// # Errors
    ///
    /// [`ClientError`] when trying again would be in vain: the token is not accepted, the run is not there any more or
    /// is over.
    pub async fn next(&mut self) -> Option<Result<Pushed, ClientError>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.over |= item == Pushed::Done;
                return Some(Ok(item));
            }
            if let Some(error) = self.failed.take() {
                self.over = true;
                return Some(Err(error));
            }
            if self.over {
                return None;
            }
            self.drive().await;
        }
    }

    /// There is little time left: tries again at once, and more often from now on.
    pub fn hurry(&mut self) {
        self.machine.hurry();
    }

    async fn drive(&mut self) {
        match self.machine.step(Instant::now()) {
            Step::Done => self.ready.push_back(Pushed::Done),
            Step::Wait { until } => sleep_until(until).await,
            Step::Idle { until } => {
                if timeout_at(until, self.source.more()).await.is_ok() {
                    self.machine.more();
                }
            }
            Step::GoOn => {
                let Some(io) = &mut self.io else { return };
                let answer = io.await;
                self.io = None;
                self.take(answer);
            }
            Step::Make => {
                let (client, run) = (self.client.clone(), self.run.clone());
                self.begin(Begun::Making, async move {
                    client.start(&run.thread, &run.start).await.map(|snapshot| Answer::Made(Box::new(snapshot)))
                });
            }
            Step::Beat { next } => self.ingest(Begun::Beating, next, Bytes::new()),
            Step::Send { from, most_bytes } => {
                let number = NonZeroU64::new(from).unwrap_or(NonZeroU64::MIN);
                let Batch { lines, count, last } = self.source.read(number, most_bytes).await;
                match count {
                    0 => self.machine.nothing(),
                    count => self.ingest(Begun::Sending { count, bytes: lines.len(), last }, from, lines),
                }
            }
        }
    }

    fn begin(&mut self, begun: Begun, io: impl Future<Output = Result<Answer, ClientError>> + Send + 'static) {
        self.machine.begin(Instant::now(), begun);
        self.io = Some(Box::pin(io));
    }

    fn ingest(&mut self, begun: Begun, first: u64, lines: Bytes) {
        let Some(run) = self.run.made.clone() else { return };
        let first = NonZeroU64::new(first).unwrap_or(NonZeroU64::MIN);
        let batch = IngestBatch { producer: self.run.producer.clone(), first, lines };
        let client = self.client.clone();
        self.begin(begun, async move { client.ingest(&run, &batch).await.map(Answer::Taken) });
    }

    fn take(&mut self, answer: Result<Answer, ClientError>) {
        let now = Instant::now();
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                match self.machine.failed(now, &error, jitter::random()) {
                    Verdict::Corrected => {}
                    Verdict::GiveUp => self.failed = Some(error),
                    Verdict::Again => {
                        self.failures = self.failures.saturating_add(1);
                        if self.failures == TOLD_AFTER {
                            self.ready.push_back(Pushed::Lost { why: error.to_string() });
                        }
                    }
                }
                return;
            }
        };
        let before = self.run.acknowledged;
        self.run.acknowledged = self.machine.accepted(now);
        if std::mem::take(&mut self.failures) >= TOLD_AFTER {
            self.ready.push_back(Pushed::Restored);
        }
        match answer {
            Answer::Made(snapshot) => {
                self.run.made = Some(snapshot.run.clone());
                self.ready.push_back(Pushed::Made(snapshot));
            }
            Answer::Taken(IngestAnswer { cancel, .. }) => {
                if self.run.acknowledged != before {
                    self.ready.push_back(Pushed::Acknowledged(self.run.acknowledged));
                }
                if cancel.is_some() && cancel != self.cancel {
                    self.ready.extend(cancel.clone().map(Pushed::Cancel));
                    self.cancel = cancel;
                }
            }
        }
    }
}

impl<S> std::fmt::Debug for Push<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Push").field("run", &self.run.made).field("machine", &self.machine).finish_non_exhaustive()
    }
}

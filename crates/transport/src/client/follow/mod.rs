//! Following a run or a thread, whatever happens to the connection.

mod connect;
mod machine;

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::{Stream, stream};
use reqwest::StatusCode;
use taffrail_mcp_core::{Gap, RunId, Seq, Snapshot, Start, ThreadId};
use tokio::time::{Instant, sleep_until};

use self::{
    connect::{Io, Told},
    machine::{Failure, Machine, Order, Outlook, Step, Verdict},
};
use super::{Client, ClientError, Entry, EventPage, jitter};

/// What is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// One run, to its end. A suspension is none.
    Run(RunId),
    /// All that is written to a thread, for ever.
    Thread(ThreadId),
}

impl From<RunId> for Target {
    fn from(run: RunId) -> Self {
        Self::Run(run)
    }
}

impl From<ThreadId> for Target {
    fn from(thread: ThreadId) -> Self {
        Self::Thread(thread)
    }
}

/// What a follower brings.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// A record: each once, in order.
    Record {
        /// Its position.
        seq: Seq,
        /// Exactly as it is stored, with a newline.
        line: Bytes,
    },
    /// Records that can no longer be had.
    Gap(Gap),
    /// For people who watch: how the following goes. Nothing is lost by it.
    Connection(Connection),
    /// The run is over. The last item.
    End(Box<Snapshot>),
}

/// How the following goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// The server is away, or connections break before they bring anything; it is tried again for ever. A connection
    /// that ends and is made again at once is not told.
    Lost {
        /// What happened.
        why: String,
    },
    /// No stream comes through: the log is asked for page by page, and records come a little later.
    Polling,
    /// All is well again.
    Restored,
}

/// Reads a run or a thread from a position on, through restarts of the server, broken connections and proxies that hold
/// streams back. Made by [`Client::follow`].
///
/// It holds what one read from the connection brought, and nothing else: who does not ask slows down the server's
/// stream and nobody else. Dropping it closes the connection.
#[derive(Debug)]
pub struct Follow {
    client: Client,
    target: Target,
    start: Start,
    machine: Machine,
    order: Order,
    io: Io,
    ready: VecDeque<Followed>,
    failed: Option<ClientError>,
    /// Whether the server has answered as one does.
    known: bool,
    /// What was last told of the connection, if that was no good news.
    trouble: Option<Connection>,
    over: bool,
}

impl Client {
    /// Follows a run or a thread from a position on. Nothing is sent before the first item is asked for.
    pub fn follow(&self, target: impl Into<Target>, start: Start) -> Follow {
        let target = target.into();
        let position = match start {
            Start::After(seq) => Some(seq),
            Start::Beginning | Start::Live => None,
        };
        let is_run = matches!(target, Target::Run(_));
        Follow {
            client: self.clone(),
            target,
            start,
            machine: Machine::new(self.caller.config().follow, self.caller.config().retry, is_run),
            order: Order::new(position, !is_run),
            io: Io::Idle,
            ready: VecDeque::new(),
            failed: None,
            known: false,
            trouble: None,
            over: false,
        }
    }
}

impl Follow {
    /// The next item; `None` after [`Followed::End`] and after an error. May be dropped at any time without losing
    /// anything.
    ///
    /// # Errors
    ///
    /// [`ClientError::Refused`] when there is no such run, the token is not accepted, or the position is past the end;
    /// [`ClientError::Missing`] when the server leaves records out; [`ClientError::Blocked`] for a thread whose stream
    /// something holds back. What may pass is no error: it is tried again for ever.
    pub async fn next(&mut self) -> Option<Result<Followed, ClientError>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.over |= matches!(item, Followed::End(_));
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

    /// The position up to which everything was brought; `None` before the first record.
    pub fn position(&self) -> Option<Seq> {
        self.order.position
    }

    /// The same as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Followed, ClientError>> + Send + Unpin {
        Box::pin(stream::unfold(self, |mut follow| async { follow.next().await.map(|item| (item, follow)) }))
    }

    /// One step: begins what is to be begun, or waits for what was.
    async fn drive(&mut self) {
        match self.machine.step(Instant::now()) {
            Step::GoOn => {}
            // What came before does not matter any more.
            Step::Wait { until } => {
                self.io = Io::Idle;
                sleep_until(until).await;
                return;
            }
            Step::Stream => self.io = Io::open(&self.client, &self.target, self.start, self.order.position),
            Step::Poll { wait } => self.io = Io::poll(&self.client, &self.target, self.order.position, wait),
            Step::Snapshot => self.io = Io::ask(&self.client, &self.target),
        }
        let deadline = self.machine.deadline();
        let told = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, self.io.next()).await.unwrap_or(Told::TooLate),
            None => self.io.next().await,
        };
        self.take(told);
    }

    fn take(&mut self, told: Told) {
        let now = Instant::now();
        match told {
            Told::Start(position) => {
                // What `live` means is settled now, for the first connection and all that follow.
                self.start = Start::After(position);
                self.order.position = Some(position);
                self.io = Io::open(&self.client, &self.target, self.start, self.order.position);
            }
            Told::Opened => {
                self.known = true;
                self.machine.opened(now);
            }
            Told::Piece(pieces) => {
                let mut progress = false;
                for piece in pieces {
                    progress |= self.piece(piece, now);
                }
                if self.failed.is_none() {
                    let well = self.machine.heard(now, progress);
                    self.restored(now, well);
                }
            }
            Told::Ended if matches!(self.target, Target::Thread(_)) => {
                self.failed = Some(self.client.caller.malformed("a thread has no end"));
            }
            Told::Ended => self.machine.ended(),
            Told::Page(page) => self.page(page, now),
            Told::Snapshot(snapshot) if snapshot.status.ended() => self.ready.push_back(Followed::End(snapshot)),
            Told::Snapshot(_) => {
                self.known = true;
                self.machine.goes_on(now, jitter::random());
                self.tell(Connection::Polling);
            }
            Told::Closed(why) => self.lost(Failure::Closed, why, now),
            Told::NoStream(why) => self.lost(Failure::NoStream, why, now),
            Told::TooLate => self.lost(Failure::TooLate, "nothing has come for too long".to_owned(), now),
            Told::Failed(error) => self.refused(error, now),
        }
    }

    /// Takes in one thing that a stream brought. Whether it was progress.
    fn piece(&mut self, piece: connect::Piece, now: Instant) -> bool {
        match piece {
            // What comes after an end, an error or a hole belongs to nothing.
            _ if self.failed.is_some() || matches!(self.io, Io::Idle) => false,
            connect::Piece::Retry(after) => {
                self.machine.retry(after);
                false
            }
            connect::Piece::Record { seq, line } => self.record(seq, line, now),
            connect::Piece::Gap(gap) => self.gap(gap),
            connect::Piece::End(snapshot) => {
                self.ready.push_back(Followed::End(snapshot));
                self.io = Io::Idle;
                true
            }
            connect::Piece::Wrong(what) => {
                self.failed = Some(self.client.caller.malformed(what));
                false
            }
        }
    }

    fn record(&mut self, seq: Seq, line: Bytes, now: Instant) -> bool {
        match self.order.record(seq) {
            Verdict::New => self.ready.push_back(Followed::Record { seq, line }),
            Verdict::Seen => return false,
            Verdict::Missing { expected } if self.order.missing_again(expected) => {
                self.failed = Some(ClientError::Missing { expected, found: seq });
                return false;
            }
            Verdict::Missing { expected } => {
                self.lost(Failure::Closed, format!("record {expected} is missing"), now);
                self.io = Io::Idle;
                return false;
            }
        }
        true
    }

    fn gap(&mut self, gap: Gap) -> bool {
        let new = self.order.gap(gap.to);
        if new {
            self.ready.push_back(Followed::Gap(gap));
        }
        new
    }

    fn page(&mut self, page: EventPage, now: Instant) {
        let EventPage { entries, next, done, .. } = page;
        self.known = true;
        let empty = entries.is_empty();
        for entry in entries {
            match entry {
                Entry::Record { seq, line } => _ = self.record(seq, line, now),
                Entry::Gap(gap) => _ = self.gap(gap),
            }
        }
        if self.order.position.is_none_or(|position| next > position) {
            self.order.position = Some(next);
        }
        self.machine.page(now, empty);
        self.restored(now, true);
        if done {
            self.machine.ended();
        }
    }

    fn lost(&mut self, failure: Failure, why: String, now: Instant) {
        match self.machine.failed(now, failure, jitter::random()) {
            Outlook::Usual => {}
            Outlook::Blocked => {
                self.failed = Some(ClientError::Blocked { server: self.client.server().to_string() });
            }
            Outlook::Trouble if self.machine.is_polling(now) => self.tell(Connection::Polling),
            Outlook::Trouble => self.tell(Connection::Lost { why }),
        }
    }

    fn refused(&mut self, error: ClientError, now: Instant) {
        // Where a server was, something else may answer for a while: a page to sign in at, say.
        let passing = self.known && matches!(&error, ClientError::NotTaffrail { status: 200..=299, .. });
        if !self.machine.refused(now, &error, jitter::random()) && !passing {
            self.failed = Some(error);
            return;
        }
        self.tell(Connection::Lost { why: error.to_string() });
    }

    /// Tells trouble once, not with each failure of the same kind.
    fn tell(&mut self, trouble: Connection) {
        let same = |told: &Connection| std::mem::discriminant(told) == std::mem::discriminant(&trouble);
        if !self.trouble.as_ref().is_some_and(same) {
            self.ready.push_back(Followed::Connection(trouble.clone()));
        }
        self.trouble = Some(trouble);
    }

    /// The connection brought something; `well` when that was more than a first sign of life.
    fn restored(&mut self, now: Instant, well: bool) {
        if !well || self.trouble.is_none() {
            return;
        }
        if self.machine.is_polling(now) {
            self.tell(Connection::Polling);
        } else {
            self.trouble = None;
            // Told before what the connection brought.
            self.ready.push_front(Followed::Connection(Connection::Restored));
        }
    }
}

/// Whether a status says that there is nothing more.
const fn is_over(status: StatusCode) -> bool {
    status.as_u16() == StatusCode::NO_CONTENT.as_u16()
}

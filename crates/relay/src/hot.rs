//! A thread that somebody in this process writes or follows.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use taffrail_mcp_core::{RunFold, RunId, Seq, ThreadId, Timestamp};
use tokio::sync::{Notify, oneshot, watch};

use crate::{
    Config, Numbered, RelayError, StoreError,
    gathering::Gathering,
    readers::{Pacer, Readers},
    ring::{Ring, Step},
    sequencer::{Answer, Answered, Handover, Numbering, Pending},
    writer::Taken,
};

/// Takes a lock whose holders never leave half a change behind, so that a panic elsewhere cannot spread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Everything shared about one hot thread.
#[derive(Debug)]
pub(crate) struct Hot {
    pub(crate) thread: ThreadId,
    config: Config,
    incoming: Mutex<Incoming>,
    room: Notify,
    ring: Mutex<Ring>,
    pub(crate) readers: Arc<Readers>,
    durable: watch::Sender<u64>,
    numbering: Mutex<Numbering>,
}

#[derive(Debug, Default)]
struct Incoming {
    pending: Pending,
    /// Records ever accepted.
    accepted: u64,
    /// Encoded bytes accepted and not yet durable: pending, or in the writer's hands.
    held: usize,
    /// Waits in the writer's queue.
    queued: bool,
}

impl Hot {
    pub(crate) fn new(thread: ThreadId, config: Config, head: Seq, pacer: Pacer) -> Self {
        let numbering = Numbering { thread: thread.clone(), head, ts: Timestamp::default(), folds: BTreeMap::new() };
        Self {
            thread,
            config,
            incoming: Mutex::default(),
            room: Notify::new(),
            ring: Mutex::new(Ring::new(head, config.ring_bytes)),
            readers: Readers::new(head, pacer),
            durable: watch::Sender::new(0),
            numbering: Mutex::new(numbering),
        }
    }

    /// Accepts events whatever is pending, up to the cap of `emit`. Returns whether the writer must be told.
    pub(crate) fn accept(&self, new: Handover<'_>) -> Result<bool, RelayError> {
        let mut incoming = lock(&self.incoming);
        if incoming.held > self.config.emit_bytes {
            return Err(RelayError::Overloaded { run: new.run.clone() });
        }
        Ok(incoming.push(new))
    }

    /// Puts a remark of the relay before everything that is pending. Returns whether the writer must be told.
    pub(crate) fn remark(&self, new: Handover<'_>) -> bool {
        let mut incoming = lock(&self.incoming);
        incoming.held += new.bodies.len();
        incoming.pending.push_remark(new);
        !std::mem::replace(&mut incoming.queued, true)
    }

    /// Accepts events when there is room for them; gives them back when there is none.
    pub(crate) fn accept_with_room<'a>(&self, new: Handover<'a>) -> Result<bool, Handover<'a>> {
        let mut incoming = lock(&self.incoming);
        // One batch always fits, however large, so that it cannot wait for ever.
        if incoming.held > 0 && incoming.held + new.bodies.len() > self.config.room_bytes {
            return Err(new);
        }
        Ok(incoming.push(new))
    }

    /// Accepts what came from elsewhere, when there is room for it. Returns whether the writer must be told, or nothing
    /// when there is no room.
    pub(crate) fn accept_arrival(
        &self,
        new: &[Handover<'_>],
        numbered: Option<&Numbered>,
    ) -> Option<(bool, oneshot::Receiver<Answer>)> {
        let bytes = new.iter().map(|new| new.bodies.len()).sum::<usize>();
        let mut incoming = lock(&self.incoming);
        if incoming.held > 0 && incoming.held + bytes > self.config.room_bytes {
            return None;
        }
        let (reply, answer) = oneshot::channel();
        incoming.accepted += new.iter().map(|new| new.count).sum::<u64>();
        incoming.held += bytes;
        incoming.pending.push_arrival(new, numbered.cloned(), reply);
        Some((!std::mem::replace(&mut incoming.queued, true), answer))
    }

    /// Resolves when room may have come.
    pub(crate) fn room(&self) -> &Notify {
        &self.room
    }

    /// Records accepted so far.
    pub(crate) fn accepted(&self) -> u64 {
        lock(&self.incoming).accepted
    }

    /// How many of the accepted records are durable.
    pub(crate) fn durable(&self) -> watch::Receiver<u64> {
        self.durable.subscribe()
    }

    /// Takes a group's worth for the writer; tells whether more is left.
    pub(crate) fn take(&self, max_bytes: usize) -> (Pending, bool) {
        let mut incoming = lock(&self.incoming);
        let taken = incoming.pending.take(max_bytes);
        incoming.queued = !incoming.pending.is_empty();
        (taken, incoming.queued)
    }

    /// The writer's numbering. Its folds are those of runs that it writes for; the index of the store has the others.
    pub(crate) fn numbering(&self) -> MutexGuard<'_, Numbering> {
        lock(&self.numbering)
    }

    /// What the writer took is durable: shows it to readers, and makes room.
    pub(crate) fn written(&self, taken: &mut Pending, blocks: &[crate::Block], answers: Vec<Answered>) {
        lock(&self.ring).push(blocks);
        taken.answer(answers);
        lock(&self.incoming).held -= taken.bytes();
        self.durable.send_modify(|durable| *durable += taken.count());
        self.room.notify_waiters();
        // After those who wait for their answers: who is woken last runs first, and readers are what an event is for.
        self.wake_readers();
    }

    /// A commit beside the writer has stored these blocks. The writer's next append is a conflict, which tells it: only
    /// the writer itself changes what it numbers by, or it could learn of a run and of the head at different times.
    pub(crate) fn committed(&self, ts: Timestamp, blocks: &[crate::Block]) {
        {
            let mut numbering = lock(&self.numbering);
            numbering.ts = numbering.ts.max(ts);
        }
        lock(&self.ring).push(blocks);
        self.wake_readers();
    }

    /// The store has records up to `head`. Tells whether another process has written them.
    ///
    /// What our writer is about to show may be there already; taken for somebody else's, it would have to be read by
    /// everybody from the store.
    pub(crate) fn is_stored_up_to(&self, head: Seq) -> bool {
        let foreign = head > self.numbering().head;
        if foreign {
            self.advance(head);
        }
        foreign
    }

    /// Another process has written up to `head`.
    pub(crate) fn advance(&self, head: Seq) {
        if lock(&self.ring).advance(head) {
            self.wake_readers();
        }
    }

    fn wake_readers(&self) {
        self.readers.wake(self.head());
    }

    /// The ring's answer for a position.
    pub(crate) fn step(&self, after: Seq, max_bytes: usize) -> Step {
        let step = lock(&self.ring).step(after, max_bytes);
        // A position in what our writer has just stored and is about to show.
        if matches!(step, Step::Ahead(_)) && after <= self.numbering().head { Step::Wait } else { step }
    }

    /// The last durable record known here.
    pub(crate) fn head(&self) -> Seq {
        lock(&self.ring).head()
    }
}

impl Incoming {
    fn push(&mut self, new: Handover<'_>) -> bool {
        self.accepted += new.count;
        self.held += new.bodies.len();
        self.pending.push(new);
        !std::mem::replace(&mut self.queued, true)
    }
}

/// What is shared between a relay, its publishers and its writer.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    pub(crate) wake: Notify,
    /// Why nothing is being written; `None` while all is well.
    pub(crate) health: watch::Sender<Option<StoreError>>,
    /// Whoever has it writes.
    pub(crate) turn: Arc<tokio::sync::Mutex<()>>,
    pub(crate) gathering: Gathering,
    /// What somebody had begun to write when its runtime ended.
    pub(crate) left: Mutex<Vec<Taken>>,
}

#[derive(Debug, Default)]
struct QueueState {
    hot: VecDeque<Arc<Hot>>,
    closing: bool,
}

impl Queue {
    pub(crate) fn new() -> Self {
        let (turn, gathering, left) = (Arc::default(), Gathering::default(), Mutex::default());
        Self { state: Mutex::default(), wake: Notify::new(), health: watch::Sender::new(None), turn, gathering, left }
    }

    /// As [`Queue::push`], for somebody who may write it at once.
    pub(crate) fn push_quietly(&self, hot: Arc<Hot>) {
        lock(&self.state).hot.push_back(hot);
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.state).hot.is_empty()
    }

    /// Tells the writer that a thread has something pending.
    pub(crate) fn push(&self, hot: Arc<Hot>) {
        lock(&self.state).hot.push_back(hot);
        self.wake.notify_one();
    }

    pub(crate) fn pop(&self) -> Option<Arc<Hot>> {
        lock(&self.state).hot.pop_front()
    }

    /// The writer ends when the queue is empty.
    pub(crate) fn close(&self) {
        lock(&self.state).closing = true;
        self.wake.notify_one();
    }

    /// Nothing is waiting and nothing will.
    pub(crate) fn finished(&self) -> bool {
        let state = lock(&self.state);
        state.closing && state.hot.is_empty() && lock(&self.left).is_empty()
    }
}

/// The runs whose state a group changed, as the store wants them.
pub(crate) fn changed_folds(numbering: &Numbering, runs: &[RunId]) -> Vec<RunFold> {
    runs.iter().filter_map(|run| numbering.folds.get(run)).cloned().collect()
}

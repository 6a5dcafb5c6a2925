//! The state of a run as a fold of its log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    ApprovalRequested, Arrived, CancelRequested, CheckpointClaimed, Clipped, Event, Ingest, PendingApproval,
    ProducerId, Reason, Record, RunId, RunStatus, Seq, Snapshot, ThreadId, Timestamp, Usage, snapshot,
};

/// Everything that is known about a run without reading its log again.
///
/// A pure function of the run's records in order: folding the stored log gives what the writer folded as it wrote, so
/// the index of runs can be thrown away and made anew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFold {
    /// Version of this document; 1.
    pub version: u32,
    /// The run.
    pub run: RunId,
    /// Its log.
    pub thread: ThreadId,
    /// The playbook's name; empty before the first `run-start`.
    pub playbook: String,
    /// Whether it goes on.
    pub status: RunStatus,
    /// The state of the outermost playbook that started last.
    pub state: Option<String>,
    /// When the run was first started.
    pub started_at: Timestamp,
    /// When it was last started or resumed.
    pub resumed_at: Timestamp,
    /// When its last record was accepted.
    pub updated_at: Timestamp,
    /// Its first record.
    pub first: Seq,
    /// Its last record.
    pub last: Seq,
    /// The record that last changed its state: it started, went on, entered a state, or ended.
    pub changed: Seq,
    /// Why it is not `done`.
    pub error: Option<Reason>,
    /// The error in words.
    pub detail: Option<String>,
    /// Where it ended or waits.
    pub at: Option<String>,
    /// What it waits for.
    pub approval: Option<PendingApproval>,
    /// Its last checkpoint that nobody has claimed, and where that stands.
    pub checkpoint: Option<(String, Seq)>,
    /// Set between a request to cancel and the end.
    pub cancel: Option<CancelRequested>,
    /// What it has used; `wall_ms` without the time since `resumed_at` while it runs.
    pub usage: Usage,
    /// How the process of the last state of the outermost playbook ended: `exec` passes it on.
    pub exit: Option<crate::Exit>,
    /// It lives elsewhere, and its events are sent here.
    #[serde(default, skip_serializing_if = "crate::event::is_false")]
    pub external: bool,
    /// How far the events of those who number theirs have arrived.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub producers: BTreeMap<ProducerId, Arrived>,
}

impl RunFold {
    /// Version of the document that this program writes.
    pub const VERSION: u32 = 1;

    /// A run without records.
    pub fn new(run: RunId, thread: ThreadId) -> Self {
        Self {
            version: Self::VERSION,
            run,
            thread,
            playbook: String::new(),
            status: RunStatus::Running,
            state: None,
            started_at: Timestamp::default(),
            resumed_at: Timestamp::default(),
            updated_at: Timestamp::default(),
            first: Seq::START,
            last: Seq::START,
            changed: Seq::START,
            error: None,
            detail: None,
            at: None,
            approval: None,
            checkpoint: None,
            cancel: None,
            usage: Usage::default(),
            exit: None,
            external: false,
            producers: BTreeMap::new(),
        }
    }

    /// Notes that records up to `seq` were written, `lines` lines of process output with `bytes` bytes among them.
    ///
    /// A run's very first record must be noted by itself, for its place and time are kept.
    pub fn wrote(&mut self, seq: Seq, ts: Timestamp, lines: u64, bytes: u64) {
        if self.first == Seq::START {
            self.first = seq;
            self.started_at = ts;
            self.resumed_at = ts;
        }
        self.last = self.last.max(seq);
        self.updated_at = self.updated_at.max(ts);
        let usage = &mut self.usage;
        // Saturating, here and below: a run from elsewhere may say any number.
        usage.log_lines = usage.log_lines.saturating_add(lines);
        usage.log_bytes = usage.log_bytes.saturating_add(bytes);
    }

    /// Takes in one stored record.
    pub fn apply_record(&mut self, record: &Record) {
        let (lines, bytes) = match &record.event {
            Event::Log(log) => (log.lines(), log.bytes()),
            _ => (0, 0),
        };
        self.wrote(record.seq, record.ts, lines, bytes);
        self.apply(record.seq, record.ts, &record.event);
        if let Some(ingest) = record.ingest() {
            self.ingested(&ingest, record.seq);
        }
    }

    /// The events of a batch have arrived, the last of them at `seq`.
    pub fn ingested(&mut self, ingest: &Ingest, seq: Seq) {
        let Ingest { producer, first, last } = ingest;
        self.producers.insert(producer.clone(), Arrived { first: first.get(), last: *last, seq });
    }

    /// Takes in one event at its place; [`RunFold::wrote`] does the counting.
    pub fn apply(&mut self, seq: Seq, ts: Timestamp, event: &Event) {
        if matches!(
            event,
            Event::RunStart(_) | Event::StateStart(_) | Event::RunFinished(_) | Event::ApprovalResolved(_)
        ) {
            self.changed = seq;
        }
        match event {
            Event::RunStart(start) if start.depth == 0 => {
                self.playbook.clone_from(&start.machine);
                self.status = RunStatus::Running;
                self.resumed_at = ts;
                self.external |= start.external;
                (self.error, self.detail, self.at, self.cancel) = (None, None, None, None);
            }
            Event::StateStart(start) => {
                self.usage.steps = self.usage.steps.max(start.step);
                if start.depth == 0 {
                    self.state = Some(start.state.clone());
                }
            }
            Event::StateDone(done) if done.depth == 0 => self.exit.clone_from(&done.exit),
            Event::RunFinished(end) if end.depth == 0 => {
                // The engine's own count, which leaves out what starting and stopping cost. Who does not count (a run
                // from elsewhere, a cancel while it rests) says nothing new; then the log's times count.
                self.usage.wall_ms = match end.usage.wall_ms {
                    counted if counted > self.usage.wall_ms => counted,
                    _ => self.usage_at(ts).wall_ms,
                };
                self.status = end.status;
                self.error.clone_from(&end.error);
                self.detail.clone_from(&end.detail);
                self.at.clone_from(&end.at);
                self.cancel = None;
                if end.status.is_final() {
                    (self.approval, self.checkpoint) = (None, None);
                }
            }
            Event::ApprovalRequested(event) => self.request(event),
            Event::ApprovalResolved(event) => {
                if let Some(pending) = &mut self.approval {
                    pending.resolve(event);
                }
            }
            Event::Clipped(Clipped { lines, bytes, .. }) => {
                let usage = &mut self.usage;
                usage.clipped_lines = usage.clipped_lines.saturating_add(*lines);
                usage.clipped_bytes = usage.clipped_bytes.saturating_add(*bytes);
            }
            Event::Checkpoint(event) => self.checkpoint = Some((event.checkpoint.clone(), seq)),
            Event::CheckpointClaimed(event) => self.claim(event),
            Event::CancelRequested(event) if !self.status.is_final() => self.cancel = Some(event.clone()),
            _ => {}
        }
    }

    /// The run goes on from its checkpoint: what it waited for is settled.
    fn claim(&mut self, event: &CheckpointClaimed) {
        if self.checkpoint.take_if(|(id, _)| *id == event.checkpoint).is_some() {
            self.approval = None;
        }
    }

    fn request(&mut self, event: &ApprovalRequested) {
        self.approval = Some(snapshot::PendingApproval::requested(event));
    }

    /// What it used up to `now`.
    pub fn usage_at(&self, now: Timestamp) -> Usage {
        let mut usage = self.usage;
        if self.status == RunStatus::Running && self.first != Seq::START {
            let since = now.micros().saturating_sub(self.resumed_at.micros()) / 1000;
            usage.wall_ms = usage.wall_ms.saturating_add(since);
        }
        usage
    }

    /// The snapshot at `now`, when the thread's last position is `head`.
    pub fn snapshot(&self, head: Seq, now: Timestamp) -> Snapshot {
        let usage = self.usage_at(now);
        let resumable = matches!(self.status, RunStatus::Suspended | RunStatus::Interrupted);
        Snapshot {
            run: self.run.clone(),
            thread: self.thread.clone(),
            playbook: self.playbook.clone(),
            status: self.status,
            state: self.state.clone(),
            step: usage.steps,
            head,
            started_at: self.started_at,
            elapsed_ms: usage.wall_ms,
            error: self.error.clone(),
            detail: self.detail.clone(),
            at: self.at.clone(),
            approval: self.approval.clone().filter(|_| self.status == RunStatus::Suspended),
            checkpoint: self.checkpoint.as_ref().filter(|_| resumable).map(|(id, _)| id.clone()),
            usage,
            spool: None,
            next: String::new(),
        }
    }
}

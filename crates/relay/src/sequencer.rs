//! Numbers pending events, composes records, closes blocks. No I/O, no clock.
//!
//! Publishers encode the bodies of their events and put them into [`Pending`], in the order that will be the log's.
//! [`compose`] then writes, for each, the common fields with the next number before the body, and cuts the lines into
//! blocks. Pending events stay as they are until their blocks are durable: when another writer of the same thread was
//! faster, they are composed again after the new head.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use taffrail_mcp_core::{Event, EventBatch, RecordHead, RunFold, RunId, Seq, ThreadId, Timestamp};
use tokio::sync::oneshot;

use crate::{
    Block, Numbered, Receipt, RelayError,
    admission::{Admission, marked, output},
};

/// A chunk is closed at this size, so that `emit` never pays for moving a large buffer.
const CHUNK_BYTES: usize = 256 * 1024;
/// The same for the list of segments; 4,096 are 160 KiB.
const CHUNK_SEGMENTS: usize = 4096;

/// Encoded events of one run that were accepted together.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Index into [`Pending::writers`].
    writer: u32,
    /// Records.
    count: u32,
    /// Bytes of their bodies.
    bytes: u32,
    /// Lines of process output that they complete.
    lines: u32,
    /// Their bytes as read.
    line_bytes: u64,
    /// When they were accepted.
    ts: Timestamp,
    /// Index into [`Chunk::arrivals`], for events from elsewhere.
    arrival: Option<u32>,
}

/// What somebody elsewhere waits for.
#[derive(Debug)]
struct Waiting {
    numbered: Option<Numbered>,
    /// Events of it.
    count: u64,
    reply: Option<oneshot::Sender<Answer>>,
}

/// What became of an arrival.
pub(crate) type Answer = Result<Receipt, RelayError>;

#[derive(Debug, Default)]
struct Chunk {
    bodies: Vec<u8>,
    segments: Vec<Segment>,
    /// Events that change a run's state: their segment, their index in it, themselves.
    folding: Vec<(u32, u64, Event)>,
    /// The relay's own, see [`Pending::push_remark`].
    remark: bool,
    arrivals: Vec<Waiting>,
}

impl Chunk {
    fn push(&mut self, writer: u32, new: Handover<'_>, arrival: Option<u32>) {
        let Handover { run: _, fence: _, ts, bodies, count, lines, line_bytes, folding } = new;
        self.bodies.extend_from_slice(bodies);
        let segment = u32::try_from(self.segments.len()).unwrap_or(u32::MAX);
        self.folding.extend(folding.iter().map(|(index, event)| (segment, *index, event.clone())));
        self.segments.push(Segment {
            writer,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            bytes: u32::try_from(bodies.len()).unwrap_or(u32::MAX),
            lines: u32::try_from(lines).unwrap_or(u32::MAX),
            line_bytes,
            ts,
            arrival,
        });
    }

    /// Records that a publisher handed over.
    fn accepted(&self) -> u64 {
        match self.remark {
            true => 0,
            false => self.segments.iter().map(|segment| u64::from(segment.count)).sum(),
        }
    }

    fn full(&self) -> bool {
        self.bodies.len() >= CHUNK_BYTES || self.segments.len() >= CHUNK_SEGMENTS
    }
}

/// What is accepted for one thread and not yet taken by the writer, in order.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    chunks: VecDeque<Chunk>,
    runs: Vec<RunId>,
    /// Who wrote them: a run, as its index in [`Pending::runs`], and a fence.
    writers: Vec<(u32, Option<Timestamp>)>,
    /// Records that publishers handed over.
    count: u64,
    bytes: usize,
}

/// What a publisher hands over: bodies that end in newlines, and what is known about them.
#[derive(Clone, Copy)]
pub(crate) struct Handover<'a> {
    pub(crate) run: &'a RunId,
    /// Dropped unless the run still goes on as it was started at this time.
    pub(crate) fence: Option<Timestamp>,
    pub(crate) ts: Timestamp,
    pub(crate) bodies: &'a [u8],
    pub(crate) count: u64,
    pub(crate) lines: u64,
    pub(crate) line_bytes: u64,
    pub(crate) folding: &'a [(u64, Event)],
}

impl<'a> Handover<'a> {
    /// All of a batch.
    pub(crate) fn of(run: &'a RunId, ts: Timestamp, batch: &'a EventBatch) -> Self {
        let (lines, line_bytes) = batch.output();
        let (bodies, count, folding) = (batch.bodies(), batch.len(), batch.folding());
        Self { run, fence: None, ts, bodies, count, lines, line_bytes, folding }
    }
}

impl Pending {
    /// Whether there is nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Records in it that publishers handed over.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of their bodies.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Runs with events in it.
    pub(crate) fn runs(&self) -> &[RunId] {
        &self.runs
    }

    /// Adds events at the end.
    pub(crate) fn push(&mut self, new: Handover<'_>) {
        let writer = self.writer_of(&new);
        self.count += new.count;
        self.bytes += new.bodies.len();
        if let Some(chunk) = self.room() {
            chunk.push(writer, new, None);
        }
    }

    /// Adds what came from elsewhere: in one chunk, so that it is stored together.
    pub(crate) fn push_arrival(
        &mut self,
        new: &[Handover<'_>],
        numbered: Option<Numbered>,
        reply: oneshot::Sender<Answer>,
    ) {
        let Some(writer) = new.first().map(|new| self.writer_of(new)) else { return };
        let count = new.iter().map(|new| new.count).sum();
        self.count += count;
        self.bytes += new.iter().map(|new| new.bodies.len()).sum::<usize>();
        let Some(chunk) = self.room() else { return };
        let arrival = u32::try_from(chunk.arrivals.len()).unwrap_or(u32::MAX);
        chunk.arrivals.push(Waiting { numbered, count, reply: Some(reply) });
        for new in new {
            chunk.push(writer, *new, Some(arrival));
        }
    }

    /// The chunk that takes what comes next.
    fn room(&mut self) -> Option<&mut Chunk> {
        // Nobody waits for a remark: what is waited for must not be counted with it.
        if self.chunks.back().is_none_or(|chunk| chunk.full() || chunk.remark) {
            self.chunks.push_back(Chunk::default());
        }
        self.chunks.back_mut()
    }

    /// Tells those who wait what became of their arrivals. Who does not wait any more is not missed.
    pub(crate) fn answer(&mut self, answers: Vec<Answered>) {
        for Answered { chunk, arrival, answer } in answers {
            let waiting = self.chunks.get_mut(chunk).and_then(|chunk| chunk.arrivals.get_mut(arrival as usize));
            if let Some(reply) = waiting.and_then(|waiting| waiting.reply.take()) {
                let _ = reply.send(answer);
            }
        }
    }

    /// How many wait for an answer.
    pub(crate) fn arrivals(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.arrivals.len()).sum()
    }

    /// Adds a remark of the relay's own before everything, so that it cannot come behind the end of a run that is
    /// pending. Nobody waits for it, so it does not count as accepted.
    pub(crate) fn push_remark(&mut self, new: Handover<'_>) {
        let writer = self.writer_of(&new);
        self.bytes += new.bodies.len();
        let mut chunk = Chunk { remark: true, ..Chunk::default() };
        chunk.push(writer, new, None);
        self.chunks.push_front(chunk);
    }

    fn writer_of(&mut self, new: &Handover<'_>) -> u32 {
        let run = index_of(&mut self.runs, new.run);
        index_of(&mut self.writers, &(run, new.fence))
    }

    /// Takes whole chunks from the front until `max_bytes` are reached; at least one when there is one.
    pub(crate) fn take(&mut self, max_bytes: usize) -> Pending {
        let (runs, writers) = (self.runs.clone(), self.writers.clone());
        let mut taken = Pending { runs, writers, ..Pending::default() };
        while taken.bytes < max_bytes
            && let Some(chunk) = self.chunks.pop_front()
        {
            taken.bytes += chunk.bodies.len();
            taken.count += chunk.accepted();
            taken.chunks.push_back(chunk);
        }
        self.bytes -= taken.bytes;
        self.count -= taken.count;
        if self.chunks.is_empty() {
            self.runs.clear();
            self.writers.clear();
        }
        taken
    }
}

/// The place of a value in a short list, where it is put when it is not there. What is looked for is mostly the last.
fn index_of<T: PartialEq + Clone>(list: &mut Vec<T>, value: &T) -> u32 {
    let at = match list.iter().rposition(|known| known == value) {
        Some(at) => at,
        None => {
            list.push(value.clone());
            list.len() - 1
        }
    };
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// The thread's side of composing: where numbering goes on, and what its runs are like.
#[derive(Debug, Clone)]
pub(crate) struct Numbering {
    pub(crate) thread: ThreadId,
    /// The last number given.
    pub(crate) head: Seq,
    /// Times never go backwards in a log that one process writes.
    pub(crate) ts: Timestamp,
    /// State of each run that writes here.
    pub(crate) folds: BTreeMap<RunId, RunFold>,
}

/// What came of composing.
#[derive(Debug, Default)]
pub(crate) struct Composed {
    /// To be stored.
    pub(crate) blocks: Vec<Block>,
    /// To be told once they are.
    pub(crate) answers: Vec<Answered>,
    /// Events that were dropped, because their run goes on without who wrote them.
    pub(crate) fenced: u64,
}

impl Composed {
    /// Whether an arrival is refused because of events that another process may have taken meanwhile.
    pub(crate) fn misses_events(&self) -> bool {
        self.answers.iter().any(|answered| matches!(answered.answer, Err(RelayError::Hole { .. })))
    }
}

/// The answer to an arrival, and where in [`Pending`] that is.
#[derive(Debug)]
pub(crate) struct Answered {
    chunk: usize,
    arrival: u32,
    answer: Answer,
}

/// Whether a run goes on as it was started at this time, by the same host, that is.
fn goes_on_since(fold: Option<&RunFold>, started: Timestamp) -> bool {
    fold.is_some_and(|fold| !fold.status.rests() && fold.resumed_at == started)
}

/// Composes all of `pending` after `numbering.head`, and moves `numbering` on.
pub(crate) fn compose(pending: &Pending, numbering: &mut Numbering, block_bytes: usize) -> Composed {
    let mut composed = Composed::default();
    let blocks = &mut composed.blocks;
    let mut open = Open { block_bytes, ..Open::default() };
    let mut left = pending.bytes;
    let mut head = Vec::with_capacity(256);
    let mut last_body = Vec::new();
    for (at, chunk) in pending.chunks.iter().enumerate() {
        let mut bodies = chunk.bodies.as_slice();
        let mut folding = chunk.folding.iter().peekable();
        let mut admission: Option<Admission> = None;
        for (index, segment) in (0u32..).zip(&chunk.segments) {
            let Some((run, fence)) = pending.writers.get(segment.writer as usize) else { continue };
            let Some(run) = pending.runs.get(*run as usize) else { continue };
            let Some((mine, rest)) = bodies.split_at_checked(segment.bytes as usize) else { continue };
            bodies = rest;
            if fence.is_some_and(|fence| !goes_on_since(numbering.folds.get(run), fence)) {
                composed.fenced += u64::from(segment.count);
                left = left.saturating_sub(mine.len());
                while folding.next_if(|(at, ..)| *at == index).is_some() {}
                continue;
            }
            let ts = segment.ts.max(numbering.ts);
            let fold = (numbering.folds.entry(run.clone()))
                .or_insert_with(|| RunFold::new(run.clone(), numbering.thread.clone()));
            // What comes from elsewhere brings its own time, which may be earlier than that of a record of its run that was
            // not written in this way: its start, for one.
            let ts = if segment.arrival.is_some() { ts.max(fold.updated_at) } else { ts };
            let waiting = segment.arrival.and_then(|arrival| chunk.arrivals.get(arrival as usize));
            if let (Some(waiting), None) = (waiting, &admission) {
                admission = Some(Admission::new(waiting.numbered.as_ref(), waiting.count, fold));
            }
            let whole = admission.as_ref().is_none_or(|admission| !admission.skips());
            head.clear();
            RecordHead { seq: Seq(0), thread: &numbering.thread, run, ts }.encode_head(&mut head);
            // All but the number is the same for the whole segment.
            let common = head.get(b"{\"seq\":0".len()..).unwrap_or_default();
            let (mut start, mut wrote) = (0, false);
            let (mut lines, mut line_bytes) = (u64::from(segment.lines), segment.line_bytes);
            if !whole {
                (lines, line_bytes) = (0, 0);
            }
            for (place, end) in (0u64..).zip(memchr::memchr_iter(b'\n', mine)) {
                let mut body = mine.get(start..=end).unwrap_or_default();
                let size = end + 1 - start;
                start = end + 1;
                let event = folding.next_if(|(at, of, _)| (*at, *of) == (index, place));
                if admission.as_mut().is_some_and(|admission| !admission.next()) {
                    left = left.saturating_sub(size);
                    continue;
                }
                let seq = numbering.head.next();
                numbering.head = seq;
                if !wrote {
                    wrote = true;
                    numbering.ts = ts;
                    fold.wrote(seq, ts, 0, 0);
                }
                if !whole {
                    let (more_lines, more_bytes) = output(body);
                    lines += more_lines;
                    line_bytes += more_bytes;
                }
                if let Some(admission) = &mut admission {
                    admission.stored(seq);
                    if let Some(mark) = admission.mark() {
                        last_body.clear();
                        marked(body, mark, &mut last_body);
                        body = &last_body;
                        fold.ingested(mark, seq);
                    }
                }
                open.line(run, seq, ts, common, body, left, blocks);
                left = left.saturating_sub(size);
                if let Some((.., event)) = event {
                    fold.apply(seq, ts, event);
                }
            }
            if wrote {
                fold.wrote(numbering.head, ts, lines, line_bytes);
            }
            if let Some(arrival) = segment.arrival
                && let Some(admission) = admission.take_if(|admission| admission.passed())
            {
                composed.answers.push(Answered { chunk: at, arrival, answer: admission.answer() });
            }
        }
    }
    open.close(blocks);
    composed
}

/// The block being filled.
#[derive(Default)]
struct Open {
    block_bytes: usize,
    run: Option<RunId>,
    first: Seq,
    count: u64,
    ts: Timestamp,
    bytes: Vec<u8>,
}

impl Open {
    #[expect(clippy::too_many_arguments, reason = "the inner loop of the writer; a struct would be built per line")]
    fn line(
        &mut self,
        run: &RunId,
        seq: Seq,
        ts: Timestamp,
        common: &[u8],
        body: &[u8],
        left: usize,
        out: &mut Vec<Block>,
    ) {
        if self.run.as_ref() != Some(run) || self.bytes.len() + body.len() > self.block_bytes {
            self.close(out);
            self.run = Some(run.clone());
            self.first = seq;
            // Room for the lines that may come, each about twice its body with the common fields.
            self.bytes.reserve((left * 3 + 512).min(self.block_bytes + body.len() + 512));
        }
        self.bytes.extend_from_slice(b"{\"seq\":");
        self.bytes.extend_from_slice(itoa::Buffer::new().format(seq.0).as_bytes());
        self.bytes.extend_from_slice(common);
        self.bytes.extend_from_slice(body);
        self.count += 1;
        self.ts = ts;
    }

    fn close(&mut self, out: &mut Vec<Block>) {
        let Some(run) = self.run.take() else { return };
        let mut bytes = std::mem::take(&mut self.bytes);
        // A ring holds blocks for long: give back what a wrong guess reserved.
        if bytes.capacity() > bytes.len() + bytes.len() / 4 {
            bytes.shrink_to_fit();
        }
        out.push(Block { run, first: self.first, count: self.count, ts: self.ts, bytes: Bytes::from(bytes) });
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use taffrail_mcp_core::{Note, Record, RunStart};

    use super::*;

    fn pending(events: &[(&str, Event)]) -> Pending {
        let mut pending = Pending::default();
        for (i, (run, event)) in events.iter().enumerate() {
            let run = RunId::new(run).unwrap();
            let mut body = Vec::new();
            event.encode_body(&mut body);
            let folding = if event.folds() { &[(0, event.clone())][..] } else { &[] };
            let ts = Timestamp::from_micros(1_000_000 - i as u64);
            pending.push(Handover {
                run: &run,
                fence: None,
                ts,
                bodies: &body,
                count: 1,
                lines: 0,
                line_bytes: 0,
                folding,
            });
        }
        pending
    }

    fn numbering(head: u64) -> Numbering {
        let thread = ThreadId::new("t").unwrap();
        Numbering { thread, head: Seq(head), ts: Timestamp::default(), folds: BTreeMap::new() }
    }

    fn note(text: &'static str) -> Event {
        Note::info(text).into()
    }

    #[test]
    fn blocks_are_dense_one_run_each_and_never_go_back_in_time() {
        let pending = pending(&[("a", note("1")), ("a", note("2")), ("b", note("3")), ("a", note("4"))]);
        let mut numbering = numbering(10);
        let blocks = compose(&pending, &mut numbering, 1 << 20).blocks;
        let shape: Vec<_> = blocks.iter().map(|b| (b.run.as_str(), b.first.0, b.count)).collect();
        assert_eq!(shape, [("a", 11, 2), ("b", 13, 1), ("a", 14, 1)]);
        let records: Vec<_> = blocks.iter().flat_map(Block::lines).map(|l| Record::parse(&l).unwrap()).collect();
        assert_eq!(records.iter().map(|r| r.seq.0).collect::<Vec<_>>(), [11, 12, 13, 14]);
        assert!(records.iter().all(|r| r.ts.micros() == 1_000_000), "{records:?}");
        assert_eq!(numbering.head, Seq(14));
        assert_eq!(numbering.folds[&RunId::new("a").unwrap()].last, Seq(14));
    }

    #[test]
    fn a_block_is_closed_at_its_size() {
        let pending = pending(&vec![("a", note("0123456789")); 100]);
        let blocks = compose(&pending, &mut numbering(0), 1000).blocks;
        assert!(blocks.len() > 5);
        assert!(blocks.iter().all(|b| b.bytes.len() <= 1200));
        assert_eq!(blocks.iter().map(|b| b.count).sum::<u64>(), 100);
    }

    #[test]
    fn composing_again_gives_new_numbers_and_the_same_events() {
        let start = RunStart { machine: "m".into(), depth: 0, entry: "s".into(), resumed: false, external: false };
        let pending = pending(&[("a", start.into()), ("a", note("x"))]);
        let text = |head| {
            let blocks = compose(&pending, &mut numbering(head), 1 << 20).blocks;
            String::from_utf8(blocks[0].bytes.to_vec()).unwrap()
        };
        assert_eq!(text(0).replace("\"seq\":1", "\"seq\":6").replace("\"seq\":2", "\"seq\":7"), text(5));
    }

    #[test]
    fn what_follows_a_remark_counts() {
        let mut all = Pending::default();
        let (run, mut body) = (RunId::new("a").unwrap(), Vec::new());
        note("x").encode_body(&mut body);
        let ts = Timestamp::default();
        let one =
            Handover { run: &run, fence: None, ts, bodies: &body, count: 1, lines: 0, line_bytes: 0, folding: &[] };
        all.push_remark(one);
        all.push(one);
        assert_eq!(all.take(usize::MAX).count(), 1);
    }

    #[test]
    fn taking_a_part_leaves_the_rest() {
        let mut all = pending(&vec![("a", note("0123456789")); 10_000]);
        let (count, bytes) = (all.count(), all.bytes());
        let first = all.take(1);
        assert!(first.count() > 0 && first.count() < count);
        assert_eq!((first.count() + all.count(), first.bytes() + all.bytes()), (count, bytes));
        let mut at = numbering(0);
        compose(&first, &mut at, 1 << 20);
        compose(&all, &mut at, 1 << 20);
        assert_eq!(at.head, Seq(count));
    }
}

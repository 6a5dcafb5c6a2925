//! What of an arrival from elsewhere goes into the log. No I/O, no clock.
//!
//! Decided while records get their numbers, by the state that the run has right there: a batch that was sent twice, to
//! two processes at once even, is then stored once. A decision is made anew with every attempt to store.

use taffrail_mcp_core::{Event, Ingest, RunFold, Seq};

use crate::{Numbered, Receipt, RelayError};

/// Most producers of one run. Its state is written with every change, some 80 bytes for each.
pub(crate) const MAX_PRODUCERS: usize = 256;

/// An arrival on its way into the log.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Events of it to come.
    left: u64,
    /// The first so many of these are not stored.
    skip: u64,
    known: u64,
    mark: Option<Ingest>,
    receipt: Receipt,
    refused: Option<RelayError>,
}

impl Admission {
    /// Decides about `count` events by the state of their run.
    pub(crate) fn new(numbered: Option<&Numbered>, count: u64, fold: &RunFold) -> Self {
        let mut admission =
            Self { left: count, skip: 0, known: 0, mark: None, receipt: Receipt::default(), refused: None };
        if let Some(Numbered { producer, first }) = numbered {
            let last = first.get().saturating_add(count.saturating_sub(1));
            let arrived = fold.producers.get(producer);
            let through = arrived.map_or(0, |arrived| arrived.last);
            if first.get() > through.saturating_add(1) {
                let expected = through.saturating_add(1);
                let hole = RelayError::Hole { producer: producer.clone(), expected, given: first.get() };
                return admission.refuse(hole);
            }
            if arrived.is_none() && fold.producers.len() >= MAX_PRODUCERS {
                return admission.refuse(RelayError::TooManyProducers { run: fold.run.clone(), limit: MAX_PRODUCERS });
            }
            admission.known = count.min((through + 1).saturating_sub(first.get()));
            admission.skip = admission.known;
            admission.receipt.first = arrived.and_then(|arrived| arrived.position(first.get()));
            admission.receipt.last = arrived.and_then(|arrived| arrived.position(last));
            // Those that are stored stand together; those that were known stand wherever they are.
            let first = first.saturating_add(admission.known);
            admission.mark = Some(Ingest { producer: producer.clone(), first, last });
        }
        if admission.skip < count && fold.status.is_final() {
            return admission.refuse(RelayError::RunOver { run: fold.run.clone(), status: fold.status });
        }
        admission
    }

    fn refuse(mut self, error: RelayError) -> Self {
        self.skip = self.left;
        self.refused = Some(error);
        self
    }

    /// Passes the next event: whether it is stored.
    pub(crate) fn next(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        let skipped = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        !skipped
    }

    /// Whether some of the events to come are not stored.
    pub(crate) fn skips(&self) -> bool {
        self.skip > 0
    }

    /// Whether all of it has passed.
    pub(crate) fn passed(&self) -> bool {
        self.left == 0
    }

    /// The event that passed last was stored at `seq`.
    pub(crate) fn stored(&mut self, seq: Seq) {
        self.receipt.stored += 1;
        self.receipt.first = self.receipt.first.or((self.known == 0).then_some(seq));
        self.receipt.last = Some(seq);
    }

    /// What the record says that is stored last, when the producer numbers its events.
    pub(crate) fn mark(&self) -> Option<&Ingest> {
        self.mark.as_ref().filter(|_| self.passed() && self.refused.is_none())
    }

    /// What became of it.
    pub(crate) fn answer(self) -> Result<Receipt, RelayError> {
        match self.refused {
            Some(error) => Err(error),
            None => Ok(Receipt { known: self.known, ..self.receipt }),
        }
    }
}

/// Appends a body with the field that says whose events end here.
pub(crate) fn marked(body: &[u8], mark: &Ingest, out: &mut Vec<u8>) {
    out.extend_from_slice(body.strip_suffix(b"}\n").unwrap_or(body));
    out.extend_from_slice(b",\"ingest\":{\"producer\":\"");
    // Ids need no escaping, by their grammar.
    out.extend_from_slice(mark.producer.as_str().as_bytes());
    out.extend_from_slice(b"\",\"first\":");
    out.extend_from_slice(itoa::Buffer::new().format(mark.first.get()).as_bytes());
    out.extend_from_slice(b",\"last\":");
    out.extend_from_slice(itoa::Buffer::new().format(mark.last).as_bytes());
    out.extend_from_slice(b"}}\n");
}

/// Lines of process output that a body completes, and their bytes as read. Only for what is left of a batch of which a
/// part had arrived before: the whole batch has been counted by who made it.
pub(crate) fn output(body: &[u8]) -> (u64, u64) {
    let object = [b"{", body].concat();
    match taffrail_mcp_core::Record::parse_event(&object) {
        Ok((Event::Log(log), _)) => (log.lines(), log.bytes()),
        _ => (0, 0),
    }
}

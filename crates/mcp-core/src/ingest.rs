//! Events that were numbered elsewhere.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::{Id, IdKind, Seq};

/// Marks [`ProducerId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProducerKind;
impl IdKind for ProducerKind {
    const NAME: &'static str = "producer";
}

/// Names who sends events of a run from elsewhere and numbers them from 1 without a hole.
pub type ProducerId = Id<ProducerKind>;

/// What the last record of a batch says, in its field `ingest`: whose events the batch holds, and their numbers.
///
/// So the log itself tells what has arrived, and a batch that is sent again is known for what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ingest {
    /// Who numbered them.
    pub producer: ProducerId,
    /// Number of the batch's first event.
    pub first: NonZeroU64,
    /// Number of its last event.
    pub last: u64,
}

impl Ingest {
    /// The name of the field.
    pub const FIELD: &'static str = "ingest";
}

/// How far the events of one producer have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived {
    /// Number of the first event of its last batch that was stored.
    pub first: u64,
    /// Number of the last one.
    pub last: u64,
    /// Position of that one; those of its batch stand right before it.
    pub seq: Seq,
}

impl Arrived {
    /// Position of an event of the last batch; `None` for one that came earlier.
    pub fn position(&self, number: u64) -> Option<Seq> {
        let back = self.last.checked_sub(number).filter(|_| number >= self.first)?;
        self.seq.0.checked_sub(back).map(Seq)
    }
}

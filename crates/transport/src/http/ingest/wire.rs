//! What ingest answers.

use serde::Serialize;
use taffrail_mcp_core::{CancelRequested, Seq};
use taffrail_relay::Receipt;

/// `POST /api/v1/runs/{run}/events`.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub(crate) struct IngestAnswer {
    /// Position of the first event; null when it arrived so long ago that its place is not known any more, and for a
    /// body without events.
    pub(crate) first: Option<Seq>,
    /// Position of the last event; null as for `first`.
    pub(crate) last: Option<Seq>,
    /// Events that were stored now.
    pub(crate) stored: u64,
    /// Events that had arrived before, and were not stored again.
    pub(crate) known: u64,
    /// Somebody wants the run to end: end what it does, and send its `run-finished`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cancel: Option<CancelRequested>,
}

impl IngestAnswer {
    /// Adds what became of the next events of the same body.
    pub(super) fn add(&mut self, receipt: Receipt) {
        let Receipt { first, last, stored, known } = receipt;
        if self.stored + self.known == 0 {
            self.first = first;
        }
        if stored + known > 0 {
            self.last = last;
        }
        self.stored += stored;
        self.known += known;
    }

    /// Events of the body that are in the log now.
    pub(super) fn kept(&self) -> u64 {
        self.stored + self.known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(first: Option<u64>, last: Option<u64>, stored: u64, known: u64) -> Receipt {
        Receipt { first: first.map(Seq), last: last.map(Seq), stored, known }
    }

    #[test]
    fn chunks_of_one_body_are_one_answer() {
        let mut answer = IngestAnswer::default();
        assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"first":null,"last":null,"stored":0,"known":0}"#);
        answer.add(receipt(None, None, 0, 0));
        answer.add(receipt(None, Some(7), 0, 3));
        answer.add(receipt(Some(8), Some(9), 2, 0));
        answer.add(receipt(None, None, 0, 0));
        assert_eq!(serde_json::to_string(&answer).unwrap(), r#"{"first":null,"last":9,"stored":2,"known":3}"#);
        assert_eq!(answer.kept(), 5);
        let cancel = CancelRequested { actor: "operator".into(), reason: None, kill: false };
        answer.cancel = Some(cancel);
        let text = serde_json::to_string(&answer).unwrap();
        assert_eq!(text, r#"{"first":null,"last":9,"stored":2,"known":3,"cancel":{"actor":"operator"}}"#);
    }
}

//! The first line of every spool file.

use serde::{Deserialize, Serialize};
use taffrail_mcp_core::{RunId, Seq};

/// The first line of every file of a spool; all other lines are records.
///
/// Not a record of the log: it has no seq of its own, and it says nothing about what came after it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "type", rename = "spool-segment")]
pub struct SegmentHead {
    /// The run whose records follow.
    pub run: RunId,
    /// Position of the first record in this file.
    pub first: Seq,
    /// No file of this run holds a record up to this position any more, as of the time this file was begun: dropped
    /// for its size or age, or no longer in the log when the spool came to it. 0 when nothing was dropped.
    pub dropped_to: Seq,
}

/// How every first line begins; serde writes fields in the order of the struct, the tag first.
const OPENING: &[u8] = b"{\"type\":\"spool-segment\",";

impl SegmentHead {
    /// Longest first line of any run, in bytes: an id of 128, two numbers of 20, and the names.
    pub(crate) const MAX_LEN: usize = 256;

    /// The line, newline included.
    pub(crate) fn to_line(&self) -> Vec<u8> {
        // Serialising two numbers and an id into memory cannot fail.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Reads a line; `None` when it is anything else.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        line.starts_with(OPENING).then(|| serde_json::from_slice(line).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> SegmentHead {
        SegmentHead { run: RunId::new("r-1").unwrap(), first: Seq(8), dropped_to: Seq(5) }
    }

    #[test]
    fn first_line_of_a_segment() {
        insta::assert_snapshot!("spool-segment", String::from_utf8(head().to_line()).unwrap());
    }

    #[test]
    fn reads_what_it_writes_and_more() {
        assert_eq!(SegmentHead::parse(&head().to_line()), Some(head()));
        let newer = br#"{"type":"spool-segment","run":"r-1","first":8,"dropped_to":5,"codec":{"x":[1]}}"#;
        assert_eq!(SegmentHead::parse(newer), Some(head()));
    }

    #[test]
    fn anything_else_is_not_a_first_line() {
        let whole = head().to_line();
        for cut in 0..whole.len() - 1 {
            assert_eq!(SegmentHead::parse(&whole[..cut]), None);
        }
        assert_eq!(SegmentHead::parse(br#"{"type":"note","run":"r-1","first":8,"dropped_to":5}"#), None);
        assert_eq!(SegmentHead::parse(br#"{"type":"spool-segment","run":"r-1","first":8}"#), None);
    }

    #[test]
    fn no_first_line_is_longer_than_planned() {
        let run = RunId::new("x".repeat(RunId::MAX)).unwrap();
        let longest = SegmentHead { run, first: Seq(u64::MAX), dropped_to: Seq(u64::MAX) };
        assert!(longest.to_line().len() <= SegmentHead::MAX_LEN);
    }
}

//! Records and blocks for unit tests.

use taffrail_mcp_core::{RunId, Seq, Timestamp};
use taffrail_relay::Block;

/// The run of all of them.
pub(crate) fn run() -> RunId {
    RunId::new("r-1").unwrap()
}

/// A record of `len` bytes, newline included; at least 120.
pub(crate) fn line(seq: u64, len: usize) -> String {
    let mut line = format!(
        r#"{{"seq":{seq},"thread":"r-1","run":"r-1","ts":"2026-11-30T07:32:47.123456Z","type":"note","text":""#
    );
    let pad = len.saturating_sub(line.len() + 3);
    line.extend(std::iter::repeat_n('x', pad));
    line + "\"}\n"
}

/// Consecutive records.
pub(crate) fn lines(first: u64, count: u64, len: usize) -> String {
    (first..first + count).map(|seq| line(seq, len)).collect()
}

/// The same as a block.
pub(crate) fn block(first: u64, count: u64, len: usize) -> Block {
    let bytes = lines(first, count, len).into();
    Block { run: run(), first: Seq(first), count, ts: Timestamp::default(), bytes }
}

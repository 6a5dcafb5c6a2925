//! Records, blocks, and what is in a folder.

use std::{fs, path::Path};

use taffrail_mcp_core::{RunId, Seq, Timestamp};
use taffrail_relay::Block;
use taffrail_spool::segments;

pub(crate) fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

/// A record with a text of `pad` bytes.
pub(crate) fn line(run: &RunId, seq: u64, pad: usize) -> String {
    let text = "x".repeat(pad);
    format!(
        "{{\"seq\":{seq},\"thread\":\"{run}\",\"run\":\"{run}\",\"ts\":\"2026-11-30T07:32:47.123456Z\",\"type\":\"note\",\"text\":\"{text}\"}}\n"
    )
}

/// Consecutive records, one for each pad.
pub(crate) fn block(run: &RunId, first: u64, pads: &[usize]) -> Block {
    let bytes: String = (first..).zip(pads).map(|(seq, &pad)| line(run, seq, pad)).collect();
    Block {
        run: run.clone(),
        first: Seq(first),
        count: pads.len() as u64,
        ts: Timestamp::default(),
        bytes: bytes.into(),
    }
}

/// The files of a run, oldest first.
pub(crate) fn files(dir: &Path, run: &RunId) -> Vec<String> {
    segments(dir, run).unwrap().iter().map(|segment| fs::read_to_string(&segment.path).unwrap()).collect()
}

/// All records of a run, first lines left out.
pub(crate) fn records(dir: &Path, run: &RunId) -> String {
    let without_first_line = |file: String| match file.split_once('\n') {
        Some((head, rest)) if head.starts_with("{\"type\":\"spool-segment\",\"run\":") => rest.to_owned(),
        None if file.is_empty() => file,
        _ => panic!("no first line: {file}"),
    };
    files(dir, run).into_iter().map(without_first_line).collect()
}

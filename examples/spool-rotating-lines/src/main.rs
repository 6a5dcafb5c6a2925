//! Lines into a spool of small files that rotate.
//!
//! ```sh
//! cargo run -p spool-rotating-lines
//! ```
//!
//! The limits here are tiny, to show the rotation: files of 600 bytes, 2,000 bytes in all. What fits no more goes oldest
//! first, and the first line of each file says how far.

#![expect(clippy::print_stdout, reason = "what the example shows")]

use std::{fs, path::Path};

use anyhow::Result;
use taffrail_mcp_core::{Event, Note, RecordHead, RunId, Seq, Timestamp};
use taffrail_relay::Block;
use taffrail_spool::{Limits, SpoolFile, segments};

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, text) in write(&folder.path().join("spool"), 20)? {
        println!("{name}\n{text}");
    }
    Ok(())
}

/// Spools `count` records and gives back the files there are then, oldest first.
fn write(folder: &Path, count: u64) -> Result<Vec<(String, String)>> {
    let run = RunId::new("run-1")?;
    let limits = Limits { file_bytes: 600, run_bytes: 2000, ..Limits::default() };
    let mut spool = SpoolFile::open(folder, &run, limits)?;
    // After a restart it goes on from here, whatever was torn.
    for seq in spool.cursor().0 + 1..=count {
        spool.append(&block(&run, Seq(seq)))?;
    }
    let files = segments(folder, &run)?;
    files.iter().map(|file| Ok((file_name(&file.path), fs::read_to_string(&file.path)?))).collect()
}

/// A block of one record. A relay makes such blocks of many; a spool takes both.
fn block(run: &RunId, seq: Seq) -> Block {
    let ts = Timestamp::from_micros(seq.0);
    let mut bytes = Vec::new();
    let event = Event::from(Note::info(format!("line {seq}")));
    RecordHead { seq, thread: &run.clone().into(), run, ts }.encode(&event, &mut bytes);
    Block { run: run.clone(), first: seq, count: 1, ts, bytes: bytes.into() }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept_and_the_rest_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let files = write(&folder.path().join("spool"), 20).unwrap();
        assert!(files.len() > 1, "{files:?}");
        assert!(files.iter().map(|(_, text)| text.len()).sum::<usize>() <= 2000);
        let (name, newest) = files.last().unwrap();
        assert_eq!(name, "run-1.jsonl");
        assert!(newest.starts_with("{\"type\":\"spool-segment\",\"run\":\"run-1\","), "{newest}");
        assert!(newest.contains("line 20"));
    }
}

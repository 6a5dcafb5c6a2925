//! JSONL spool files of runs: what an agent on the same machine reads with its own tools.
//!
//! A *spool* is a view of a run's log: `<dir>/<run>.jsonl`, one record a line, the same bytes as everywhere else. It is
//! rotated, capped, cleaned up and, after a crash, mended; the log stays the truth, and a spool goes on from it with no
//! seq missing or double. A full disk pauses a spool and never the run.
//!
//! Start with [`Spools`], which keeps files up to date in the background. [`SpoolFile`] is one file, without any
//! runtime; [`sweep`], [`mend`], [`list`], [`remove`] and [`segments`] look after a folder.
//!
//! It is not a store: nothing is synced to disk, nothing is read back but the last line of a file.
//!
//! ```
//! use taffrail_mcp_core::{RunId, Seq, Timestamp};
//! use taffrail_relay::Block;
//! use taffrail_spool::{Limits, SpoolFile};
//!
//! let folder = tempfile::tempdir()?;
//! let run = RunId::new("run-1")?;
//! let mut spool = SpoolFile::open(folder.path().join("spool"), &run, Limits::default())?;
//! let line = r#"{"seq":1,"thread":"run-1","run":"run-1","ts":"2026-11-30T07:32:47.123456Z","type":"note","text":"hello"}"#;
//! let bytes = format!("{line}\n").into();
//! spool.append(&Block { run, first: Seq(1), count: 1, ts: Timestamp::default(), bytes })?;
//! assert_eq!(spool.cursor(), Seq(1));
//! assert!(std::fs::read_to_string(spool.path())?.ends_with("\"hello\"}\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod limits;
mod plan;

mod format;
mod name;

mod door;
mod recover;

mod file;
mod rotate;
mod settle;

mod keep;

mod attach;
mod notice;
mod relay_source;
mod retry;
mod source;
mod task;

mod error;
#[cfg(test)]
mod testing;

pub use attach::{Drained, Spools};
pub use error::SpoolError;
pub use file::SpoolFile;
pub use format::SegmentHead;
pub use keep::{Listed, Mended, Segment, Swept, last_seq, list, mend, remove, segments, sweep};
pub use limits::Limits;
pub use notice::{Notice, What};
pub use relay_source::RelaySource;
pub use source::{BlockSource, Delivery};

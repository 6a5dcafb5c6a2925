//! The event vocabulary and the wire contract of Taffrail run logs.
//!
//! A *run* writes one durable, numbered log; every surface (MCP, files, terminals) shows the same records. This crate
//! is what all of them agree on: ids, [`Seq`], the [`Event`] types, the bytes of a [`Record`], pages, gaps, run
//! snapshots, and the two traits through which work reports ([`EventSink`]) and asks ([`Elicitor`]).
//!
//! It is not a client, a store or a runtime: it knows no clock, no files, no network and no async runtime.
//!
//! ```
//! use taffrail_mcp_core::{Event, Note, Record, RecordHead, RunId, Seq, ThreadId, Timestamp};
//!
//! let run = RunId::new("run-1")?;
//! let head = RecordHead { seq: Seq(1), thread: &ThreadId::from(run.clone()), run: &run, ts: Timestamp::from_micros(0) };
//! let mut line = Vec::new();
//! head.encode(&Event::from(Note::info("hello")), &mut line);
//! let record = Record::parse(&line)?;
//! assert_eq!(record.event.kind(), "note");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod elicit;
mod encode;
mod error;
mod event;
mod event_line;
mod fold;
mod id;
mod ingest;
mod line;
mod page;
mod record;
mod schema;
mod seq;
mod sink;
mod snapshot;
mod time;
mod walk;

pub use elicit::{Elicitor, Question, Reply};
pub use encode::{RecordHead, encode_json_str};
pub use error::{IdError, RecordError};
pub use event::{
    ApprovalRequested, ApprovalResolved, Approver, BranchDone, BranchStart, CancelRequested, Checkpoint,
    CheckpointClaimed, ClipReason, Clipped, Decision, Event, Exit, Fields, Level, Log, Message, Note, OtherEvent,
    Policy, Progress, Proposal, ProposalApplied, Reason, RunFinished, RunStart, RunStatus, StateDone, StateKind,
    StateStart, Stream, ToolCall, ToolDecision, Usage, preview,
};
pub use event_line::{EventLine, EventLineError, EventLineFault, EventReader};
pub use fold::RunFold;
pub use id::{Id, IdKind, RunId, RunKind, ThreadId, ThreadKind};
pub use ingest::{Arrived, Ingest, ProducerId, ProducerKind};
pub use line::{LineFields, LineHead};
pub use page::{Gap, GapReason, PageMeta};
pub use record::Record;
pub use schema::{gap_schema, page_schema, record_schema, snapshot_schema};
pub use seq::{Seq, Start};
pub use sink::{BoxFuture, EventBatch, EventSink, LogLine, NullSink};
pub use snapshot::{PendingApproval, Snapshot};
pub use time::Timestamp;

/// Version of the record encoding that this crate writes.
///
/// - 1: the first.
pub const WIRE_VERSION: u32 = 1;

/// Longest piece of one line of process output in a record, in bytes, newline not counted. Longer lines are split.
///
/// 64 KiB is what a Linux pipe holds, so that a single write of a child fits one record.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Longest preview of a state's output in a `state-done`, in characters.
pub const PREVIEW_CHARS: usize = 200;

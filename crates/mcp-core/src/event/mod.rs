//! The event vocabulary: what can stand in a log.

mod approval;
mod engine;
mod ops;
mod output;
mod words;

use serde::Serialize;
use serde_json::value::RawValue;

pub use approval::{ApprovalRequested, ApprovalResolved, Approver, Decision, Proposal, ProposalApplied};
pub use engine::{
    BranchDone, BranchStart, Exit, RunFinished, RunStart, RunStatus, StateDone, StateKind, StateStart, Usage,
};
pub use ops::{CancelRequested, Checkpoint, CheckpointClaimed, Level, Note, ToolCall, ToolDecision};
pub use output::{ClipReason, Clipped, Log, Message, Progress, Stream};
pub use words::{Policy, Reason};

use crate::PREVIEW_CHARS;

/// Fields of a JSON object in their order, each value exactly as it was written.
pub type Fields = Vec<(String, Box<RawValue>)>;

/// One event.
///
/// The types are the wire: what serde writes for a variant, `type` first, is what stands in a record after its common
/// fields. Fields and types that this version does not know survive reading and writing (see [`crate::Record`]).
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Event {
    /// A run begins or goes on.
    RunStart(RunStart),
    /// A state begins.
    StateStart(StateStart),
    /// A state has ended and its gate was chosen.
    StateDone(StateDone),
    /// One branch of a fan-out begins.
    BranchStart(BranchStart),
    /// One branch of a fan-out has ended.
    BranchDone(BranchDone),
    /// A run has ended, or is suspended.
    RunFinished(RunFinished),
    /// A line of process output.
    Log(Log),
    /// A piece of a streamed answer.
    Message(Message),
    /// How far something is.
    Progress(Progress),
    /// A gate waits for a decision or an answer.
    ApprovalRequested(ApprovalRequested),
    /// The decision.
    ApprovalResolved(ApprovalResolved),
    /// Output that a limit cut, counted.
    Clipped(Clipped),
    /// A call by an agent, and whether it was let through.
    ToolCall(ToolCall),
    /// What a resume needs.
    Checkpoint(Checkpoint),
    /// A checkpoint was used up.
    CheckpointClaimed(CheckpointClaimed),
    /// A proposed write.
    Proposal(Proposal),
    /// A proposed write was carried out.
    ProposalApplied(ProposalApplied),
    /// Someone asked for the run to end; its process acts on it.
    CancelRequested(CancelRequested),
    /// A remark for operators.
    Note(Note),
    /// A type, or a shape of a known type, that this version does not know.
    #[serde(untagged)]
    #[schemars(skip)]
    Other(OtherEvent),
}

/// An event this version does not know, exactly as it was written.
#[derive(Debug, Clone)]
pub struct OtherEvent {
    /// Its `type`.
    pub kind: String,
    /// Its other fields.
    pub fields: Fields,
}

impl Serialize for OtherEvent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(Some(self.fields.len() + 1))?;
        map.serialize_entry("type", &self.kind)?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Writes the table of known types once: conversions, names, and reading by name.
macro_rules! known_types {
    ($($variant:ident = $kind:literal),* $(,)?) => {
        $(impl From<$variant> for Event {
            fn from(event: $variant) -> Self {
                Event::$variant(event)
            }
        })*

        impl Event {
            /// The known types, in the order of the vocabulary.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The value of the `type` field.
            pub fn kind(&self) -> &str {
                match self {
                    $(Event::$variant(_) => $kind,)*
                    Event::Other(other) => &other.kind,
                }
            }

            /// Reads an event of a known type from the whole object; `None` when the type is unknown or the
            /// object does not have its shape.
            pub(crate) fn read(kind: &str, object: &str) -> Option<Self> {
                match kind {
                    $($kind => serde_json::from_str(object).ok().map(Event::$variant),)*
                    _ => None,
                }
            }

            /// Why an object is not an event of a known type.
            pub(crate) fn misfit(kind: &str, object: &str) -> Option<serde_json::Error> {
                match kind {
                    $($kind => serde_json::from_str::<$variant>(object).err(),)*
                    _ => None,
                }
            }
        }
    };
}

known_types! {
    RunStart = "run-start",
    StateStart = "state-start",
    StateDone = "state-done",
    BranchStart = "branch-start",
    BranchDone = "branch-done",
    RunFinished = "run-finished",
    Log = "log",
    Message = "message",
    Progress = "progress",
    ApprovalRequested = "approval-requested",
    ApprovalResolved = "approval-resolved",
    Clipped = "clipped",
    ToolCall = "tool-call",
    Checkpoint = "checkpoint",
    CheckpointClaimed = "checkpoint-claimed",
    Proposal = "proposal",
    ProposalApplied = "proposal-applied",
    CancelRequested = "cancel-requested",
    Note = "note",
}

impl Event {
    /// Appends what stands after the common fields of a record: `"type":…}` and a newline.
    ///
    /// Process output and streamed answers, nearly all of any log, take paths of their own; the bytes are the same as
    /// serde's.
    pub fn encode_body(&self, out: &mut Vec<u8>) {
        match self {
            Event::Log(log) => match log.as_line() {
                Some(line) => line.encode_body(out),
                None => self.encode_with_serde(out),
            },
            Event::Message(message) => message.encode_body(out),
            _ => self.encode_with_serde(out),
        }
    }

    fn encode_with_serde(&self, out: &mut Vec<u8>) {
        let start = out.len();
        if serde_json::to_writer(&mut *out, self).is_err() {
            // No event type can fail: all keys are strings, all numbers are finite or checked, and a Vec takes any
            // bytes. Should one ever, the log says so instead of ending.
            out.truncate(start);
            out.extend_from_slice(b"{\"type\":\"note\",\"level\":\"error\",\"text\":\"unencodable event\"}");
        }
        if let Event::Other(_) = self {
            crate::encode::join_lines(&mut out[start..]);
        }
        // The common fields come first, so the object's opening brace is not ours.
        out.remove(start);
        out.push(b'\n');
    }

    /// As [`Event::encode_body`], with further fields at the end: those of [`crate::Record::extra`].
    pub fn encode_body_with(&self, extra: &Fields, out: &mut Vec<u8>) {
        self.encode_body(out);
        if extra.is_empty() {
            return;
        }
        out.truncate(out.len().saturating_sub(b"}\n".len()));
        let start = out.len();
        for (name, value) in extra {
            out.push(b',');
            crate::encode_json_str(name, out);
            out.push(b':');
            out.extend_from_slice(value.get().as_bytes());
        }
        crate::encode::join_lines(&mut out[start..]);
        out.extend_from_slice(b"}\n");
    }

    /// Whether the state of a run depends on events of a type.
    pub(crate) fn kind_folds(kind: &str) -> bool {
        matches!(
            kind,
            "run-start"
                | "state-start"
                | "state-done"
                | "run-finished"
                | "approval-requested"
                | "approval-resolved"
                | "clipped"
                | "checkpoint"
                | "checkpoint-claimed"
                | "cancel-requested"
        )
    }

    /// Whether the state of a run depends on it (see [`crate::RunFold`]).
    pub const fn folds(&self) -> bool {
        matches!(
            self,
            Event::RunStart(_)
                | Event::StateStart(_)
                | Event::StateDone(_)
                | Event::RunFinished(_)
                | Event::ApprovalRequested(_)
                | Event::ApprovalResolved(_)
                | Event::Clipped(_)
                | Event::Checkpoint(_)
                | Event::CheckpointClaimed(_)
                | Event::CancelRequested(_)
        )
    }
}

/// The first 200 characters of a text, with `…` in the place of the rest.
///
/// Line ends at the end of the text do not count.
pub fn preview(text: &str) -> String {
    let text = text.trim_end_matches(['\n', '\r']);
    match text.char_indices().nth(PREVIEW_CHARS) {
        None => text.to_owned(),
        Some(_) => text.chars().take(PREVIEW_CHARS - 1).chain(['…']).collect(),
    }
}

/// For `skip_serializing_if`.
pub(crate) const fn is_false(value: &bool) -> bool {
    !*value
}

/// For `skip_serializing_if`.
pub(crate) const fn is_zero(value: &u64) -> bool {
    *value == 0
}

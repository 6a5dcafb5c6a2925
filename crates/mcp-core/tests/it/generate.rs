//! Any event of any known type.

use proptest::{collection::vec, option, prelude::*};
use serde_json::Value;
use taffrail_mcp_core::{
    ApprovalRequested, ApprovalResolved, Approver, BranchDone, BranchStart, CancelRequested, Checkpoint,
    CheckpointClaimed, ClipReason, Clipped, Decision, Event, Exit, Level, Log, Message, Note, Policy, Progress,
    Proposal, ProposalApplied, Reason, RunFinished, RunStart, RunStatus, StateDone, StateKind, StateStart, Stream,
    Timestamp, ToolCall, ToolDecision, Usage,
};

/// Text with all that JSON escapes, and what it need not.
pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[ -~]{0,24}", 1 => "(\\PC|[\\x00-\\x22\\\\\\x7f]){0,24}"]
}

/// Few names, so that events meet.
fn name() -> impl Strategy<Value = String> {
    "[ab]"
}

fn value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![any::<i64>().prop_map(Value::from), any::<u64>().prop_map(Value::from), finite_value()];
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), number, text().prop_map(Value::from)];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((text(), inner), 0..4).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

fn finite_value() -> impl Strategy<Value = Value> {
    finite().prop_map(Value::from)
}

fn finite() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("finite", |n| n.is_finite())
}

fn instant() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(|micros| Timestamp::from_micros(micros % 4_000_000_000_000_000))
}

fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)]
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![any::<i32>().prop_map(Exit::Code), text().prop_map(Exit::Signal), any::<bool>().prop_map(Exit::Timeout)]
}

fn status() -> impl Strategy<Value = RunStatus> {
    use RunStatus::{Cancelled, Done, Halt, Interrupted, Running, Suspended};
    prop::sample::select(vec![Running, Suspended, Done, Halt, Cancelled, Interrupted])
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..1000u64, 1 => 0..=u64::MAX >> 12]
}

fn usage() -> impl Strategy<Value = Usage> {
    (count(), count(), count(), count(), count(), count()).prop_map(
        |(steps, wall_ms, log_lines, log_bytes, clipped_lines, clipped_bytes)| Usage {
            steps,
            wall_ms,
            log_lines,
            log_bytes,
            clipped_lines,
            clipped_bytes,
        },
    )
}

/// A line as a capture makes it, or as a peer may send it.
pub(crate) fn log() -> impl Strategy<Value = Log> {
    let content = prop_oneof![
        6 => text().prop_map(|text| (Some(text), None)),
        2 => vec(any::<u8>(), 0..24).prop_map(|data| (None, Some(base64(&data)))),
        1 => (option::of(text()), option::of(text())),
    ];
    let flags = (option::of(count()), any::<bool>(), any::<bool>(), count(), option::of(any::<bool>()), any::<bool>());
    (name(), option::of(0..3u64), stream(), content, flags).prop_map(
        |(state, index, stream, (text, b64), (part, more, redraw, folded, eol, crlf))| Log {
            state,
            index,
            stream,
            text,
            b64,
            part,
            more,
            redraw,
            folded,
            eol,
            crlf,
        },
    )
}

/// RFC 4648, section 4: written again here, so that the tests do not check the encoder against itself.
pub(crate) fn base64(data: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in data.chunks(3) {
        let bits = three.iter().fold(0u32, |bits, b| bits << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let six = (bits >> (18 - 6 * place)) as usize & 63;
            out.push(if place <= three.len() { char::from(ALPHABET[six]) } else { '=' });
        }
    }
    out
}

fn engine() -> impl Strategy<Value = Event> {
    let state_done = (name(), 0..2u32, name(), count(), option::of(text()), option::of(name()), text());
    prop_oneof![
        (name(), 0..2u32, name(), any::<bool>(), any::<bool>()).prop_map(
            |(machine, depth, entry, resumed, external)| RunStart { machine, depth, entry, resumed, external }.into()
        ),
        (name(), 0..2u32, name(), count(), state_kind()).prop_map(|(machine, depth, state, step, kind)| StateStart {
            machine,
            depth,
            state,
            step,
            kind
        }
        .into()),
        (state_done, text(), option::of(count()), option::of(exit()), any::<bool>()).prop_map(
            |((machine, depth, state, step, gate, to, output), policy, branches, exit, truncated)| {
                let policy = Policy(policy.into());
                StateDone { machine, depth, state, step, gate, policy, to, output, branches, exit, truncated }.into()
            }
        ),
        (name(), 0..2u32, name(), count(), value()).prop_map(|(machine, depth, state, index, item)| BranchStart {
            machine,
            depth,
            state,
            index,
            item
        }
        .into()),
        (name(), 0..2u32, name(), count(), exit()).prop_map(|(machine, depth, state, index, exit)| BranchDone {
            machine,
            depth,
            state,
            index,
            exit
        }
        .into()),
        (name(), 0..2u32, status(), option::of(text()), option::of(name()), usage(), option::of(text())).prop_map(
            |(machine, depth, status, error, at, usage, detail)| {
                let error = error.map(|word| Reason(word.into()));
                RunFinished { machine, depth, status, error, at, usage, detail }.into()
            }
        ),
    ]
}

fn state_kind() -> impl Strategy<Value = StateKind> {
    prop::sample::select(vec![StateKind::Run, StateKind::Call, StateKind::Approve, StateKind::Ask])
}

fn output() -> impl Strategy<Value = Event> {
    let reason = prop_oneof![Just(ClipReason::RunCap), Just(ClipReason::LineCap)];
    prop_oneof![
        log().prop_map(Event::from),
        (text(), text(), any::<bool>()).prop_map(|(role, text, delta)| Message { role, text, delta }.into()),
        (option::of(name()), option::of(count()), finite(), option::of(finite()), option::of(text())).prop_map(
            |(state, index, progress, total, message)| Progress { state, index, progress, total, message }.into()
        ),
        (option::of(name()), option::of(count()), stream(), count(), count(), reason, instant(), instant()).prop_map(
            |(state, index, stream, lines, bytes, reason, from_ts, to_ts)| {
                Clipped { state, index, stream, lines, bytes, reason, from_ts, to_ts }.into()
            }
        ),
    ]
}

fn gates() -> impl Strategy<Value = Event> {
    let by = prop_oneof![Just(Approver::Human), Just(Approver::Agent)];
    let decision = prop_oneof![Just(Decision::Approve), Just(Decision::Reject)];
    // A null would be read as an absent field.
    let some = || option::of(value().prop_filter("null is absent", |value| !value.is_null()));
    prop_oneof![
        (name(), name(), text(), some(), name(), by).prop_map(|(approval, state, message, schema, hash, by)| {
            ApprovalRequested { approval, state, message, schema, hash, by }.into()
        }),
        (name(), decision, name(), text(), count(), some()).prop_map(
            |(approval, decision, hash, actor, seen_seq, content)| {
                ApprovalResolved { approval, decision, hash, actor, seen_seq, content }.into()
            }
        ),
        (text(), text(), text(), text()).prop_map(|(proposal, tool, hash, actor)| Proposal {
            proposal,
            tool,
            hash,
            actor
        }
        .into()),
        (text(), text(), text(), text()).prop_map(|(proposal, tool, hash, actor)| ProposalApplied {
            proposal,
            tool,
            hash,
            actor
        }
        .into()),
    ]
}

fn ops() -> impl Strategy<Value = Event> {
    let decision = prop_oneof![Just(ToolDecision::Allowed), Just(ToolDecision::Denied)];
    let level = prop_oneof![Just(Level::Info), Just(Level::Warning), Just(Level::Error)];
    prop_oneof![
        (text(), text(), text(), decision, option::of(text()), count(), count()).prop_map(
            |(tool, role, actor, decision, reason, ms, bytes)| {
                ToolCall { tool, role, actor, decision, reason, ms, bytes }.into()
            }
        ),
        (name(), name(), count(), value()).prop_map(|(checkpoint, state, step, resume)| Checkpoint {
            checkpoint,
            state,
            step,
            resume
        }
        .into()),
        (name(), text()).prop_map(|(checkpoint, actor)| CheckpointClaimed { checkpoint, actor }.into()),
        (text(), option::of(text()), any::<bool>()).prop_map(|(actor, reason, kill)| CancelRequested {
            actor,
            reason,
            kill
        }
        .into()),
        (text(), level).prop_map(|(text, level)| Note { text: text.into(), level }.into()),
    ]
}

/// Any event of any known type.
pub(crate) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![6 => engine(), 4 => output(), 4 => gates(), 5 => ops()]
}

//! One example of every shape on the wire; the snapshots pin their bytes.

use serde_json::{Value, json};
use taffrail_mcp_core::{
    ApprovalRequested, ApprovalResolved, Approver, BranchDone, BranchStart, CancelRequested, Checkpoint,
    CheckpointClaimed, ClipReason, Clipped, Decision, Event, Exit, Level, Log, Message, Note, OtherEvent, Policy,
    Progress, Proposal, ProposalApplied, Reason, RecordHead, RunFinished, RunId, RunStart, RunStatus, Seq, StateDone,
    StateKind, StateStart, Stream, ThreadId, Timestamp, ToolCall, ToolDecision, Usage,
};

/// 2026-11-30T07:32:47.123456Z.
pub(crate) const TS: Timestamp = Timestamp::from_micros(1_796_023_967_123_456);

pub(crate) fn run() -> RunId {
    RunId::new("0193798d-5e03-7c40-a6e8-0d5f2b1c9a77").unwrap()
}

pub(crate) fn thread() -> ThreadId {
    ThreadId::new("deploys").unwrap()
}

/// The record of an event at a position, without its newline.
pub(crate) fn line(seq: u64, event: &Event) -> String {
    let mut out = Vec::new();
    RecordHead { seq: Seq(seq), thread: &thread(), run: &run(), ts: TS }.encode(event, &mut out);
    assert_eq!(out.iter().filter(|&&b| b == b'\n').count(), 1, "one newline, at the end");
    assert_eq!(out.pop(), Some(b'\n'));
    String::from_utf8(out).unwrap()
}

pub(crate) fn log(data: &str) -> Log {
    Log {
        state: "build".into(),
        index: None,
        stream: Stream::Stdout,
        text: Some(data.into()),
        b64: None,
        part: None,
        more: false,
        redraw: false,
        folded: 0,
        eol: None,
        crlf: false,
    }
}

pub(crate) fn state_done(exit: Option<Exit>) -> StateDone {
    StateDone {
        machine: "release".into(),
        depth: 0,
        state: "build".into(),
        step: 1,
        gate: Some("exit.code == 0".into()),
        policy: Policy::OK,
        to: Some("test".into()),
        output: "ok".into(),
        branches: None,
        exit,
        truncated: false,
    }
}

pub(crate) fn run_finished(status: RunStatus, error: Option<Reason>) -> RunFinished {
    RunFinished {
        machine: "release".into(),
        depth: 0,
        status,
        error,
        at: None,
        usage: Usage {
            steps: 4,
            wall_ms: 61_250,
            log_lines: 1024,
            log_bytes: 70_000,
            clipped_lines: 0,
            clipped_bytes: 0,
        },
        detail: None,
    }
}

pub(crate) fn run_start(resumed: bool) -> RunStart {
    RunStart { machine: "release".into(), depth: 0, entry: "build".into(), resumed, external: false }
}

pub(crate) fn approval_requested() -> ApprovalRequested {
    ApprovalRequested {
        approval: "a-1".into(),
        state: "agree".into(),
        message: "Deploy 1.4.0?".into(),
        schema: None,
        hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
        by: Approver::Human,
    }
}

pub(crate) fn approval_resolved() -> ApprovalResolved {
    ApprovalResolved {
        approval: "a-1".into(),
        decision: Decision::Approve,
        hash: approval_requested().hash,
        actor: "operator".into(),
        seen_seq: 41,
        content: None,
    }
}

/// Every known type and variant under the name of its snapshot, in the order of the vocabulary.
pub(crate) fn events() -> Vec<(&'static str, Event)> {
    vec![
        ("run-start", run_start(false).into()),
        ("run-start.resumed", run_start(true).into()),
        ("state-start", state_start("build", StateKind::Run).into()),
        ("state-start.call", state_start("deploy", StateKind::Call).into()),
        ("state-start.approve", state_start("agree", StateKind::Approve).into()),
        ("state-start.ask", state_start("region", StateKind::Ask).into()),
        ("state-done", state_done(Some(Exit::Code(0))).into()),
        ("state-done.signal", failed(Exit::Signal("SIGKILL".into())).into()),
        ("state-done.timeout", failed(Exit::Timeout(true)).into()),
        ("state-done.fan-out", StateDone { branches: Some(2), ..state_done(None) }.into()),
        ("state-done.truncated", StateDone { truncated: true, ..state_done(Some(Exit::Code(0))) }.into()),
        ("branch-start", branch_start(json!("linux")).into()),
        ("branch-start.sample", branch_start(Value::Null).into()),
        ("branch-done", branch_done(Exit::Code(3)).into()),
        ("run-finished", run_finished(RunStatus::Done, None).into()),
        ("run-finished.halt", halted().into()),
        ("run-finished.suspended", at("agree", run_finished(RunStatus::Suspended, None)).into()),
        ("run-finished.cancelled", run_finished(RunStatus::Cancelled, Some(Reason::CANCELLED)).into()),
        ("run-finished.interrupted", run_finished(RunStatus::Interrupted, Some(Reason::PROCESS_GONE)).into()),
        ("log", log("   Compiling taffrail v0.1.0").into()),
        ("log.escapes", log("\u{1b}[31m\"red\"\u{1b}[0m\t\\ é 🚢 \u{2028}").into()),
        ("log.branch", Log { index: Some(1), stream: Stream::Stderr, ..log("warning") }.into()),
        ("log.b64", Log { text: None, b64: Some("/wBhYg==".into()), ..log("") }.into()),
        ("log.first-part", Log { part: Some(0), more: true, ..log("a long li") }.into()),
        ("log.last-part", Log { part: Some(1), ..log("ne") }.into()),
        ("log.redraw", Log { redraw: true, folded: 5120, ..log("100 %") }.into()),
        ("log.no-eol", Log { eol: Some(false), ..log("password: ") }.into()),
        ("log.crlf", Log { crlf: true, ..log("from elsewhere") }.into()),
        ("message", Message { role: "assistant".into(), text: "The build".into(), delta: true }.into()),
        ("progress", progress().into()),
        ("progress.bare", bare_progress(0.5).into()),
        ("approval-requested", approval_requested().into()),
        ("approval-requested.ask", ask().into()),
        ("approval-resolved", approval_resolved().into()),
        ("approval-resolved.answer", answer().into()),
        ("clipped", clipped().into()),
        ("clipped.line-cap", Clipped { reason: ClipReason::LineCap, index: Some(1), ..clipped() }.into()),
        ("tool-call", tool_call(ToolDecision::Allowed, None).into()),
        ("tool-call.denied", tool_call(ToolDecision::Denied, Some("not-in-plan")).into()),
        ("checkpoint", checkpoint().into()),
        ("checkpoint-claimed", claimed().into()),
        ("proposal", proposal().into()),
        ("proposal-applied", proposal_applied().into()),
        ("cancel-requested", cancel(false).into()),
        ("cancel-requested.kill", cancel(true).into()),
        ("note", Note { text: "spool-paused: no space left".into(), level: Level::Warning }.into()),
        ("other", other()),
        ("run-start.external", RunStart { external: true, ..run_start(false) }.into()),
    ]
}

fn state_start(state: &str, kind: StateKind) -> StateStart {
    StateStart { machine: "release".into(), depth: 0, state: state.into(), step: 1, kind }
}

fn failed(exit: Exit) -> StateDone {
    let gate = Some("otherwise".into());
    StateDone { gate, policy: Policy::FAIL, to: None, output: String::new(), ..state_done(Some(exit)) }
}

fn branch_start(item: Value) -> BranchStart {
    BranchStart { machine: "release".into(), depth: 0, state: "test".into(), index: 0, item }
}

fn branch_done(exit: Exit) -> BranchDone {
    BranchDone { machine: "release".into(), depth: 0, state: "test".into(), index: 0, exit }
}

fn halted() -> RunFinished {
    let detail = Some("ctx.results is undefined".into());
    RunFinished { detail, ..at("deploy", run_finished(RunStatus::Halt, Some(Reason::TEMPLATE_ERROR))) }
}

fn at(state: &str, end: RunFinished) -> RunFinished {
    RunFinished { at: Some(state.into()), ..end }
}

pub(crate) fn bare_progress(progress: f64) -> Progress {
    Progress { state: None, index: None, progress, total: None, message: None }
}

fn progress() -> Progress {
    let message = Some("tests/it".into());
    Progress { state: Some("test".into()), index: Some(1), total: Some(12.0), message, ..bare_progress(3.0) }
}

fn ask() -> ApprovalRequested {
    let region = json!({ "type": "object", "properties": { "region": { "enum": ["eu", "us"], "type": "string" } } });
    ApprovalRequested { state: "region".into(), message: "Which region?".into(), schema: Some(region), ..request() }
}

fn request() -> ApprovalRequested {
    ApprovalRequested { by: Approver::Agent, ..approval_requested() }
}

fn answer() -> ApprovalResolved {
    ApprovalResolved { content: Some(json!({ "region": "eu" })), ..approval_resolved() }
}

pub(crate) fn clipped() -> Clipped {
    Clipped {
        state: Some("build".into()),
        index: None,
        stream: Stream::Stdout,
        lines: 120,
        bytes: 9_000,
        reason: ClipReason::RunCap,
        from_ts: TS,
        to_ts: Timestamp::from_micros(TS.micros() + 2_500_000),
    }
}

fn tool_call(decision: ToolDecision, reason: Option<&str>) -> ToolCall {
    ToolCall {
        tool: "read_events".into(),
        role: "evidence".into(),
        actor: "alex".into(),
        decision,
        reason: reason.map(str::to_owned),
        ms: 12,
        bytes: 4_096,
    }
}

pub(crate) fn checkpoint() -> Checkpoint {
    let resume = json!({ "attempts": { "build": 1 }, "ctx": { "results": [1, 2] } });
    Checkpoint { checkpoint: "c-7".into(), state: "test".into(), step: 2, resume }
}

pub(crate) fn claimed() -> CheckpointClaimed {
    CheckpointClaimed { checkpoint: "c-7".into(), actor: "operator".into() }
}

fn proposal() -> Proposal {
    let hash = approval_requested().hash;
    Proposal { proposal: "p-1".into(), tool: "open_ticket".into(), hash, actor: "alex".into() }
}

fn proposal_applied() -> ProposalApplied {
    let Proposal { proposal, tool, hash, actor } = proposal();
    ProposalApplied { proposal, tool, hash, actor }
}

pub(crate) fn cancel(kill: bool) -> CancelRequested {
    CancelRequested { actor: "operator".into(), reason: kill.then(|| "wrong branch".into()), kill }
}

/// A type of a later version.
fn other() -> Event {
    let raw = |text: &str| serde_json::value::RawValue::from_string(text.into()).unwrap();
    let fields =
        vec![("load".into(), raw("123456789012345678901234567890.10")), ("of".into(), raw(r#"{"z":1,"a":[]}"#))];
    Event::Other(OtherEvent { kind: "x-weather".into(), fields })
}

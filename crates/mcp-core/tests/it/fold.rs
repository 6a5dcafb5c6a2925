//! A run's state is a fold of its log.

use proptest::{collection::vec, prelude::*};
use taffrail_mcp_core::{
    Decision, Event, EventBatch, Exit, LogLine, Note, Reason, Record, RunFinished, RunFold, RunStatus, Seq, StateKind,
    StateStart, Stream, Timestamp, Usage,
};

use crate::{generate::event, samples};

/// A run whose events come a second apart.
struct Run {
    fold: RunFold,
    seq: Seq,
}

impl Run {
    fn new() -> Self {
        Self { fold: RunFold::new(samples::run(), samples::thread()), seq: Seq::START }
    }

    fn started() -> Self {
        let mut run = Self::new();
        run.takes(samples::run_start(false));
        run
    }

    fn takes(&mut self, event: impl Into<Event>) -> &mut Self {
        self.seq = self.seq.next();
        let (event, mut line) = (event.into(), Vec::new());
        let (thread, run) = (samples::thread(), samples::run());
        let head = taffrail_mcp_core::RecordHead { seq: self.seq, thread: &thread, run: &run, ts: second(self.seq.0) };
        head.encode(&event, &mut line);
        self.fold.apply_record(&Record::parse(&line).unwrap());
        self
    }

    /// Ends without a count of its own.
    fn ends(&mut self, status: RunStatus, error: Option<Reason>) -> &mut Self {
        self.takes(RunFinished { usage: Usage::default(), ..samples::run_finished(status, error) })
    }
}

fn second(n: u64) -> Timestamp {
    Timestamp::from_micros(n * 1_000_000)
}

fn state(depth: u32, name: &str, step: u64) -> StateStart {
    StateStart { machine: "release".into(), depth, state: name.into(), step, kind: StateKind::Run }
}

#[test]
fn nothing_yet() {
    let fold = Run::new().fold;
    assert_eq!(fold.status, RunStatus::Running);
    assert_eq!(fold.snapshot(Seq(0), second(100)).elapsed_ms, 0, "it has not begun");
}

#[test]
fn start() {
    let mut run = Run::new();
    run.takes(Note::info("queued")).takes(samples::run_start(false));
    let fold = &run.fold;
    assert_eq!((fold.playbook.as_str(), fold.status), ("release", RunStatus::Running));
    assert_eq!((fold.first, fold.last), (Seq(1), Seq(2)));
    assert_eq!((fold.started_at, fold.resumed_at, fold.updated_at), (second(1), second(2), second(2)));
    assert_eq!(fold.usage_at(second(5)).wall_ms, 3000);
}

#[test]
fn a_called_playbook_is_not_the_run() {
    let mut run = Run::started();
    run.takes(state(0, "deploy", 1)).takes(samples::state_done(Some(Exit::Code(4))));
    let before = run.fold.clone();
    let inner = |event: &mut u32| *event = 1;
    let mut start = samples::run_start(false);
    (start.machine, start.depth) = ("deploy-one".into(), 1);
    let mut done = samples::state_done(Some(Exit::Code(9)));
    inner(&mut done.depth);
    let mut end = samples::run_finished(RunStatus::Halt, Some(Reason::GATE_FAILED));
    inner(&mut end.depth);
    run.takes(start).takes(state(1, "inner", 2)).takes(done).takes(end);
    assert_eq!(run.fold.usage.steps, 2, "its states count");
    let expected = RunFold {
        last: run.fold.last,
        changed: run.fold.changed,
        updated_at: run.fold.updated_at,
        usage: Usage { steps: 2, ..before.usage },
        ..before
    };
    assert_eq!(run.fold, expected);
}

#[test]
fn states_and_exits() {
    let mut run = Run::started();
    run.takes(state(0, "build", 1)).takes(samples::state_done(Some(Exit::Code(3))));
    assert_eq!((run.fold.state.as_deref(), run.fold.exit.clone()), (Some("build"), Some(Exit::Code(3))));
    run.takes(state(0, "test", 2)).takes(samples::state_done(None));
    assert_eq!((run.fold.state.as_deref(), run.fold.exit.clone()), (Some("test"), None));
    assert_eq!(run.fold.usage.steps, 2);
}

#[test]
fn the_last_change_of_state_is_known() {
    let mut run = Run::started();
    let changed = |run: &mut Run, event: Event| run.takes(event).fold.changed;
    assert_eq!(run.fold.changed, Seq(1));
    assert_eq!(changed(&mut run, samples::log("a").into()), Seq(1));
    assert_eq!(changed(&mut run, state(0, "build", 1).into()), Seq(3));
    assert_eq!(changed(&mut run, samples::state_done(None).into()), Seq(3), "the next state, or the end, follows");
    assert_eq!(changed(&mut run, samples::approval_resolved().into()), Seq(5));
    assert_eq!(changed(&mut run, samples::run_finished(RunStatus::Done, None).into()), Seq(6));
}

#[test]
fn output_and_what_was_cut_are_counted() {
    let mut run = Run::started();
    run.takes(samples::log("abc")).takes(samples::log("d")).takes(samples::clipped()).takes(samples::clipped());
    let Usage { log_lines, log_bytes, clipped_lines, clipped_bytes, .. } = run.fold.usage;
    assert_eq!((log_lines, log_bytes, clipped_lines, clipped_bytes), (2, 6, 240, 18_000));
}

#[test]
fn done() {
    let mut run = Run::started();
    run.takes(samples::checkpoint()).ends(RunStatus::Done, None);
    assert_eq!((run.fold.status, run.fold.usage.wall_ms), (RunStatus::Done, 2000));
    assert_eq!(run.fold.checkpoint, None, "nothing to resume");
    assert_eq!(run.fold.snapshot(run.seq, second(1000)).elapsed_ms, 2000, "its time stands still");
}

#[test]
fn halt() {
    let mut run = Run::started();
    let mut end = samples::run_finished(RunStatus::Halt, Some(Reason::TIMEOUT));
    (end.at, end.detail) = (Some("build".into()), Some("10m".into()));
    run.takes(end);
    let snapshot = run.fold.snapshot(run.seq, second(9));
    assert_eq!((snapshot.status, snapshot.error), (RunStatus::Halt, Some(Reason::TIMEOUT)));
    assert_eq!((snapshot.at.as_deref(), snapshot.detail.as_deref()), (Some("build"), Some("10m")));
}

#[test]
fn suspend_decide_resume() {
    let mut run = Run::started();
    run.takes(samples::checkpoint()).takes(samples::approval_requested());
    assert_eq!(run.fold.snapshot(run.seq, second(3)).approval, None, "it still runs");
    run.ends(RunStatus::Suspended, None);
    let snapshot = run.fold.snapshot(run.seq, second(60));
    let pending = snapshot.approval.unwrap();
    assert_eq!((pending.approval.as_str(), pending.decision), ("a-1", None));
    assert_eq!(snapshot.checkpoint.as_deref(), Some("c-7"));
    assert_eq!(run.fold.checkpoint, Some(("c-7".to_owned(), Seq(2))));

    run.takes(samples::approval_resolved());
    let pending = run.fold.approval.clone().unwrap();
    assert_eq!((pending.decision, pending.content), (Some(Decision::Approve), None), "kept until the run goes on");

    run.takes(samples::claimed());
    assert_eq!((&run.fold.approval, &run.fold.checkpoint), (&None, &None), "usable once");
    run.takes(samples::run_start(true));
    assert_eq!((run.fold.status, run.fold.resumed_at), (RunStatus::Running, second(7)));
    assert_eq!(run.fold.started_at, second(1));
    run.ends(RunStatus::Done, None);
    assert_eq!(run.fold.usage.wall_ms, 4000, "three seconds before the pause, one after it");
}

#[test]
fn a_decision_must_be_about_what_is_asked_and_is_made_once() {
    let mut run = Run::started();
    run.takes(samples::approval_requested()).ends(RunStatus::Suspended, None);
    let good = samples::approval_resolved();
    let decision = |run: &Run| run.fold.approval.as_ref().and_then(|pending| pending.decision);
    let mut other = good.clone();
    other.approval = "a-2".into();
    assert_eq!(decision(run.takes(other)), None);
    let mut stale = good.clone();
    stale.hash = "0".repeat(64);
    assert_eq!(decision(run.takes(stale)), None);
    assert_eq!(decision(run.takes(good.clone())), Some(Decision::Approve));
    let mut late = good;
    late.decision = Decision::Reject;
    assert_eq!(decision(run.takes(late)), Some(Decision::Approve));
}

#[test]
fn a_claim_of_another_checkpoint_changes_nothing() {
    let mut run = Run::started();
    run.takes(samples::checkpoint()).takes(samples::approval_requested()).ends(RunStatus::Suspended, None);
    let mut stale = samples::claimed();
    stale.checkpoint = "c-6".into();
    run.takes(stale);
    assert!(run.fold.approval.is_some() && run.fold.checkpoint.is_some());
}

#[test]
fn cancel() {
    let mut run = Run::started();
    run.takes(samples::cancel(true));
    assert_eq!((run.fold.cancel.clone(), run.fold.status), (Some(samples::cancel(true)), RunStatus::Running));
    run.ends(RunStatus::Cancelled, Some(Reason::CANCELLED));
    assert_eq!((run.fold.cancel.clone(), run.fold.status), (None, RunStatus::Cancelled));
    run.takes(samples::cancel(false));
    assert_eq!(run.fold.cancel, None, "it is over");
}

#[test]
fn the_engines_count_of_its_time_is_the_runs() {
    let mut run = Run::started();
    run.takes(samples::run_finished(RunStatus::Suspended, None));
    assert_eq!(run.fold.usage.wall_ms, 61_250);
    run.takes(samples::run_start(true)).ends(RunStatus::Done, None);
    assert_eq!(run.fold.usage.wall_ms, 62_250, "and a second by the log's times");
}

#[test]
fn cancel_while_suspended_adds_no_running_time() {
    let mut run = Run::started();
    run.takes(samples::approval_requested()).ends(RunStatus::Suspended, None);
    run.takes(Note::info("a day passes")).takes(samples::cancel(false));
    run.ends(RunStatus::Cancelled, Some(Reason::CANCELLED));
    assert_eq!((run.fold.usage.wall_ms, run.fold.status), (2000, RunStatus::Cancelled));
    assert_eq!(run.fold.approval, None);
}

#[test]
fn interrupted_and_resumed() {
    let mut run = Run::started();
    run.takes(samples::checkpoint()).ends(RunStatus::Interrupted, Some(Reason::PROCESS_GONE));
    let snapshot = run.fold.snapshot(run.seq, second(9));
    assert_eq!((snapshot.checkpoint.as_deref(), snapshot.error), (Some("c-7"), Some(Reason::PROCESS_GONE)));
    run.takes(samples::claimed()).takes(samples::run_start(true));
    assert_eq!((run.fold.status, &run.fold.error), (RunStatus::Running, &None));
}

#[test]
fn the_document_comes_back() {
    let mut run = Run::started();
    for (_, event) in samples::events() {
        run.takes(event);
        let text = serde_json::to_string(&run.fold).unwrap();
        assert_eq!(serde_json::from_str::<RunFold>(&text).unwrap(), run.fold);
    }
}

/// An event, or a line that never becomes one.
fn item() -> impl Strategy<Value = Result<Event, Vec<u8>>> {
    prop_oneof![4 => event().prop_map(Ok), 1 => vec(any::<u8>(), 0..9).prop_map(Err)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// What a writer folds, block by block and without reading its own records, is what the stored log gives.
    #[test]
    fn folding_the_stored_log_gives_what_was_folded_as_written(batches in vec(vec(item(), 1..6), 1..6)) {
        let (run, thread) = (samples::run(), samples::thread());
        let mut as_written = RunFold::new(run.clone(), thread.clone());
        let mut as_stored = as_written.clone();
        let mut log = Vec::new();
        let mut head = Seq::START;
        for (n, items) in (1..).zip(batches) {
            let (ts, first) = (second(n), head.next());
            let mut batch = EventBatch::new();
            for item in items {
                match item {
                    Ok(event) => batch.push(event),
                    Err(data) => batch.push_line(&LogLine::new("a", Stream::Stdout, &data)),
                }
            }
            as_written.wrote(first, ts, 0, 0);
            for (at, event) in batch.folding() {
                as_written.apply(first.plus(*at), ts, event);
            }
            for body in batch.bodies().split_inclusive(|&b| b == b'\n') {
                head = head.next();
                taffrail_mcp_core::RecordHead { seq: head, thread: &thread, run: &run, ts }.encode_head(&mut log);
                log.extend_from_slice(body);
            }
            let (lines, bytes) = batch.output();
            as_written.wrote(head, ts, lines, bytes);
        }
        for line in log.split_inclusive(|&b| b == b'\n') {
            as_stored.apply_record(&Record::parse(line).unwrap());
        }
        prop_assert_eq!(as_written, as_stored);
    }
}

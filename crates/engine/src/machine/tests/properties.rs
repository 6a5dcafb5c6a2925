//! Whatever happens, in whatever order: one end, and every state that starts is done.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use taffrail_mcp_core::{Decision, Event, Exit, RunStatus};

use super::{
    super::{Fact, Stop, TaskId},
    sim::Sim,
};

/// A bit of everything.
pub(super) const ZOO: &[&str] = &[
    "
playbook: zoo
budget: { steps: 40, wall: 1h }
inputs: { list: { type: array, default: [1, 2, 3] } }
states:
  first: { run: first, output: a, gates: [{ when: exit.code == 0, then: ok }, { when: otherwise, repair: 2 }] }
  many:
    run: many
    over: '{{ inputs.list }}'
    output: many
    gates: [{ when: 'branches.all(b, b.exit.code == 0)', then: ok }, { when: otherwise, escalate: true, to: calls }]
  agree: { approve: 'Go on with {{ ctx.many }}?', gates: [{ when: otherwise, then: ok }] }
  calls:
    call: part
    with: { n: '{{ item }}' }
    over: '{{ inputs.list }}'
    gates: [{ when: otherwise, then: ok }]
  alone: { call: part, with: { n: 0 }, output: alone, gates: [{ when: otherwise, then: ok }] }
  again: { run: again, gates: [{ when: exit.code == 0, then: ok }, { when: exit.code == 1, repair: 1, to: many }] }
",
    "
playbook: part
inputs: { n: { type: integer } }
states:
  work: { exec: [work, '{{ inputs.n }}'], output: w, gates: [{ when: exit.code == 2, then: fail }, { when: otherwise, then: ok }] }
  agree: { approve: Really?, gates: [{ when: otherwise, then: ok }] }
  rest: { run: rest, sample: 2 }
",
];

#[derive(Debug, Clone)]
enum Step {
    Exit(usize, i32),
    NoSpawn(usize),
    Unknown,
    TenMinutes,
    Stop(Stop),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        20 => (any::<usize>(), 0..3).prop_map(|(which, code)| Step::Exit(which, code)),
        2 => any::<usize>().prop_map(Step::NoSpawn),
        1 => Just(Step::Unknown),
        1 => Just(Step::TenMinutes),
        1 => prop_oneof![
            Just(Stop::Cancel),
            Just(Stop::Shutdown),
            Just(Stop::Fault("x".to_owned())),
        ].prop_map(Step::Stop),
    ];
    prop::collection::vec(step, 0..60)
}

fn apply(sim: &mut Sim, step: Step) {
    let pick = |which: usize| sim.running.keys().nth(which % sim.running.len().max(1)).copied();
    match step {
        Step::Exit(which, code) => {
            if let Some(task) = pick(which) {
                sim.exit(task, Exit::Code(code), "out");
            }
        }
        Step::NoSpawn(which) => {
            if let Some(task) = pick(which) {
                sim.fact(Fact::SpawnFailed { task, code: 127, detail: "no".to_owned() });
            }
        }
        Step::TenMinutes => {
            sim.reading.wall += Duration::from_secs(600);
            sim.settle();
        }
        Step::Unknown => sim.exit(TaskId(1_000_000), Exit::Code(0), ""),
        Step::Stop(stop) => sim.fact(Fact::Stop(stop)),
    }
}

/// Ends of sessions, states and branches that are open; each `run-start` of a depth meets one `run-finished` of it.
fn check_balance(events: &[Event], interrupted: bool) {
    let mut open_states = Vec::new();
    let mut open_branches: i64 = 0;
    let mut open_runs: i64 = 0;
    for event in events {
        match event {
            Event::RunStart(_) => open_runs += 1,
            Event::RunFinished(_) => open_runs -= 1,
            Event::StateStart(event) => open_states.push(event.step),
            Event::StateDone(event) => {
                let at = open_states.iter().position(|step| *step == event.step);
                open_states.remove(at.expect("a state-done belongs to a state-start"));
            }
            Event::BranchStart(_) => open_branches += 1,
            Event::BranchDone(_) => open_branches -= 1,
            _ => {}
        }
    }
    assert_eq!(open_runs, 0);
    if !interrupted {
        assert_eq!((open_states.len(), open_branches), (0, 0));
    }
}

proptest! {
    #[test]
    fn any_sequence_of_facts_ends_once_and_in_balance(steps in steps(), approve in any::<bool>()) {
        let mut sim = Sim::start(ZOO, json!({}));
        let mut interrupted = false;
        for step in steps {
            apply(&mut sim, step);
            let Some(ended) = &sim.ended else { continue };
            interrupted |= ended.status == RunStatus::Interrupted;
            let decision = if approve { Decision::Approve } else { Decision::Reject };
            match ended.status {
                RunStatus::Suspended => {
                    let resolution = sim.resolution(decision, None);
                    sim.resume(Some(resolution)).unwrap();
                }
                RunStatus::Interrupted => sim.resume(None).unwrap(),
                _ => break,
            }
        }
        if sim.ended.is_none() {
            sim.fact(Fact::Stop(Stop::Cancel));
            while let Some(task) = sim.running.keys().next().copied() {
                sim.exit(task, Exit::Signal("SIGTERM".to_owned()), "");
            }
        }
        let ended = sim.ended.as_ref().expect("it ends");
        interrupted |= ended.status == RunStatus::Interrupted;
        let Some(Event::RunFinished(last)) = sim.events.last() else { panic!("the last event is a run-finished") };
        prop_assert_eq!((last.depth, last.status), (0, ended.status));
        let at_top = |event: &&Event| matches!(event, Event::RunFinished(event) if event.depth == 0);
        let starts = |event: &&Event| matches!(event, Event::RunStart(event) if event.depth == 0);
        prop_assert_eq!(sim.events.iter().filter(at_top).count(), sim.events.iter().filter(starts).count());
        if ended.status != RunStatus::Suspended {
            check_balance(&sim.events, interrupted);
        }
    }
}

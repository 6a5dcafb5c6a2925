//! A run that is resumed from any of its checkpoints does what it would have done.

use serde_json::json;
use taffrail_mcp_core::{Decision, Event, Exit, RunStatus};

use super::{super::ResumeData, properties::ZOO, sim::Sim, sim::line};

/// Lets every process end in a way that follows from its step and branch alone, and says yes to everything.
fn finish(sim: &mut Sim, seed: u64) {
    loop {
        while let Some((id, task)) = sim.running.iter().next() {
            let index = task.command.index.unwrap_or(7);
            let code = (sim.step_of[id].wrapping_mul(31) ^ index.wrapping_mul(17) ^ seed.wrapping_mul(101)) % 5 / 4;
            let (id, out) = (*id, format!("out {index}"));
            sim.exit(id, Exit::Code(i32::try_from(code).unwrap()), &out);
        }
        if sim.ended.as_ref().map(|ended| ended.status) != Some(RunStatus::Suspended) {
            return;
        }
        let yes = sim.resolution(Decision::Approve, None);
        sim.resume(Some(yes)).unwrap();
    }
}

/// Events as lines, without what must differ: ids and where sessions begin.
fn shown(events: &[Event]) -> Vec<String> {
    let resumed = |event: &&Event| !matches!(event, Event::RunStart(start) if start.resumed);
    let without_ids = |text: String| -> String {
        text.split(' ').filter(|word| !word.contains("=id-")).collect::<Vec<_>>().join(" ")
    };
    events.iter().filter(resumed).map(|event| without_ids(line(event))).collect()
}

#[test]
fn from_every_checkpoint_the_rest_is_the_same() {
    let mut checkpoints = 0;
    for seed in 0..20 {
        let mut whole = Sim::start(ZOO, json!({}));
        finish(&mut whole, seed);
        let first = whole.checkpoints().remove(0);
        for (at, event) in whole.events.iter().enumerate() {
            let Event::Checkpoint(checkpoint) = event else { continue };
            checkpoints += 1;
            let mut again = Sim::start(ZOO, json!({}));
            again.events.clear();
            // It goes through JSON text, as it would through a log.
            let text = serde_json::to_string(&checkpoint.resume).unwrap();
            let data = ResumeData::read(&first, &serde_json::from_str(&text).unwrap()).unwrap();
            again.resume_from(data, None).unwrap();
            // Later resumes of this run need its first checkpoint, too.
            again.events.insert(0, whole.events[1].clone());
            finish(&mut again, seed);
            let expected = shown(&whole.events[at..]);
            let skip = again.events.iter().skip(1).position(|event| event.kind() == "checkpoint").unwrap() + 1;
            assert_eq!(shown(&again.events[skip..]), expected, "seed {seed}, checkpoint {at}");
        }
    }
    assert!(checkpoints > 100, "the test tests something: {checkpoints}");
}

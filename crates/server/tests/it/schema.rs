//! The published schemas, and what the command itself writes against them.

use std::fs;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::{
    proc::Proc,
    world::{World, here},
};

fn schema(world: &World, of: &str) -> Validator {
    let schema = world.expect(0, &["schema", of]).json();
    assert!(jsonschema::meta::is_valid(&schema), "{of}");
    assert!(schema["$schema"].as_str().is_some_and(|draft| draft.contains("2020-12")), "{of}: {}", schema["$schema"]);
    jsonschema::validator_for(&schema).unwrap()
}

#[track_caller]
fn check(validator: &Validator, value: &Value) {
    let errors: Vec<_> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{value}");
}

#[test]
fn the_records_of_whole_runs_fit() {
    let world = World::new();
    let records = schema(&world, "record");
    let snapshots = schema(&world, "snapshot");
    let bytes = crate::world::case("bytes.sh");
    let runs: [(i32, &[&str]); 5] = [
        (3, &["run", "question", "--json"]),
        (0, &["run", "small", "--json"]),
        (0, &["exec", "--json", "--", &bytes]),
        (0, &["exec", "--json", "--output-cap", "5", "--", "echo", "too much"]),
        (127, &["exec", "--json", "--", "no-such-program"]),
    ];
    let mut seen = 0;
    let mut tour = world.command(&["run", "./playbooks/tour.yaml", "--json", "-i", "lines=20"]);
    tour.current_dir(here("../.."));
    let tour = Proc::start(tour).end();
    assert_eq!(tour.code, Some(3), "{}", tour.stderr);
    assert!(tour.records().iter().any(|record| record["type"] == "branch-done"));
    tour.records().iter().for_each(|record| check(&records, record));
    for (code, args) in runs {
        for record in world.expect(code, args).records() {
            check(&records, &record);
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
    let listed = world.expect(0, &["runs", "--json"]).records();
    let suspended = listed[4]["run"].as_str().unwrap().to_owned();
    assert_eq!(listed.len(), 6);
    listed.iter().for_each(|snapshot| check(&snapshots, snapshot));
    world.expect(0, &["approve", &suspended, "-i", "region=us"]);
    world.expect(0, &["logs", &suspended, "--json"]).records().iter().for_each(|record| check(&records, record));
    // The schema is no rubber stamp.
    for wrong in [json!({}), json!({"seq": 0, "type": "log"}), json!({"seq": "1"}), json!([])] {
        assert!(!records.is_valid(&wrong), "{wrong}");
        assert!(!snapshots.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn playbooks_fit_as_far_as_they_can_run() {
    let world = World::new();
    let playbooks = schema(&world, "playbook");
    schema(&world, "gap");
    let contract = "{\"playbook\": \"x\", \"states\": {\"a\": {\"run\": \"true\", \"timeout\": \"5s\"}}}";
    check(&playbooks, &serde_json::from_str(contract).unwrap());
    for wrong in [json!({}), json!({"playbook": "x"}), json!({"playbook": "x", "states": {"a": {"runn": "true"}}})] {
        assert!(!playbooks.is_valid(&wrong), "{wrong}");
    }
    // What is there can run, as the check of it says.
    for folder in ["tests/playbooks", "../../playbooks"] {
        for entry in fs::read_dir(here(folder)).unwrap() {
            let path = entry.unwrap().path();
            assert!(fs::read_to_string(&path).unwrap().starts_with("playbook: "), "{path:?}");
        }
    }
}

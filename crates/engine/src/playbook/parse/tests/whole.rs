//! Whole playbooks: the documented example, and what becomes of each part of it.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;

use super::{good, told};
use crate::playbook::{Action, ApprovedBy, Contract, InputKind, Over, Parse, Policy, Program, Target};

/// The example of `docs/wire.md`, to the letter.
const EXAMPLE: &str = include_str!("release.yaml");

#[test]
fn the_documented_example() {
    // Its `region` stands between two states that are not followed through: worth a warning, not an error.
    assert_snapshot!(told(EXAMPLE), @r"
    p.yaml:33:3: warning: state `region` is never reached
      help: no gate leads to it: add one, or remove it
    ");
    let playbook = good(EXAMPLE);
    assert_eq!(playbook.name, "release");
    assert_eq!(&*playbook.source, EXAMPLE);
    assert_eq!(playbook.budget.steps, 50);
    assert_eq!(playbook.budget.wall, Duration::from_secs(1800));
    assert_eq!(playbook.budget.output_bytes, 64 << 20);
    assert_eq!(playbook.entry, 0);
    let [version, targets] = playbook.inputs.as_slice() else { panic!("{:?}", playbook.inputs) };
    assert!(version.required && version.kind == InputKind::String && version.default.is_none());
    assert!(!targets.required && targets.default == Some(json!(["linux", "mac"])));

    let [build, test, agree, region, deploy] = playbook.states.as_slice() else { panic!("five states") };
    let Action::Process(process) = &build.action else { panic!("{build:?}") };
    assert!(matches!(&process.program, Program::Shell(command) if command == "cargo build --release"));
    assert_eq!(process.timeout, Some(Duration::from_secs(600)));
    let gates: Vec<_> = build.gates.iter().map(|gate| (gate.when.text(), gate.policy, gate.to)).collect();
    assert_eq!(
        gates,
        [
            ("exit.code == 0", Policy::Ok, Target::State(1)),
            ("exit.code == 75", Policy::Repair(2), Target::Default),
            ("otherwise", Policy::Fail, Target::Default),
        ]
    );
    assert_eq!((test.parse, test.output.as_deref()), (Parse::Json, Some("results")));
    let fan_out = test.fan_out.as_ref().expect("fans out");
    assert!(matches!(fan_out.over, Over::Items(_)) && fan_out.max_parallel == Some(4));
    assert!(matches!(&agree.action, Action::Approve(approve) if approve.by == ApprovedBy::Human));
    assert!(matches!(&region.action, Action::Ask(ask) if ask.schema.contains_key("properties")));
    assert!(matches!(&deploy.action, Action::Call(call) if call.playbook == "deploy-one" && call.with.len() == 1));
}

#[test]
fn the_contract_of_the_documented_example() {
    insta::assert_json_snapshot!(Contract::of(&good(EXAMPLE)), @r#"
    {
      "name": "release",
      "description": "Build, test on every target, deploy after a person agrees.",
      "inputs": [
        {
          "name": "version",
          "type": "string",
          "required": true
        },
        {
          "name": "targets",
          "type": "array",
          "required": false,
          "default": [
            "linux",
            "mac"
          ]
        }
      ],
      "budget": {
        "steps": 50,
        "wall_ms": 1800000,
        "output_bytes": 67108864
      },
      "entry": "build",
      "states": [
        {
          "name": "build",
          "kind": "run",
          "next": [
            "test",
            "build"
          ]
        },
        {
          "name": "test",
          "kind": "run",
          "fan_out": true,
          "next": [
            "agree"
          ]
        },
        {
          "name": "agree",
          "kind": "approve",
          "next": [
            "deploy"
          ]
        },
        {
          "name": "region",
          "kind": "ask",
          "next": [
            "deploy"
          ]
        },
        {
          "name": "deploy",
          "kind": "call",
          "call": "deploy-one",
          "next": [
            "END"
          ]
        }
      ],
      "pauses": true,
      "calls": [
        "deploy-one"
      ]
    }
    "#);
}

#[test]
fn texts_keep_the_way_they_were_written() {
    let playbook =
        good("playbook: p\nstates:\n  s:\n    exec: [a, 1.10, 0x1F, true]\n    env: { PORT: 08080, EMPTY: '' }\n");
    let Some(Action::Process(process)) = playbook.states.first().map(|state| &state.action) else { panic!() };
    let Program::Exec(arguments) = &process.program else { panic!() };
    let texts: Vec<_> = arguments.iter().map(|argument| argument.source()).collect();
    assert_eq!(texts, ["a", "1.10", "0x1F", "true"]);
    let values: Vec<_> = process.env.iter().map(|(name, value)| (name.as_str(), value.source())).collect();
    assert_eq!(values, [("PORT", "08080"), ("EMPTY", "")]);
}

#[test]
fn anchors_share_parts() {
    let playbook = good("playbook: p\nstates:\n  a: { run: x, env: &env { A: b } }\n  b: { run: y, env: *env }\n");
    let environments = playbook.states.iter().map(|state| match &state.action {
        Action::Process(process) => process.env.len(),
        _ => 0,
    });
    assert_eq!(environments.collect::<Vec<_>>(), [1, 1]);
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_do_no_harm() {
    let playbook = good("\u{feff}playbook: p\r\nstates:\r\n  s:\r\n    run: |\r\n      a\r\n      b\r\n");
    let Some(Action::Process(process)) = playbook.states.first().map(|state| &state.action) else { panic!() };
    assert!(matches!(&process.program, Program::Shell(command) if command == "a\nb\n"));
}

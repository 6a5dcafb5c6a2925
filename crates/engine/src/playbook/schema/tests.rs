//! Tests of the schema: the parser and the schema judge the same sources, and have to agree.

use super::*;
use crate::playbook::{
    diagnostic::Report,
    parse::{KINDS, parse},
    yaml,
};

const EXAMPLE: &str = include_str!("../parse/tests/release.yaml");

fn json_of(source: &str) -> Value {
    yaml::read(source, &mut Report::new("p.yaml")).map_or(Value::Null, |node| node.to_json())
}

/// Both judges must agree on the source.
fn check(source: &str, good: bool) {
    let schema = playbook_schema();
    let validator = jsonschema::draft202012::new(&schema).expect("the schema is a schema");
    let parsed = parse(source, "p.yaml");
    assert_eq!(parsed.playbook.is_some(), good, "parser: {source}\n{:?}", parsed.diagnostics);
    let errors: Vec<String> = validator.iter_errors(&json_of(source)).map(|error| error.to_string()).collect();
    assert_eq!(errors.is_empty(), good, "schema: {source}\n{errors:?}");
}

/// A playbook with one state of these keys.
fn state(keys: &str) -> String {
    format!("playbook: p\nstates: {{ s: {{ {keys} }} }}\n")
}

#[test]
fn the_schema_is_one() {
    let schema = playbook_schema();
    assert!(jsonschema::meta::is_valid(&schema), "{schema:#}");
}

#[test]
fn the_documented_example_is_good() {
    check(EXAMPLE, true);
}

#[test]
fn both_accept() {
    for keys in [
        "run: x",
        "exec: [a, 1, true]",
        "call: other, with: { a: { b: [1] } }",
        "approve: 'Go?', by: agent",
        "ask: 'What?', schema: { type: object }",
        "run: x, env: { A: 1 }, cwd: ., timeout: 1h30m, detach: true, emit: message, parse: json, output: out_1",
        "run: x, over: [1, 2], max_parallel: 2",
        "call: other, sample: 3",
        "run: x, gates: [{ when: true, then: ok, to: END }, { when: otherwise, escalate: true }]",
        "run: x, gates: []",
    ] {
        check(&state(keys), true);
    }
    for kind in KINDS {
        check(&format!("playbook: p\ninputs: {{ a: {{ type: {} }} }}\nstates: {{ s: {{ run: x }} }}\n", kind.0), true);
    }
    for secret in ["secret: true", "secret: true, required: true", "secret: false, default: x"] {
        check(&format!("playbook: p\ninputs: {{ a: {{ {secret} }} }}\nstates: {{ s: {{ run: x }} }}\n"), true);
    }
    for budget in ["steps: 1", "wall: 500ms", "output: 500KB", "output: 64MiB", "output: 0"] {
        check(&format!("playbook: p\nbudget: {{ {budget} }}\nstates: {{ s: {{ run: x }} }}\n"), true);
    }
}

#[test]
fn both_reject() {
    for keys in [
        "",
        "rum: x",
        "run: x, exec: [a]",
        "run: 5",
        "run: '{{ inputs.x }}'",
        "exec: a",
        "exec: []",
        "exec: [[a]]",
        "call: ../evil",
        "call: other, env: { A: b }",
        "call: other, parse: json",
        "approve: 'Go?', timeout: 3s",
        "approve: 'Go?', over: [1]",
        "approve: 'Go?', by: nobody",
        "ask: 'What?'",
        "ask: 'What?', schema: { type: string }",
        "ask: 'What?', sample: 2, schema: { type: object }",
        "run: x, with: { a: b }",
        "run: x, by: human",
        "run: x, schema: { type: object }",
        "run: x, env: { A-B: c }",
        "run: x, env: { A: [b] }",
        "run: x, timeout: 10",
        "run: x, timeout: 10 minutes",
        "run: x, detach: yes",
        "run: x, emit: lines",
        "run: x, parse: xml",
        "run: x, output: my-out",
        "run: x, over: [1], sample: 2",
        "run: x, over: []",
        "run: x, over: items",
        "run: x, sample: 0",
        "run: x, max_parallel: 2",
        "run: x, gates: { when: true, then: ok }",
        "run: x, gates: [otherwise]",
        "run: x, gates: [{ then: ok }]",
        "run: x, gates: [{ when: true }]",
        "run: x, gates: [{ when: true, then: ok, repair: 1 }]",
        "run: x, gates: [{ when: true, then: maybe }]",
        "run: x, gates: [{ when: true, repair: 0 }]",
        "run: x, gates: [{ when: true, escalate: false }]",
        "run: x, gates: [{ wen: true, then: ok }]",
    ] {
        check(&state(keys), false);
    }
    for top in [
        "playbook: Bad Name\nstates: { s: { run: x } }\n",
        "states: { s: { run: x } }\n",
        "playbook: p\n",
        "playbook: p\nstates: {}\n",
        "playbook: p\nstates: { Bad: { run: x } }\n",
        "playbook: p\nmore: 1\nstates: { s: { run: x } }\n",
        "playbook: p\nbudget: { steps: 0 }\nstates: { s: { run: x } }\n",
        "playbook: p\nbudget: { wall: 30 }\nstates: { s: { run: x } }\n",
        "playbook: p\nbudget: { output: 64Mb }\nstates: { s: { run: x } }\n",
        "playbook: p\nbudget: { cpu: 1 }\nstates: { s: { run: x } }\n",
        "playbook: p\ninputs: { a-b: {} }\nstates: { s: { run: x } }\n",
        "playbook: p\ninputs: { a: string }\nstates: { s: { run: x } }\n",
        "playbook: p\ninputs: { a: { type: text } }\nstates: { s: { run: x } }\n",
        "playbook: p\ninputs: { a: { required: 1 } }\nstates: { s: { run: x } }\n",
        "playbook: p\ninputs: { a: { enum: [] } }\nstates: { s: { run: x } }\n",
        "playbook: p\ninputs: { a: { secret: true, default: x } }\nstates: { s: { run: x } }\n",
        "playbook: p\ninputs: { a: { optional: true } }\nstates: { s: { run: x } }\n",
        "- a\n",
    ] {
        check(top, false);
    }
}

#[test]
fn every_key_of_the_tables_is_read_by_the_parser() {
    // A key that the table has and the parser forgets would be accepted and ignored: each must object to nonsense.
    let nonsense = "{ a: [] }";
    for (key, _) in keys::STATE.iter().chain(keys::ACTIONS) {
        // `with` takes any mapping.
        let value = if *key == "with" { "5" } else { nonsense };
        for action in ["run: x", "call: other", "approve: a", "ask: a"] {
            let kind = action.split(':').next().unwrap_or_default();
            if *key == kind {
                continue;
            }
            let parsed = parse(&state(&format!("{action}, {key}: {value}")), "p.yaml");
            assert!(parsed.playbook.is_none(), "{action}, {key}");
        }
    }
    for (table, place) in [
        (keys::GATE, "states: { s: { run: x, gates: [{ KEY }] } }"),
        (keys::BUDGET, "budget: { KEY }\nstates: { s: { run: x } }"),
    ] {
        for (key, _) in table {
            let source = format!("playbook: p\n{}\n", place.replace("KEY", &format!("{key}: {nonsense}")));
            let parsed = parse(&source, "p.yaml");
            let objections = parsed.diagnostics.iter().any(|problem| problem.message.contains(&format!("`{key}`")));
            assert!(objections, "{key}: {:?}", parsed.diagnostics);
        }
    }
}

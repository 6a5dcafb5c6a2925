//! States: actions, durations and sizes, fan-outs, keys that do not belong.

use insta::assert_snapshot;

use super::told;

#[test]
fn exactly_one_action() {
    let source = r#"
playbook: p
states:
  none: { env: { A: b } }
  both: { run: a, exec: [b] }
  all: { run: a, call: b, ask: c }
  null-run: { run: }
  list-run: { run: [a] }
  num-run: { run: 5 }
  empty-run: { run: "" }
  bare: text
"#;
    assert_snapshot!(told(source), @r#"
    p.yaml:3:3: error: state `none` does nothing
      help: give it one of `run`, `exec`, `call`, `approve`, `ask`
    p.yaml:4:3: error: state `both` does more than one thing: `run` and `exec`
      help: a state does one thing; make it several states
    p.yaml:5:3: error: state `all` does more than one thing: `run` and `call` and `ask`
      help: a state does one thing; make it several states
    p.yaml:6:18: error: `run` must be a string, not nothing
    p.yaml:7:20: error: `run` must be a string, not a list
    p.yaml:8:19: error: `run` must be a string, not a number
      help: put quotes around it: "5"
    p.yaml:9:21: error: `run` has no command
    p.yaml:10:9: error: state `bare` must be a mapping, not a string
    "#);
}

#[test]
fn run_is_never_templated() {
    let source = r"
playbook: p
inputs: { target: {} }
states:
  s:
    run: deploy {{ inputs.target }}
";
    assert_snapshot!(told(source), @r#"
    p.yaml:5:10: error: `run` is passed to the shell as it is and never templated
      help: pass the value in the environment: `env: { VALUE: "{{ inputs.target }}" }`, and write "$VALUE" in the command; for braces of another tool use `exec` or a script
    "#);
}

#[test]
fn durations_and_sizes() {
    let source = r"
playbook: p
states:
  a:
    run: x
    timeout: 10
  b: { run: x, timeout: 30min }
  c: { run: x, timeout: 1h30m }
  d: { run: x, timeout: 0s }
  e: { run: x, timeout: [1] }
budget: { steps: 0, wall: 24, output: 64Mb, cpu: 1 }
";
    assert_snapshot!(told(source), @r"
    p.yaml:5:14: error: `timeout` is not a duration: `10`
      help: write a number and a unit, `ms`, `s`, `m`, `h` or `d`: `500ms`, `10s`, `1h30m`
    p.yaml:6:25: error: `timeout` is not a duration: `30min`
      help: write a number and a unit, `ms`, `s`, `m`, `h` or `d`: `500ms`, `10s`, `1h30m`
    p.yaml:8:25: error: `timeout` is not a duration: `0s`
      help: write a number and a unit, `ms`, `s`, `m`, `h` or `d`: `500ms`, `10s`, `1h30m`
    p.yaml:9:25: error: `timeout` must be a string, not a list
    p.yaml:10:18: error: `steps` must be a whole number from 1 to 1000000000, not 0
    p.yaml:10:27: error: `wall` is not a duration: `24`
      help: write a number and a unit, `ms`, `s`, `m`, `h` or `d`: `500ms`, `10s`, `1h30m`
    p.yaml:10:39: error: `output` is not a size: `64Mb`
      help: write a whole number of bytes or a number and a unit, such as `KB`, `MiB`, `GiB`: `64MiB`
    p.yaml:10:45: error: unknown key `cpu` in `budget`
      help: known: `steps`, `wall`, `output`
    ");
}

#[test]
fn budgets() {
    let source = r"
playbook: p
budget: { steps: many, wall: 500ms, output: 500KB }
states: { s: { run: x } }
";
    assert_snapshot!(told(source), @r"p.yaml:2:18: error: `steps` must be a whole number, not a string");
}

#[test]
fn fan_outs() {
    let source = r#"
playbook: p
states:
  a: { approve: "Go?", over: [1, 2] }
  b: { ask: "What?", sample: 2, schema: { type: object } }
  c: { run: x, over: [1], sample: 2 }
  d: { run: x, max_parallel: 3 }
  e: { run: x, over: [] }
  f: { run: x, over: "{{ inputs.x }} y" }
  g: { run: x, over: items }
  h: { run: x, over: { a: b } }
  i: { run: x, sample: 0 }
  j: { run: x, over: ["{{ item }}"] }
  k: { run: x, sample: 2, max_parallel: -1 }
"#;
    assert_snapshot!(told(source), @r#"
    p.yaml:3:24: error: `over` does not go with `approve`
      help: it belongs to states with `run`, `exec`, `call`
    p.yaml:4:22: error: `sample` does not go with `ask`
      help: it belongs to states with `run`, `exec`, `call`
    p.yaml:5:27: error: a state has `over` or `sample`, not both
      help: leave one of them out
    p.yaml:6:30: error: `max_parallel` means nothing without branches
      help: add `over: LIST` or `sample: N` to the state
    p.yaml:7:22: error: `over` is an empty list: the state would never run
    p.yaml:8:22: error: unknown input `inputs.x`
      help: declare it under `inputs:`
    p.yaml:8:22: error: `over` must give a list, not a string
      help: write a list, or exactly one template: over: "{{ inputs.targets }}"
    p.yaml:9:22: error: `over` must give a list, not a string
      help: write a list, or exactly one template: over: "{{ inputs.targets }}"
    p.yaml:10:22: error: `over` must be a list, not a mapping
      help: write a list, or exactly one template: over: "{{ inputs.targets }}"
    p.yaml:11:24: error: `sample` must be a whole number from 1 to 10000, not 0
    p.yaml:12:23: error: `item` exists only in the branches of a fan-out
      help: add `over: LIST` or `sample: N` to the state
    p.yaml:13:41: error: `max_parallel` must be a whole number from 1 to 10000, not -1
    "#);
}

#[test]
fn keys_of_other_actions() {
    let source = r#"
playbook: p
states:
  a: { call: other, parse: json, env: { A: b } }
  b: { approve: "Go?", timeout: 3s, by: nobody, schema: {} }
  c: { run: x, with: { a: b }, by: human }
  d: { ask: "What?" }
  e: { ask: "What?", schema: { type: string } }
  f: { ask: "What?", schema: { type: object, properties: { a: { type: array }, b: {}, c: { enum: [1] } }, required: [d] } }
  g: { ask: "What?", schema: { type: object, properties: { a: { type: string, minLength: -1 } } } }
  h: { ask: "What?", schema: { type: object, properties: { a: { type: string, pattern: "[" } } } }
  i: { ask: "", schema: { type: object } }
  j: { call: ../evil }
  k: { run: x, emit: messages, parse: xml, detach: maybe, output: my-out }
  l: { exec: ./test.sh --all }
  m: { exec: [] }
  n: { exec: [""] }
  o: { exec: [a, [b], null] }
  p: { run: x, env: { "A-B": x, C: , D: 1.10, E: true } }
"#;
    assert_snapshot!(told(source), @r#"
    p.yaml:3:21: error: `parse` does not go with `call`
      help: it belongs to states with `run`, `exec`
    p.yaml:3:34: error: `env` does not go with `call`
      help: it belongs to states with `run`, `exec`
    p.yaml:4:24: error: `timeout` does not go with `approve`
      help: it belongs to states with `run`, `exec`
    p.yaml:4:41: error: `by` must be `human` or `agent`, not `nobody`
      help: known: `human`, `agent`
    p.yaml:4:49: error: `schema` does not go with `approve`
      help: it belongs to states with `ask`
    p.yaml:5:16: error: `with` does not go with `run`
      help: it belongs to states with `call`
    p.yaml:5:32: error: `by` does not go with `run`
      help: it belongs to states with `approve`
    p.yaml:6:13: error: `ask` needs a schema of the answer
      help: add `schema: { type: object, properties: { NAME: { type: string } } }`
    p.yaml:7:30: error: `schema` must describe an object
      help: write `{ type: object, properties: { NAME: { type: string } } }`
    p.yaml:8:63: error: property `a` must be a string, integer, number or boolean, not `array`
      help: people answer with one value a field: give the property such a `type`, or an `enum`
    p.yaml:8:83: error: property `b` must be a string, integer, number or boolean
      help: people answer with one value a field: give the property such a `type`, or an `enum`
    p.yaml:8:118: error: required property `d` is not described
      help: did you mean `c`?
    p.yaml:9:30: error: `schema` is not a JSON Schema: -1 is less than the minimum of 0
    p.yaml:10:30: error: `schema` is not a JSON Schema: "[" is not a "regex"
    p.yaml:11:13: error: `ask` has no question
    p.yaml:12:14: error: a playbook cannot be called `../evil`
      help: use kebab-case: `deploy-one`
    p.yaml:13:22: error: `emit` must be `message`, not `messages`
      help: did you mean `message`?
    p.yaml:13:39: error: `parse` must be `text` or `json`, not `xml`
      help: known: `text`, `json`
    p.yaml:13:52: error: `detach` must be `true` or `false`, not a string
    p.yaml:13:67: error: an output cannot be called `my-out`
      help: use letters, digits and `_`, not a digit first: `test_results`
    p.yaml:14:14: error: `exec` must be a list: the program and its arguments
      help: write `exec: [./test.sh, --all]`, or use `run` for a shell command
    p.yaml:15:14: error: `exec` has no program
    p.yaml:16:15: error: `exec` has no program: its first element is empty
    p.yaml:17:18: error: an element of `exec` must be a string, not a list
    p.yaml:17:23: error: an element of `exec` must be a string, not nothing
    p.yaml:18:23: error: a variable cannot be called `A-B`
      help: use letters, digits and `_`, not a digit first: `TARGET_DIR`
    p.yaml:18:34: error: `C` must be a string, not nothing
    "#);
}

#[test]
fn text_with_a_nul() {
    let source = r#"
playbook: p
states:
  s:
    exec: ["a\0b"]
  t:
    run: |
      echo one
      echo two
    gates:
      - when: |
          exit.code == 0 &&
          output.contains("x")
        then: ok
        to: END
"#;
    assert_snapshot!(told(source), @r"p.yaml:4:12: error: an element of `exec` contains a NUL character, which no command can take");
}

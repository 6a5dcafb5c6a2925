//! Gates, the flow they make, and what conditions and templates refer to.

use insta::assert_snapshot;

use super::told;

#[test]
fn gates() {
    let source = r"
playbook: p
states:
  build:
    run: x
    gates:
      - { when: exit.code == 0, then: ok, to: tset }
      - { when: exit.code ==, then: ok }
      - { when: exit.cod == 1, then: ok }
      - { when: exti.code == 1, then: ok }
      - { when: frobnicate(exit.code), then: ok }
      - { when: otherwise }
      - { when: otherwise, then: fail, repair: 2 }
      - { then: ok }
      - { when: otherwise, then: okay }
      - { when: otherwise, repair: 0 }
      - { when: otherwise, repair: two }
      - { when: otherwise, escalate: false }
      - { when: otherwise, escalate: yes }
      - { when: otherwise, repair: 1, to: END }
      - { wen: otherwise, then: ok }
      - otherwise
  test: { run: x, gates: { when: otherwise, then: ok } }
";
    assert_snapshot!(told(source), @r"
    p.yaml:6:47: error: unknown state `tset`
      help: did you mean `test`?
    p.yaml:7:17: error: bad condition: mismatched end of text (at character 13)
      help: conditions are CEL, such as `exit.code == 0`, or `otherwise`
    p.yaml:8:17: error: unknown member `exit.cod`
      help: did you mean `code`?
    p.yaml:9:17: error: unknown variable `exti`
      help: did you mean `exit`?
    p.yaml:10:17: error: unknown function `frobnicate`, or wrong arguments for it
    p.yaml:11:9: error: the gate does not say what to do
      help: a gate has exactly one of `then: ok`, `then: fail`, `repair: N`, `escalate: true`
    p.yaml:12:9: error: the gate has more than one policy: `then` and `repair`
      help: a gate has exactly one of `then: ok`, `then: fail`, `repair: N`, `escalate: true`
    p.yaml:13:9: error: the gate has no condition
      help: add `when: CONDITION` or `when: otherwise`
    p.yaml:14:34: error: `then` must be `ok` or `fail`, not `okay`
      help: did you mean `ok`?
    p.yaml:15:36: error: `repair` must be a whole number from 1 to 1000000, not 0
    p.yaml:16:36: error: `repair` must be a whole number, not a string
    p.yaml:17:38: error: `escalate` can only be `true`
      help: a gate has exactly one of `then: ok`, `then: fail`, `repair: N`, `escalate: true`
    p.yaml:18:38: error: `escalate` must be `true` or `false`, not a string
    p.yaml:19:39: error: `repair` runs a state again; `END` is not a state
      help: leave `to` out to run this state again
    p.yaml:20:9: error: the gate has no condition
      help: add `when: CONDITION` or `when: otherwise`
    p.yaml:20:9: warning: this gate never fires: it stands after `otherwise`
      help: move `otherwise` to the end
    p.yaml:20:11: error: unknown key `wen` in a gate
      help: did you mean `when`?
    p.yaml:21:9: error: a gate must be a mapping, not a string
    p.yaml:21:9: warning: this gate never fires: it stands after `otherwise`
      help: move `otherwise` to the end
    p.yaml:22:26: error: `gates` must be a list, not a mapping
    ");
}

#[test]
fn flow() {
    let source = r"
playbook: p
states:
  a:
    run: x
    gates:
      - { when: otherwise, then: ok, to: END }
      - { when: exit.code == 1, then: fail, to: a }
  b: { run: x }
  c: { run: x, gates: [ { when: true, repair: 1 } ] }
";
    assert_snapshot!(told(source), @r"
    p.yaml:7:9: warning: this gate never fires: it stands after `otherwise`
      help: move `otherwise` to the end
    p.yaml:7:45: warning: `to` means nothing here: `then: fail` halts the run
      help: leave `to` out, or use `escalate: true`
    p.yaml:8:3: warning: state `b` is never reached
      help: no gate leads to it: add one, or remove it
    p.yaml:9:3: warning: state `c` is never reached
      help: no gate leads to it: add one, or remove it
    ");
}

#[test]
fn references() {
    let source = r#"
playbook: p
inputs: { version: { required: true }, targets: { type: array, default: [a] } }
states:
  a:
    exec: [echo, "{{ inputs.verison }}", "{{ input.version }}", "{{ item }}", "{{ ctx.results }}", "{{ output }}", "{{ inputs. }}"]
    output: result
  b:
    over: "{{ inputs.targets }}"
    exec: [echo, "{{ item }} {{ index }} {{ ctx.result }} {{ range(3) }} {{ attempt }}"]
    gates:
      - { when: "branches.all(b, b.exit.code == inputs.n)", then: ok }
      - { when: "ctx.reslt == 1 && item == 2", then: ok }
  c:
    run: x
    gates: [ { when: "branches.all(b, true) || approval.decision == 'approve' || answer.x == 1", then: ok } ]
"#;
    assert_snapshot!(told(source), @r"
    p.yaml:5:18: error: unknown input `inputs.verison`
      help: did you mean `version`?
    p.yaml:5:42: error: unknown variable `input`
      help: did you mean `inputs`?
    p.yaml:5:65: error: `item` exists only in the branches of a fan-out
      help: add `over: LIST` or `sample: N` to the state
    p.yaml:5:79: error: unknown output `ctx.results`
      help: did you mean `result`?
    p.yaml:5:100: error: `output` is not known before the state has run
      help: keep the output of an earlier state with `output: NAME` and use `ctx.NAME`
    p.yaml:5:116: error: bad template: unexpected end of variable block, expected identifier or integer
    p.yaml:11:17: error: unknown input `inputs.n`
      help: known: `version`, `targets`
    p.yaml:12:17: error: unknown output `ctx.reslt`
      help: did you mean `result`?
    p.yaml:12:17: error: `item` is not known in a condition, which judges all branches at once
      help: use `branches`, such as `branches.all(b, b.exit.code == 0)`
    p.yaml:15:22: warning: `branches` is null: the state does not fan out
      help: add `over: LIST` or `sample: N` to the state
    p.yaml:15:22: warning: `approval` is null: the state is not an `approve`
      help: put the condition on the state that pauses
    p.yaml:15:22: warning: `answer` is null: the state is not an `ask`
      help: put the condition on the state that pauses
    ");
}

#[test]
fn conditions_that_nest_too_deeply() {
    let source = r#"
playbook: p
states:
  s: { run: "x", gates: [{ when: "[1].map(a,[1].map(b,[1].map(c,[1].map(d,1))))", then: ok }] }

"#;
    assert_snapshot!(told(source), @r"
    p.yaml:3:34: error: condition nests too deeply; the limit is 64 levels and 3 comprehensions
      help: conditions are CEL, such as `exit.code == 0`, or `otherwise`
    ");
}

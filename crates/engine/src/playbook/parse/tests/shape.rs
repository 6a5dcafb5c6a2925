//! Files that are not the right kind of thing at all, and their top-level keys.

use insta::assert_snapshot;

use super::told;

#[test]
fn an_empty_file() {
    let source = "";
    assert_snapshot!(told(source), @r"
    p.yaml:1:1: error: file is empty
      help: a playbook begins with `playbook: NAME`
    ");
}

#[test]
fn only_a_comment() {
    let source = r"
# only a comment
";
    assert_snapshot!(told(source), @r"
    p.yaml:1:1: error: file is empty
      help: a playbook begins with `playbook: NAME`
    ");
}

#[test]
fn a_list() {
    let source = r"
- a
";
    assert_snapshot!(told(source), @r"p.yaml:1:1: error: a playbook must be a mapping, not a list");
}

#[test]
fn a_scalar() {
    let source = r"
just text
";
    assert_snapshot!(told(source), @r"p.yaml:1:1: error: a playbook must be a mapping, not a string");
}

#[test]
fn several_documents() {
    let source = r"
playbook: a
states: { s: { run: x } }
---
playbook: b
";
    assert_snapshot!(told(source), @r"
    p.yaml:3:1: error: file has more than one document
      help: a file holds one playbook; put the next one in a file of its own
    ");
}

#[test]
fn an_open_list() {
    let source = r"
playbook: [
";
    assert_snapshot!(told(source), @r"p.yaml:2:1: error: not YAML: while parsing a node, did not find expected node content");
}

#[test]
fn an_open_quote() {
    let source = r#"
playbook: "a
states:
"#;
    assert_snapshot!(told(source), @r"p.yaml:1:11: error: not YAML: invalid indentation in quoted scalar");
}

#[test]
fn a_tab() {
    let source = "playbook: p\n\tstates: {}";
    assert_snapshot!(told(source), @r"p.yaml:1:11: error: not YAML: while scanning a plain scalar, found a tab");
}

#[test]
fn json_is_yaml() {
    let source = "{\"playbook\": \"json\", \"states\": {\"s\": {\"run\": \"true\"}}}";
    assert_snapshot!(told(source), @r"(nothing)");
}

#[test]
fn unknown_keys() {
    let source = r"
playbok: p
descripton: x
states:
  s: { run: 'true' }
";
    assert_snapshot!(told(source), @r"
    p.yaml:1:1: error: unknown key `playbok` in a playbook
      help: did you mean `playbook`?
    p.yaml:1:1: error: the playbook has no name
      help: add `playbook: NAME`
    p.yaml:2:1: error: unknown key `descripton` in a playbook
      help: did you mean `description`?
    ");
}

#[test]
fn bad_names() {
    let source = r"
playbook: My Playbook
description: 3
entry: biuld
states:
  build: { run: 'true' }
  Test: { run: 'true' }
  END: { run: 'true' }
";
    assert_snapshot!(told(source), @r#"
    p.yaml:1:11: error: a playbook cannot be called `My Playbook`
      help: use kebab-case: `deploy-one`
    p.yaml:2:14: error: `description` must be a string, not a number
      help: put quotes around it: "3"
    p.yaml:3:8: error: `entry` is not a state: `biuld`
      help: did you mean `build`?
    p.yaml:6:3: error: a state cannot be called `Test`
      help: use lower-case letters, digits, `-` and `_`: `run-tests`
    p.yaml:7:3: error: a state cannot be called `END`
      help: `END` is where a playbook ends
    "#);
}

#[test]
fn duplicate_keys() {
    let source = r"
playbook: p
playbook: q
states:
  s: { run: a, run: b }
  s: { run: c }
";
    assert_snapshot!(told(source), @r"
    p.yaml:2:1: error: key `playbook` is here twice
      help: the first one is on line 1; keep one of them
    p.yaml:4:16: error: key `run` is here twice
      help: the first one is on line 4; keep one of them
    p.yaml:5:3: error: key `s` is here twice
      help: the first one is on line 4; keep one of them
    ");
}

#[test]
fn keys_that_are_not_strings() {
    let source = r"
playbook: p
1: x
? [a]
: y
true: z
states: { s: { run: x } }
";
    assert_snapshot!(told(source), @r"
    p.yaml:2:1: error: a key must be a string; `1` is a number
      help: put quotes around it
    p.yaml:3:3: error: a key must be a string; this is a list
      help: put quotes around it
    p.yaml:5:1: error: a key must be a string; `true` is a boolean
      help: put quotes around it
    ");
}

#[test]
fn no_states() {
    let source = r"
playbook: p
states:
";
    assert_snapshot!(told(source), @r"p.yaml:2:7: error: `states` must be a mapping, not nothing");
}

#[test]
fn an_empty_mapping_of_states() {
    let source = r"
playbook: p
states: {}
";
    assert_snapshot!(told(source), @r"p.yaml:2:9: error: `states` has no state in it");
}

#[test]
fn aliases() {
    let source = r"
playbook: p
states:
  s: &s { run: x }
  t: *s
  u: *nope
";
    assert_snapshot!(told(source), @r"p.yaml:5:6: error: not YAML: while parsing node, found unknown anchor");
}

#[test]
fn an_alias_to_itself() {
    let source = r"
playbook: p
states: &a
  s: *a
";
    assert_snapshot!(told(source), @r"p.yaml:3:6: error: alias to something that is not complete yet: it would contain itself");
}

#[test]
fn tags() {
    let source = r"
playbook: p
states:
  s: { run: !!str x, timeout: !custom 3s, env: { A: !!int x } }
  t: { <<: { run: x } }
";
    assert_snapshot!(told(source), @r"
    p.yaml:3:31: error: tag `!custom` does not fit here
      help: playbooks need no tags: leave it out
    p.yaml:3:31: error: `timeout` must be a string, not nothing
    p.yaml:3:53: error: tag `tag:yaml.org,2002:!int` does not fit here
      help: playbooks need no tags: leave it out
    p.yaml:3:53: error: `A` must be a string, not nothing
    p.yaml:4:3: error: state `t` does nothing
      help: give it one of `run`, `exec`, `call`, `approve`, `ask`
    p.yaml:4:8: error: unknown key `<<` in state `t`
    ");
}

//! Lines where no terminal is.

use insta::assert_snapshot;
use serde_json::json;

use super::{live::Out, *};
use crate::view::{Mode, View};

fn plain(records: &[Vec<u8>]) -> String {
    let out = Out::default();
    let mut view = View::new(Mode::Plain { color: false }, Box::new(out.clone()));
    records.iter().for_each(|record| view.record(record));
    drop(view);
    out.take()
}

fn piece(state: &str, text: &str, part: u64, more: bool) -> Vec<u8> {
    record(1, &json!({"type":"log","state":state,"stream":"stdout","text":text,"part":part,"more":more}))
}

#[test]
fn a_run_line_by_line() {
    let err = |b64: &str| record(20, &json!({"type":"log","state":"build","stream":"stderr","b64":b64}));
    let inner = json!({"type":"run-start","machine":"deploy-one","depth":1,"entry":"push","resumed":false});
    let branch = json!({"type":"log","state":"test","index":1,"stream":"stdout","text":"in a branch"});
    let records = [
        run_start(0, "build"),
        state_start(0, 0, 1, "build", "run"),
        log(10, "build", "compiling\tall"),
        err("/2NhZukbWzMxbQ=="),
        state_done(3200, 0, 1, "build", "repair", json!({"exit":{"code":75},"to":"build"})),
        state_start(3200, 0, 2, "build", "run"),
        state_done(4200, 0, 2, "build", "ok", json!({"exit":{"code":0},"to":"test"})),
        state_start(4200, 0, 3, "test", "run"),
        branch_start(4200, 0, "linux"),
        branch_start(4200, 1, "mac"),
        record(4300, &branch),
        branch_done(4400, 1, 0),
        branch_done(4500, 0, 2),
        state_done(4500, 0, 3, "test", "escalate", json!({"branches":2,"to":"deploy"})),
        state_start(4500, 0, 4, "deploy", "call"),
        record(4500, &inner),
        state_start(4500, 1, 5, "push", "run"),
        state_done(65_000, 1, 5, "push", "fail", json!({"exit":{"signal":"SIGKILL"}})),
        state_done(65_000, 0, 4, "deploy", "fail", json!({})),
        finished(65_000, "halt", json!({"error":"call-failed","at":"deploy"})),
    ];
    assert_snapshot!(plain(&records), @r#"
       0.0s  release  start  run run-1
       0.0s  build  start
    build | compiling	all
    build ! \xffcaf\xe9
       3.2s  build  repair  exit 75  3.2s
       3.2s  build  start  attempt 2
       4.2s  build  ok  exit 0  1.0s
       4.2s  test  start
       4.2s  test[0]  start  linux
       4.2s  test[1]  start  mac
    test[1] | in a branch
       4.4s  test[1]  done  exit 0
       4.5s  test[0]  done  exit 2
       4.5s  test  escalate  1 of 2 branches failed  0.3s → deploy
       4.5s  deploy  start
       4.5s    deploy-one  start
       4.5s    push  start
     1m 05s    push  fail  SIGKILL  1m 00s
     1m 05s  deploy  fail  1m 00s
     1m 05s  release  halt at deploy  call-failed
    "#);
}

#[test]
fn a_question_comes_with_the_commands_that_decide_it() {
    let schema = json!({"type":"object","required":["region"],"properties":{
        "region":{"type":"string","enum":["eu","us"]},"why not":{"type":"string","description":"a\u{1b}[8m reason"}}});
    let records = [
        run_start(0, "agree"),
        state_start(0, 0, 1, "agree", "approve"),
        asked(10, "agree", "Deploy 1.2?\nReally?", None),
        asked(20, "region", "Which region?", Some(schema)),
        finished(1000, "suspended", json!({"at":"agree"})),
        record(2000, &json!({"type":"run-start","machine":"release","depth":0,"entry":"agree","resumed":true})),
    ];
    assert_snapshot!(plain(&records), @r#"
    0.0s  release  start  run run-1
    0.0s  agree  waits for a decision
          Deploy 1.2?
          Really?
          approve:    taffrail approve run-1
          reject:     taffrail approve run-1 --reject
    0.0s  region  waits for an answer
          Which region?
          answer:     taffrail approve run-1 -i region=VALUE
            region: eu | us, required
            why not: string - a reason
          reject:     taffrail approve run-1 --reject
    1.0s  release  suspended at agree
    1.0s  release  goes on at agree  run run-1
    "#);
}

#[test]
fn pieces_of_a_line_are_joined() {
    assert_eq!(
        plain(&[piece("b", "one ", 0, true), piece("b", "two", 1, false), log(2, "b", "x")]),
        "b | one two\nb | x\n"
    );
    assert_eq!(
        plain(&[piece("b", "one ", 0, true), log(1, "c", "other"), piece("b", "two", 1, true)]),
        "b | one \nc | other\nb | two\n"
    );
    assert_eq!(
        plain(&[piece("b", "one ", 0, true), state_start(0, 0, 1, "b", "run")]),
        "b | one \n   0.0s  b  start\n"
    );
}

#[test]
fn answers_are_joined() {
    let say = |text: &str, delta| record(1, &json!({"type":"message","role":"assistant","text":text,"delta":delta}));
    let records = [say("Hel", true), say("lo\n", true), say("wor", true), say("ld", true), say("next", false)];
    assert_eq!(plain(&records), "assistant: Hello\nassistant: world\nassistant: next\n");
}

#[test]
fn what_else_matters() {
    let call = |decision: &str| json!({"type":"tool-call","tool":"write","role":"plans","actor":"a","decision":decision,"ms":3,"bytes":9});
    let records = [
        record(
            0,
            &json!({"type":"clipped","state":"build","index":2,"stream":"stdout","lines":1200,"bytes":99_999,"reason":"run-cap","from_ts":at(0),"to_ts":at(1)}),
        ),
        record(0, &json!({"type":"note","text":"spool-paused: disk full","level":"warning"})),
        record(0, &json!({"type":"note","text":"nothing","level":"info"})),
        record(0, &json!({"type":"cancel-requested","actor":"me","reason":"Ctrl-C"})),
        record(
            0,
            &json!({"type":"approval-resolved","approval":"a1","decision":"reject","hash":"0","actor":"me","seen_seq":1}),
        ),
        record(0, &call("allowed")),
        record(0, &call("denied")),
        record(0, &json!({"type":"from-the-future","x":1})),
        b"{\"type\":\"gap\",\"thread\":\"t\",\"from\":3,\"to\":9,\"reason\":\"retention\",\"next\":9}".to_vec(),
        b"rubbish".to_vec(),
    ];
    assert_snapshot!(plain(&records), @r#"
    0.0s  build[2]  1,200 lines (97.6 KiB) of stdout not kept
    0.0s  note  spool-paused: disk full
    0.0s  cancel  asked for by me  Ctrl-C
    0.0s  decision  reject by me
    0.0s  write  called by plans
    0.0s  write  denied to plans
          records 3 to 9 can no longer be had
    "#);
}

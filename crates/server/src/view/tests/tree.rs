//! The tree at moments of a run, in terminals of several sizes.

use insta::assert_snapshot;
use serde_json::json;
use taffrail_mcp_core::{Event, RunId};

use super::*;
use crate::view::{
    format::{self, Seen},
    layout,
    tree::Tree,
};

pub(super) fn tree(records: &[Vec<u8>]) -> Tree {
    let mut tree = Tree::default();
    tree.run = Some(RunId::new("run-1").unwrap());
    for record in records {
        match format::read(record) {
            Seen::Record { event: Event::Log(log), .. } => tree.log(&log),
            Seen::Record { event: Event::Message(message), .. } => tree.message(&message),
            Seen::Record { ts, event, .. } => tree.feed(ts, &event),
            Seen::Gap(_) | Seen::Unreadable => {}
        }
    }
    tree
}

fn draw(records: &[Vec<u8>], width: usize, height: usize, ms: u64) -> String {
    let lines = layout::lines(&tree(records), width, height, at(ms));
    lines.iter().map(|line| line.text(Some(width), false)).collect::<Vec<_>>().join("\n")
}

fn two_states() -> Vec<Vec<u8>> {
    vec![
        run_start(0, "build"),
        state_start(0, 0, 1, "build", "run"),
        log(100, "build", "compiling"),
        state_done(3200, 0, 1, "build", "ok", json!({"exit":{"code":0},"to":"test"})),
        state_start(3200, 0, 2, "test", "run"),
        log(3300, "test", "one\t1"),
        log(3400, "test", "two \x1b[31mred\x1b[0m \x07"),
        log(3500, "test", "three three three three three three three three three three"),
        log(3600, "test", "four"),
    ]
}

#[test]
fn states_and_the_last_lines_of_output() {
    assert_snapshot!(draw(&two_states(), 60, 20, 12_300), @r#"
    ⠸ release  12.3s  5 lines  run-1
      ✓ build     3.2s
      ⠸ test      9.1s
        │ two red \x07
        │ three three three three three three three three three…
        │ four
    "#);
    assert_snapshot!(draw(&two_states(), 30, 20, 12_300), @r#"
    ⠸ release  12.3s  5 lines  ru…
      ✓ build     3.2s
      ⠸ test      9.1s
        │ two red \x07
        │ three three three three…
        │ four
    "#);
    assert_snapshot!(draw(&two_states(), 60, 4, 12_300), @r#"
    ⠸ release  12.3s  5 lines  run-1
      … 1 earlier state
      ⠸ test      9.1s
        │ four
    "#);
    assert_snapshot!(draw(&two_states(), 60, 2, 12_300), @r#"
    ⠸ release  12.3s  5 lines  run-1
      ⠸ test      9.1s
    "#);
    assert_snapshot!(draw(&two_states(), 60, 1, 12_300), @"⠸ release  12.3s  5 lines  run-1");
    assert_snapshot!(draw(&two_states(), 60, 0, 12_300), @"");
    assert_snapshot!(draw(&two_states(), 3, 20, 12_300), @r#"
    ⠸ …
      …
      …
      …
      …
      …
    "#);
    assert_snapshot!(draw(&[], 60, 20, 12_300), @"waiting for the first record");
}

#[test]
fn repairs_are_attempts() {
    let mut records = vec![run_start(0, "test"), state_start(0, 0, 1, "test", "run")];
    records.push(state_done(1000, 0, 1, "test", "repair", json!({"exit":{"code":75},"to":"test"})));
    records.push(state_start(1000, 0, 2, "test", "run"));
    records.push(state_done(2000, 0, 2, "test", "repair", json!({"exit":{"signal":"SIGSEGV"},"to":"test"})));
    records.push(state_start(2000, 0, 3, "test", "run"));
    assert_snapshot!(draw(&records, 60, 20, 2500), @r#"
    ⠴ release  2.5s  run-1
      ↻ test     1.0s  exit 75  repair
      ↻ test     1.0s  attempt 2  SIGSEGV  repair
      ⠴ test     0.5s  attempt 3
    "#);
    records.push(log(2600, "test", "error: no"));
    records.push(state_done(3000, 0, 3, "test", "fail", json!({"exit":{"timeout":true}})));
    records.push(finished(3000, "halt", json!({"error":"repair-exhausted","at":"test"})));
    assert_snapshot!(draw(&records, 60, 20, 99_000), @r#"
    ✗ release  3.0s  halt  1 line  run-1
      ↻ test     1.0s  exit 75  repair
      ↻ test     1.0s  attempt 2  SIGSEGV  repair
      ✗ test     1.0s  attempt 3  timed out  fail
        │ error: no
    "#);
}

#[test]
fn a_state_that_a_repair_of_another_leads_to_is_at_its_first_attempt() {
    let mut records = vec![run_start(0, "check"), state_start(0, 0, 1, "check", "run")];
    for round in 0..2 {
        let (ms, step) = (round * 2000, round * 2 + 1);
        records.push(state_done(ms + 1000, 0, step, "check", "repair", json!({"exit":{"code":3},"to":"clean"})));
        records.push(state_start(ms + 1000, 0, step + 1, "clean", "run"));
        records.push(state_done(ms + 2000, 0, step + 1, "clean", "ok", json!({"exit":{"code":0},"to":"check"})));
        records.push(state_start(ms + 2000, 0, step + 2, "check", "run"));
    }
    assert_snapshot!(draw(&records, 60, 20, 4500), @r#"
    ⠴ release  4.5s  run-1
      ↻ check     1.0s  exit 3  repair → clean
      ✓ clean     1.0s
      ↻ check     1.0s  exit 3  repair → clean
      ✓ clean     1.0s  attempt 2
      ⠴ check     0.5s
    "#);
}

#[test]
fn an_escalation_tells_where_to() {
    let mut records = two_states();
    records.push(state_done(4000, 0, 2, "test", "escalate", json!({"exit":{"code":9},"to":"tidy"})));
    records.push(state_start(4000, 0, 3, "tidy", "run"));
    assert_snapshot!(draw(&records, 60, 20, 4100), @r#"
    ⠙ release  4.1s  5 lines  run-1
      ✓ build     3.2s
      ✗ test      0.8s  exit 9  escalate → tidy
      ⠙ tidy      0.1s
    "#);
}

#[test]
fn calls_are_indented() {
    let inner = json!({"type":"run-start","machine":"deploy-one","depth":1,"entry":"push","resumed":false});
    let mut records = vec![run_start(0, "deploy"), state_start(0, 0, 1, "deploy", "call"), record(0, &inner)];
    records.push(state_start(0, 1, 2, "push", "run"));
    records.push(log(10, "push", "pushing"));
    assert_snapshot!(draw(&records, 60, 20, 1000), @r#"
    ⠋ release  1.0s  1 line  run-1
      ⠋ deploy (deploy-one)     1.0s
        ⠋ push                  1.0s
          │ pushing
    "#);
    records.push(state_done(2000, 1, 2, "push", "fail", json!({"exit":{"code":1}})));
    records.push(state_done(2000, 0, 1, "deploy", "fail", json!({})));
    records.push(finished(2000, "halt", json!({"error":"call-failed"})));
    assert_snapshot!(draw(&records, 60, 20, 3000), @r#"
    ✗ release  2.0s  halt  1 line  run-1
      ✗ deploy (deploy-one)     2.0s  fail
        ✗ push                  2.0s  exit 1  fail
          │ pushing
    "#);
}

#[test]
fn a_few_branches_are_children() {
    let mut records = vec![run_start(0, "test"), state_start(0, 0, 1, "test", "run")];
    records.extend([branch_start(0, 0, "linux"), branch_start(0, 1, "mac"), branch_start(0, 2, "win\ndows")]);
    let line = json!({"type":"log","state":"test","index":2,"stream":"stderr","text":"oh"});
    records.extend([branch_done(1500, 0, 0), branch_done(1700, 1, 4), record(1800, &line)]);
    let progress = json!({"type":"progress","state":"test","index":2,"progress":3,"total":10,"message":"linking"});
    records.push(record(1900, &progress));
    assert_snapshot!(draw(&records, 60, 20, 2000), @r#"
    ⠋ release  2.0s  1 line  run-1
      ⠋ test     2.0s  2 done (1 failed), 1 running
        ✓ [0] linux  1.5s
        ✗ [1] mac  1.7s  exit 4
        ⠋ [2] win\x0adows  2.0s  3/10 linking
        ! [2] oh
    "#);
    assert_snapshot!(draw(&records, 60, 4, 2000), @r#"
    ⠋ release  2.0s  1 line  run-1
      ⠋ test     2.0s  2 done (1 failed), 1 running
        ⠋ [2] win\x0adows  2.0s  3/10 linking
        ! [2] oh
    "#);
    records.push(branch_done(2100, 2, 0));
    records.push(state_done(2100, 0, 1, "test", "fail", json!({"branches":3})));
    assert_snapshot!(draw(&records, 60, 20, 2000), @r#"
    ⠋ release  2.0s  1 line  run-1
      ✗ test     2.1s  1 of 3 branches failed  fail
    "#);
    records.push(finished(2100, "halt", json!({"error":"gate-failed"})));
    assert_snapshot!(draw(&records, 60, 20, 2000), @r#"
    ✗ release  2.1s  halt  1 line  run-1
      ✗ test     2.1s  1 of 3 branches failed  fail
        ✗ [1] mac  1.7s  exit 4
        ! [2] oh
    "#);
}

#[test]
fn many_branches_are_counted() {
    let mut records = vec![run_start(0, "test"), state_start(0, 0, 1, "test", "run")];
    records.extend((0..30).map(|i| branch_start(0, i, &format!("item {i}"))));
    records.extend((0..12).map(|i| branch_done(500, i, i32::from(i % 6 == 5))));
    assert_snapshot!(draw(&records, 60, 20, 2000), @r#"
    ⠋ release  2.0s  run-1
      ⠋ test     2.0s  12 done (2 failed), 18 running
        ⠋ [12] item 12  2.0s
        ⠋ [13] item 13  2.0s
        ⠋ [14] item 14  2.0s
        ⠋ [15] item 15  2.0s
        ⠋ [16] item 16  2.0s
        ⠋ [17] item 17  2.0s
        ⠋ [18] item 18  2.0s
        ⠋ [19] item 19  2.0s
        … 10 more running
    "#);
    records.extend((12..30).map(|i| branch_done(900, i, 0)));
    records.push(state_done(1000, 0, 1, "test", "ok", json!({"branches":30,"to":"END"})));
    assert_snapshot!(draw(&records, 60, 20, 2000), @r#"
    ⠋ release  2.0s  run-1
      ✓ test     1.0s  2 of 30 branches failed
    "#);
}

#[test]
fn old_states_are_counted() {
    let mut records = vec![run_start(0, "s0")];
    for i in 0..20 {
        records.push(state_start(i * 100, 0, i + 1, &format!("s{i}"), "run"));
        records.push(state_done(i * 100 + 50, 0, i + 1, &format!("s{i}"), "ok", json!({"exit":{"code":0}})));
    }
    records.push(state_start(2000, 0, 21, "last", "run"));
    records.push(log(2000, "last", "x"));
    assert_snapshot!(draw(&records, 60, 7, 2100), @r#"
    ⠙ release  2.1s  1 line  run-1
      … 17 earlier states
      ✓ s17      0.0s
      ✓ s18      0.0s
      ✓ s19      0.0s
      ⠙ last     0.1s
        │ x
    "#);
    for i in 0..1500 {
        records.push(state_start(3000, 0, i + 30, "again", "run"));
    }
    assert_snapshot!(draw(&records, 60, 4, 3100), @r#"
    ⠙ release  3.1s  1 line  run-1
      … 1519 earlier states
      ✗ again     0.0s  interrupted
      ⠙ again     0.1s
    "#);
    assert_eq!(tree(&records).nodes.len(), 1000);
}

#[test]
fn a_run_waits_and_goes_on() {
    let mut records = vec![run_start(0, "agree"), state_start(0, 0, 1, "agree", "approve")];
    records.push(asked(10, "agree", "Deploy 1.2?\nIt is \x1b[8mhidden\x1b[0m.", None));
    assert_snapshot!(draw(&records, 60, 20, 500), @r#"
    ⠴ release  0.5s  run-1
      ? agree  waiting
        Deploy 1.2?
        It is hidden.
        decide: taffrail approve run-1
    "#);
    records.push(finished(1000, "suspended", json!({"at":"agree"})));
    assert_snapshot!(draw(&records, 60, 20, 90_000), @r#"
    ? release  1.0s  suspended  run-1
      ? agree  waiting
    "#);
    let resolved =
        json!({"type":"approval-resolved","approval":"a1","decision":"approve","hash":"00","actor":"me","seen_seq":4});
    records.push(record(60_000, &resolved));
    records.push(record(
        61_000,
        &json!({"type":"run-start","machine":"release","depth":0,"entry":"agree","resumed":true}),
    ));
    records.push(state_done(61_000, 0, 1, "agree", "ok", json!({"to":"deploy"})));
    records.push(state_start(61_000, 0, 2, "deploy", "run"));
    assert_snapshot!(draw(&records, 60, 20, 62_000), @r#"
    ⠋ release  2.0s  run-1
      ✓ agree    1m 01s
      ⠋ deploy     1.0s
    "#);
}

#[test]
fn an_interrupted_state_is_not_taken_for_running() {
    let mut records = two_states();
    records.push(finished(5000, "interrupted", json!({"error":"process-gone","at":"test"})));
    assert_snapshot!(draw(&records, 60, 20, 90_000), @r#"
    ✗ release  5.0s  interrupted  5 lines  run-1
      ✓ build     3.2s
      ✗ test      1.8s  interrupted
    "#);
    records
        .push(record(60_000, &json!({"type":"run-start","machine":"release","depth":0,"entry":"test","resumed":true})));
    records.push(state_start(60_000, 0, 3, "test", "run"));
    assert_snapshot!(draw(&records, 60, 20, 61_000), @r#"
    ⠋ release  6.0s  5 lines  run-1
      ✓ build     3.2s
      ✗ test      1.8s  interrupted
      ⠋ test      1.0s
    "#);
}

#[test]
fn a_view_may_begin_in_the_middle() {
    let records = vec![
        log(0, "build", "nobody knows this state"),
        branch_done(0, 3, 1),
        state_done(10, 0, 7, "agree", "ok", json!({})),
        state_start(20, 0, 8, "deploy", "run"),
    ];
    assert_snapshot!(draw(&records, 60, 20, 100), @r#"
    ⠙ release  0.0s  1 line  run-1
      ✓ agree 
      ⠙ deploy     0.0s
    "#);
}

#[test]
fn answers_and_pieces_are_joined() {
    let mut records = vec![run_start(0, "talk"), state_start(0, 0, 1, "talk", "run")];
    let say = |text: &str| record(1, &json!({"type":"message","role":"assistant","text":text,"delta":true}));
    records.extend([say("Hel"), say("lo\nwor"), say("ld")]);
    let piece = |text: &str, part: u64, more: bool| {
        record(2, &json!({"type":"log","state":"talk","stream":"stdout","text":text,"part":part,"more":more}))
    };
    records.extend([piece("left ", 0, true), piece("right", 1, false)]);
    records.push(record(3, &json!({"type":"progress","state":"talk","progress":0.5,"total":1.25})));
    records.push(record(3, &json!({"type":"cancel-requested","actor":"me"})));
    let clipped = json!({"type":"clipped","stream":"stdout","lines":3,"bytes":30,"reason":"run-cap","from_ts":at(0),"to_ts":at(1)});
    records.push(record(3, &clipped));
    assert_snapshot!(draw(&records, 70, 20, 100), @r#"
    ⠙ release  0.1s  cancelling  1 line  3 lines clipped  run-1
      ⠙ talk     0.1s  40%
        assistant: Hello
        assistant: world
        │ left right
    "#);
}

#[test]
fn wide_characters_are_counted_as_they_are_shown() {
    let records = vec![run_start(0, "構築"), state_start(0, 0, 1, "構築", "run"), log(0, "構築", "日本語の出力です")];
    assert_snapshot!(draw(&records, 16, 20, 100), @r#"
    ⠙ release  0.1s…
      ⠙ 構築     0.…
        │ 日本語の…
    "#);
}

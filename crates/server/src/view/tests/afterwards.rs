//! Summaries, tables and lines of logs.

use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::view::{self, summary};

fn ended(more: Value) -> String {
    summary::lines(&snapshot(more)).iter().map(|line| line.text(None, false) + "\n").collect()
}

fn written(write: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn how_runs_end() {
    assert_snapshot!(ended(json!({"spool":"/data/spool/run-1.jsonl"})), @r#"
    ✓ release done in 12.3s  1,200 lines
      run:        run-1
      log:        /data/spool/run-1.jsonl
    "#);
    let halt = json!({"status":"halt","error":"gate-failed","at":"build","detail":"exit code 3\nand \u{1b}[31mmore",
        "usage":{"log_lines":1,"clipped_lines":12,"clipped_bytes":5000}});
    assert_snapshot!(ended(halt), @r#"
    ✗ release halt at build after 12.3s  1 line
      error:      gate-failed: exit code 3
                  and more
      12 lines (4.8 KiB) of output not kept
      run:        run-1
    "#);
    assert_snapshot!(ended(json!({"status":"cancelled","error":"cancelled","at":"build"})), @r#"
    ✗ release cancelled at build after 12.3s  1,200 lines
      run:        run-1
    "#);
    assert_snapshot!(ended(json!({"status":"interrupted","error":"process-gone","checkpoint":"run-1:a"})), @r#"
    ✗ release interrupted at deploy after 12.3s  1,200 lines
      error:      process-gone
      go on:      taffrail resume run-1
      run:        run-1
    "#);
    // One that lives elsewhere is not gone on with here.
    assert_snapshot!(ended(json!({"status":"interrupted","error":"producer-gone"})), @r#"
    ✗ release interrupted at deploy after 12.3s  1,200 lines
      error:      producer-gone
      run:        run-1
    "#);
    assert_snapshot!(ended(json!({"status":"running"})), @r#"
    ● release running at deploy after 12.3s  1,200 lines
      follow:     taffrail logs run-1 -f
      run:        run-1
    "#);
}

#[test]
fn what_a_suspended_run_waits_for() {
    let approval = json!({"approval":"a1","state":"agree","message":"Deploy 1.2?","hash":"00","by":"agent"});
    assert_snapshot!(ended(json!({"status":"suspended","at":"agree","approval":approval})), @r#"
    ? release suspended at agree after 12.3s  1,200 lines
      Deploy 1.2?
      approve:    taffrail approve run-1
      reject:     taffrail approve run-1 --reject
      An agent may decide this too.
      run:        run-1
    "#);
    let schema = json!({"properties":{"region":{"enum":["eu",1]},"it's":{"type":["string","null"]}}});
    let approval = json!({"approval":"a1","state":"ask","message":"Where?","hash":"00","by":"human","schema":schema});
    assert_snapshot!(ended(json!({"status":"suspended","at":"ask","approval":approval})), @r#"
    ? release suspended at ask after 12.3s  1,200 lines
      Where?
      answer:     taffrail approve run-1 -i 'it'\''s'=VALUE -i region=VALUE
        it's: ["string","null"]
        region: eu | 1
      reject:     taffrail approve run-1 --reject
      run:        run-1
    "#);
    let approval =
        json!({"approval":"a1","state":"ask","message":"Where?","hash":"00","by":"human","decision":"approve"});
    assert_snapshot!(ended(json!({"status":"suspended","at":"ask","approval":approval})), @r#"
    ? release suspended at ask after 12.3s  1,200 lines
      Where?
      approved:   go on with taffrail resume run-1
      run:        run-1
    "#);
}

#[test]
fn the_status_of_a_run() {
    let run =
        snapshot(json!({"status":"halt","thread":"nightly","error":"timeout","detail":"it ran into its time limit",
        "at":"build","checkpoint":"c-1","spool":"/data/spool/run-1.jsonl"}));
    assert_snapshot!(written(|out| view::status_text(&run, at(90_000), false, out)), @r#"
    ✗ release halt
      run:        run-1
      thread:     nightly
      started:    2026-11-30T12:00:00.000000Z (1m ago)
      elapsed:    12.3s
      state:      build (step 4)
      error:      timeout: it ran into its time limit
      output:     1,200 lines, 53.0 KiB
      checkpoint: c-1
      log:        /data/spool/run-1.jsonl
    "#);
}

#[test]
fn a_table_of_runs() {
    let long = "a-very-long-state-name-that-does-not-fit-into-a-table-cell";
    let runs = [
        snapshot(json!({"status":"running","state":"構築"})),
        snapshot(
            json!({"run":"run-2-with-longer-id","playbook":"日本\u{1b}[2J","status":"halt","error":"gate-failed","at":"build"}),
        ),
        snapshot(json!({"status":"suspended","state":long})),
    ];
    assert_snapshot!(written(|out| view::runs_table(&runs, at(200_000), false, out)), @r#"
    RUN                   PLAYBOOK  STATUS     STATE                                     STARTED  ELAPSED
    run-1                 release   running    構築                                      3m ago   12.3s
    run-2-with-longer-id  日本      halt       build: gate-failed                        3m ago   12.3s
    run-1                 release   suspended  a-very-long-state-name-that-does-not-fi…  3m ago   12.3s
    "#);
    assert_eq!(written(|out| view::runs_table(&[], at(0), false, out)), "no runs\n");
    assert!(written(|out| view::runs_table(&runs, at(0), true, out)).contains("\x1b[31mhalt\x1b[0m"));
}

#[test]
fn records_as_lines() {
    let piece = json!({"type":"log","state":"b","stream":"stdout","text":"a piece, ","part":0,"more":true});
    let records = [
        run_start(0, "build"),
        state_start(0, 0, 1, "build", "run"),
        log(0, "build", "a\tline\x1b[2J"),
        record(0, &piece),
        log(0, "build", "the rest"),
        state_done(0, 0, 1, "build", "ok", json!({"exit":{"code":0},"to":"test"})),
        branch_start(0, 1, "mac\n"),
        branch_done(0, 1, 3),
        asked(0, "agree", "Deploy?\nReally?", None),
        record(0, &json!({"type":"message","role":"assistant","text":"one\ntwo\n","delta":true})),
        record(0, &json!({"type":"checkpoint","checkpoint":"c1","state":"build","step":1})),
        record(0, &json!({"type":"progress","state":"build","progress":3,"total":10})),
        record(0, &json!({"type":"from-the-future","x":{"a":[1]},"y":"\u{1b}"})),
        finished(0, "halt", json!({"error":"gate-failed","at":"build","detail":"exit code 3"})),
        b"{\"type\":\"gap\",\"thread\":\"t\",\"from\":3,\"to\":9,\"reason\":\"retention\",\"next\":9}".to_vec(),
        b"\x1b[2Jrubbish".to_vec(),
    ];
    let all: String = records.iter().map(|record| written(|out| view::log_line(record, false, out))).collect();
    assert_snapshot!(all, @r#"
    -- run-start release at build
    -- state-start build step 1
    a	line
    a piece, the rest
    -- state-done build ok exit 0 → test
    -- branch-start test[1] "mac\n"
    -- branch-done test[1] exit 3
    -- approval-requested agree Deploy?
    -- assistant: one ⏎ two
    -- checkpoint c1 at build
    -- progress build 3/10
    -- from-the-future x={"a":[1]} y="\u001b"
    -- run-finished release halt at build gate-failed (exit code 3)
    -- gap: records 3 to 9 can no longer be had
    -- unreadable record
    "#);
    let err = record(0, &json!({"type":"log","state":"b","stream":"stderr","text":"bad"}));
    assert_eq!(written(|out| view::log_line(&err, true, out)), "\x1b[31mbad\x1b[0m\n");
}

//! Progress of waiting calls, pair by pair on the raw wire.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;

/// The notifications among `messages`, checked: of this token, finite, each greater than the one before, one short line.
#[track_caller]
fn numbers(messages: &[Value], token: &str) -> Vec<(f64, Option<f64>, String)> {
    let progress = messages.iter().filter(|message| message["method"] == "notifications/progress");
    let read = |message: &Value| {
        let params = &message["params"];
        assert_eq!(params["progressToken"], token, "{message}");
        let text = params["message"].as_str().unwrap_or_default().to_owned();
        assert!(text.chars().count() <= 200 && !text.contains('\n'), "{text}");
        (params["progress"].as_f64().unwrap(), params["total"].as_f64(), text)
    };
    let seen: Vec<_> = progress.map(read).collect();
    assert!(seen.iter().all(|(value, ..)| value.is_finite()));
    assert!(seen.is_sorted_by(|one, next| one.0 < next.0), "{seen:?}");
    assert!(seen.iter().all(|(value, total, _)| total.is_none_or(|total| *value <= total)), "{seen:?}");
    seen
}

fn both() -> [Client; 2] {
    [Client::legacy(), Client::modern()]
}

#[test]
fn no_progress_unless_asked_for() {
    for mut client in both() {
        client.call("run", json!({"playbook": "quick"}));
        client.assert_silent();
    }
}

#[test]
fn a_run_that_is_done_is_complete_before_the_response_and_silent_after_it() {
    for mut client in both() {
        client.ask_for_progress("t1");
        let id = client.send_call("run", json!({"playbook": "slow", "wait_s": 60}));
        client.fake.until_started(1);
        for (at, state) in ["build", "test", "agree", "deploy"].into_iter().enumerate() {
            client.fake.enter("run-1", state);
            client.fake.log("run-1", &format!("line of\t{state}"));
            // One notification says so much, or the next.
            std::thread::sleep(Duration::from_millis(300));
            assert!(at < 4);
            client.fake.leave("run-1", state);
        }
        client.fake.finish("run-1", "done");
        let (before, answer) = client.read_until(id);
        let seen = numbers(&before, "t1");
        assert_eq!(before.len(), seen.len(), "only progress was asked for");
        assert_eq!(answer["result"]["structuredContent"]["status"], "done");
        assert_eq!(seen.last().unwrap(), &(4.0, Some(4.0), "done after 1 steps".to_owned()));
        assert!(seen.len() >= 3, "{seen:?}");
        let (_, rest) = seen.split_last().unwrap();
        assert!(seen.iter().any(|(.., text)| text.contains("line of ")), "{seen:?}");
        assert!(rest.iter().rev().take(rest.len()).all(|(value, ..)| *value < 4.0), "{seen:?}");
        client.assert_silent();
    }
}

#[test]
fn a_run_that_fails_or_waits_is_never_complete() {
    for (status, words) in [("halt", "halted"), ("suspended", "waits"), ("cancelled", "cancelled")] {
        let mut client = Client::modern();
        client.ask_for_progress("t");
        let id = client.send_call("run", json!({"playbook": "slow", "wait_s": 60}));
        client.fake.until_started(1);
        for state in ["build", "test", "agree", "deploy"] {
            client.fake.enter("run-1", state);
            client.fake.leave("run-1", state);
        }
        client.fake.finish("run-1", status);
        let (before, _) = client.read_until(id);
        let seen = numbers(&before, "t");
        let (last, total, text) = seen.last().unwrap();
        assert!(*last < 4.0 && *last > 3.9 && *total == Some(4.0), "{seen:?}");
        assert!(text.starts_with(words), "{text}");
    }
}

#[test]
fn who_comes_later_sees_how_far_it_is() {
    let mut client = Client::modern();
    client.call("run", json!({"playbook": "slow", "wait_s": 0}));
    for state in ["build", "test"] {
        client.fake.enter("run-1", state);
        client.fake.leave("run-1", state);
    }
    client.fake.enter("run-1", "agree");
    let head = client.call("run_status", json!({"run": "run-1"}))["structuredContent"]["head"].clone();
    client.ask_for_progress("later");
    let id = client.send_call("run_status", json!({"run": "run-1", "after": head, "wait_s": 60}));
    client.fake.until_followed(1);
    client.fake.enter("run-1", "deploy");
    let (before, _) = client.read_until(id);
    let seen = numbers(&before, "later");
    assert!(seen.iter().all(|(value, ..)| *value > 1.9 && *value < 4.0), "{seen:?}");
}

#[test]
fn going_back_to_a_state_never_goes_back_on_the_wire() {
    let mut client = Client::modern();
    client.ask_for_progress("t");
    let id = client.send_call("run", json!({"playbook": "slow", "wait_s": 60}));
    client.fake.until_started(1);
    for _ in 0..20 {
        for state in ["build", "test", "nested"] {
            client.fake.enter("run-1", state);
            for branch in 0..8 {
                client.fake.push("run-1", "branch-start", &format!(r#""depth":0,"state":"{state}","index":{branch}"#));
                client.fake.push(
                    "run-1",
                    "log",
                    &format!(r#""state":"{state}","index":{branch},"stream":"stdout","text":"x""#),
                );
                client.fake.push("run-1", "branch-done", &format!(r#""depth":0,"state":"{state}","index":{branch}"#));
            }
            client.fake.leave("run-1", state);
        }
        std::thread::sleep(Duration::from_millis(60));
    }
    client.fake.finish("run-1", "done");
    let (before, _) = client.read_until(id);
    let seen = numbers(&before, "t");
    assert_eq!(seen.last().unwrap().0, 4.0);
    assert!(seen.len() >= 2);
}

/// And there is always room for a beat.
#[test]
fn a_state_that_is_repaired_is_not_done() {
    let mut client = Client::modern();
    client.ask_for_progress("t");
    let id = client.send_call("run", json!({"playbook": "slow", "wait_s": 60}));
    client.fake.until_started(1);
    for _ in 0..200 {
        client.fake.enter("run-1", "build");
        client.fake.log("run-1", "another try");
        client.fake.push("run-1", "state-done", r#""depth":0,"state":"build","step":1,"policy":"repair","to":"build""#);
    }
    // Twice, while nothing happens.
    let seen: Vec<_> = (0..4).map(|_| client.read()).collect();
    let seen = numbers(&seen, "t");
    assert!(seen.iter().all(|(value, ..)| *value < 1.0), "{seen:?}");
    for _ in 0..200 {
        client.fake.leave("run-1", "build");
        client.fake.enter("run-1", "build");
    }
    let more: Vec<_> = (0..3).map(|_| client.read()).collect();
    let more = numbers(&more, "t");
    assert!(more.iter().all(|(value, ..)| (0.99..1.0).contains(value)), "{more:?}");
    client.fake.finish("run-1", "done");
    let (before, _) = client.read_until(id);
    assert_eq!(numbers(&before, "t").last().unwrap().0, 4.0);
}

#[test]
fn at_most_two_a_second_of_a_flood() {
    let mut client = Client::legacy();
    client.ask_for_progress("t");
    let begun = Instant::now();
    let id = client.send_call("run", json!({"playbook": "slow", "wait_s": 60}));
    client.fake.until_started(1);
    client.fake.enter("run-1", "build");
    let fake = client.fake.clone();
    let flood = std::thread::spawn(move || {
        let mut lines = 0;
        while begun.elapsed() < Duration::from_millis(1600) {
            fake.log("run-1", "another line");
            lines += 1;
        }
        fake.finish("run-1", "done");
        lines
    });
    let (before, _) = client.read_until(id);
    let took = begun.elapsed().as_secs_f64();
    let seen = numbers(&before, "t");
    assert!(flood.join().unwrap() > 1000);
    // The first at once, the last one whenever the end is.
    assert!((seen.len() as f64) <= took * 2.0 + 2.0, "{} in {took:.1} s", seen.len());
    assert_eq!(seen.last().unwrap().0, 4.0);
}

#[test]
fn every_waiting_call_beats_while_nothing_moves() {
    for mut client in both() {
        client.call("run", json!({"playbook": "slow", "wait_s": 0}));
        client.ask_for_progress("t");
        for (tool, arguments) in [
            ("run_status", json!({"run": "run-1", "wait_s": 3.2})),
            ("run_logs", json!({"run": "run-1", "cursor": 1, "wait_s": 3.2})),
        ] {
            let id = client.send_call(tool, arguments);
            let (before, answer) = client.read_until(id);
            let beats = numbers(&before, "t");
            assert!((2..=4).contains(&beats.len()), "{tool}: {beats:?}");
            // Nothing was done, and nothing else is pretended.
            assert!(beats.iter().all(|(value, ..)| *value < 0.1), "{beats:?}");
            assert!(answer["result"].is_object(), "{answer}");
        }
    }
}

#[test]
fn a_cancelled_call_reports_no_more() {
    let mut client = Client::legacy();
    client.ask_for_progress("t");
    let id = client.send_call("run", json!({"playbook": "slow", "wait_s": 300}));
    client.fake.until_started(1);
    client.fake.enter("run-1", "build");
    assert_eq!(client.read()["method"], "notifications/progress");
    client.write(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string(),
    );
    client.assert_silent();
    client.fake.log("run-1", "nobody waits for this");
    client.assert_silent();
    assert_eq!(client.fake.status("run-1"), "running");
}

#[test]
fn events_and_progress_come_together_each_in_order() {
    let mut client = Client::modern();
    client.ask_for_progress("t");
    client.ask_for_events("debug");
    let id = client.send_call("run", json!({"playbook": "slow", "wait_s": 60}));
    client.fake.until_started(1);
    client.fake.enter("run-1", "build");
    for line in 0..2000 {
        client.fake.log("run-1", &format!("line {line}"));
    }
    client.fake.leave("run-1", "build");
    client.fake.finish("run-1", "done");
    let (before, _) = client.read_until(id);
    numbers(&before, "t");
    let events = before.iter().filter(|message| message["method"] == "notifications/message");
    let seqs: Vec<_> = events.map(|event| event["params"]["data"]["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=2004).collect::<Vec<_>>());
    client.assert_silent();
}

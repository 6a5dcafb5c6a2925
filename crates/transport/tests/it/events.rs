//! Log notifications: only when asked for, in order, before the response, with their seq.

use std::time::Instant;

use serde_json::{Value, json};

use crate::client::Client;

fn seqs(events: &[Value]) -> Vec<u64> {
    let seq = |event: &Value| {
        assert_eq!(event["method"], "notifications/message");
        assert_eq!(event["params"]["_meta"]["io.taffrail/seq"], event["params"]["data"]["seq"]);
        event["params"]["data"]["seq"].as_u64().unwrap()
    };
    events.iter().map(seq).collect()
}

#[test]
fn no_events_unless_asked_for() {
    for mut client in [Client::legacy(), Client::modern()] {
        client.call("run", json!({"playbook": "quick"}));
        client.assert_silent();
    }
}

#[test]
fn a_waiting_call_gets_its_events_before_its_response() {
    for mut client in [Client::legacy(), Client::modern()] {
        client.ask_for_events("debug");
        let id = client.send_call("run", json!({"playbook": "quick"}));
        let first = client.line();
        insta::allow_duplicates! {
            insta::assert_snapshot!(first, @r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"_meta":{"io.taffrail/seq":1},"level":"info","logger":"taffrail.event","data":{"seq":1,"thread":"run-1","run":"run-1","ts":"2026-11-30T12:00:00.000000Z","type":"run-start","machine":"m","depth":0,"entry":"build","resumed":false}}}"#);
        }
        let (events, answer) = client.read_until(id);
        assert_eq!(seqs(&events), [2, 3, 4, 5, 6]);
        assert_eq!(answer["result"]["structuredContent"]["status"], "done");
        client.assert_silent();
    }
}

#[test]
fn events_below_the_level_are_left_out() {
    for mut client in [Client::legacy(), Client::modern()] {
        client.ask_for_events("warning");
        let id = client.send_call("run", json!({"playbook": "slow"}));
        client.fake.until_started(1);
        client.fake.log("run-1", "debug");
        client.fake.push("run-1", "clipped", r#""lines":1,"bytes":9"#);
        client.fake.push("run-1", "progress", r#""progress":1"#);
        client.fake.push("run-1", "note", r#""text":"x","level":"info""#);
        client.fake.finish("run-1", "halt");
        let (events, _) = client.read_until(id);
        let levels: Vec<_> = events.iter().map(|event| event["params"]["level"].as_str().unwrap()).collect();
        assert_eq!(seqs(&events), [3, 5, 6]);
        assert_eq!(levels, ["warning", "warning", "error"]);
    }
}

#[test]
fn a_call_that_does_not_wait_gets_none_and_a_later_wait_goes_on() {
    let mut client = Client::modern();
    client.ask_for_events("debug");
    client.call("run", json!({"playbook": "slow", "wait_s": 0}));
    client.fake.log("run-1", "a");
    let id = client.send_call("run_status", json!({"run": "run-1", "after": 1, "wait_s": 20}));
    client.fake.enter("run-1", "test");
    let (events, _) = client.read_until(id);
    assert_eq!(seqs(&events), [2, 3]);
    // Without a cursor only what is new.
    let id = client.send_call("run_status", json!({"run": "run-1", "wait_s": 20}));
    client.fake.until_followed(2);
    client.fake.finish("run-1", "done");
    let (events, _) = client.read_until(id);
    assert_eq!(seqs(&events), [4]);
}

#[test]
fn a_cancelled_call_sends_no_more_events() {
    let mut client = Client::legacy();
    client.ask_for_events("debug");
    let id = client.send_call("run", json!({"playbook": "slow", "wait_s": 300}));
    assert_eq!(client.read()["params"]["data"]["type"], "run-start");
    client.write(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string(),
    );
    client.assert_silent();
    client.fake.log("run-1", "nobody waits for this");
    client.assert_silent();
}

/// The promise is 5,000 a second; unoptimised this is still many times that, so one good round of two is
/// proof enough on a busy machine.
#[test]
fn a_flood_arrives_whole_in_order_and_fast() {
    const COUNT: u64 = 20_000;
    let mut best = 0.0_f64;
    for mut client in [Client::legacy(), Client::modern()] {
        client.ask_for_events("debug");
        let id = client.send_call("run", json!({"playbook": "slow", "wait_s": 60}));
        client.fake.until_started(1);
        let start = Instant::now();
        let fake = client.fake.clone();
        let producer = std::thread::spawn(move || {
            for at in 0..COUNT {
                fake.log("run-1", &format!("line {at}"));
            }
            fake.finish("run-1", "done");
        });
        let (events, _) = client.read_until(id);
        let rate = COUNT as f64 / start.elapsed().as_secs_f64();
        producer.join().unwrap();
        assert_eq!(seqs(&events), (1..=COUNT + 2).collect::<Vec<_>>());
        best = best.max(rate);
    }
    println!("{best:.0} events/s");
    assert!(best > 5_000.0, "{best:.0} events/s");
}

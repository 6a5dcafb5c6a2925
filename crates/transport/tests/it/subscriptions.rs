//! News of runs: `subscriptions/listen`, and `resources/subscribe` of the revisions before it.

use std::{
    io::{BufRead as _, BufReader, Write as _, pipe},
    time::Duration,
};

use serde_json::{Value, json};
use taffrail_transport::stdio::StdioTransport;

use crate::{
    client::{Client, serve_in_thread},
    fake::Fake,
};

const ID: &str = "io.modelcontextprotocol/subscriptionId";

fn uri(run: &str) -> String {
    format!("taffrail://runs/{run}")
}

/// Starts runs that do what the test tells them: `run-1` first.
fn start(client: &mut Client, count: usize) {
    for _ in 0..count {
        client.call("run", json!({"playbook": "slow", "wait_s": 0}));
    }
}

fn send_listen(client: &mut Client, uris: &[&str]) -> u64 {
    client.send("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}}))
}

/// Reads the acknowledgment and gives what was accepted.
#[track_caller]
fn acknowledged(client: &mut Client, id: u64) -> Value {
    let message = client.read();
    assert_eq!(message["method"], "notifications/subscriptions/acknowledged", "{message}");
    assert_eq!(message["params"]["_meta"][ID], id, "{message}");
    message["params"]["notifications"].clone()
}

/// Reads a notification for the listener `id`, or a session's, and gives the run.
#[track_caller]
fn updated(client: &mut Client, id: Option<u64>) -> String {
    let message = client.read();
    assert_eq!(message["method"], "notifications/resources/updated", "{message}");
    assert_eq!(message["params"]["_meta"].get(ID).cloned(), id.map(Value::from), "{message}");
    let uri = message["params"]["uri"].as_str().unwrap();
    uri.strip_prefix("taffrail://runs/").unwrap().to_owned()
}

fn refused(client: &mut Client, method: &str, params: Value) -> (i64, String) {
    let answer = client.request(method, params);
    (answer["error"]["code"].as_i64().expect("an error"), answer["error"]["message"].as_str().unwrap().to_owned())
}

#[test]
fn a_listener_is_told_of_every_change_to_the_end() {
    let mut client = Client::modern();
    start(&mut client, 2);
    let id = send_listen(&mut client, &[&uri("run-1")]);
    assert_eq!(acknowledged(&mut client, id), json!({"resourceSubscriptions": [uri("run-1")]}));
    // What is read from here on is followed by every change.
    assert_eq!(updated(&mut client, Some(id)), "run-1");
    for state in ["build", "test"] {
        client.fake.enter("run-1", state);
        assert_eq!(updated(&mut client, Some(id)), "run-1");
        let read = client.request("resources/read", json!({"uri": uri("run-1")}));
        assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains(state), "{read}");
    }
    // Output is no change of state, nor is what other runs do.
    client.fake.log("run-1", "hello");
    client.fake.enter("run-2", "build");
    client.assert_silent();
    client.fake.finish("run-1", "halt");
    assert_eq!(updated(&mut client, Some(id)), "run-1");
    client.fake.log("run-1", "a later remark");
    client.assert_silent();
}

#[test]
fn an_interrupted_run_may_go_on() {
    for mut client in [Client::legacy(), Client::modern()] {
        let modern = client.request("resources/subscribe", json!({"uri": uri("run-1")}))["error"]["code"] == -32601;
        start(&mut client, 1);
        let id = modern.then(|| send_listen(&mut client, &[&uri("run-1")]));
        match id {
            Some(id) => {
                acknowledged(&mut client, id);
                updated(&mut client, Some(id));
            }
            None => {
                assert_eq!(client.request("resources/subscribe", json!({"uri": uri("run-1")}))["result"], json!({}))
            }
        }
        client.fake.finish("run-1", "interrupted");
        assert_eq!(updated(&mut client, id), "run-1");
        client.assert_silent();
        let call = client.send_call("resume", json!({"run": "run-1", "wait_s": 0}));
        let (mut news, _) = client.read_until(call);
        if news.is_empty() {
            news.push(client.read());
        }
        assert_eq!(news[0]["params"]["uri"], uri("run-1"));
    }
}

#[test]
fn many_runs_are_listened_to_at_once_and_a_stuck_one_holds_up_none() {
    let mut client = Client::modern();
    start(&mut client, 20);
    let runs: Vec<_> = (1..=20).map(|n| format!("run-{n}")).chain(["stuck".to_owned()]).collect();
    let uris: Vec<_> = runs.iter().map(|run| uri(run)).collect();
    let id = send_listen(&mut client, &uris.iter().map(String::as_str).collect::<Vec<_>>());
    acknowledged(&mut client, id);
    let mut told: Vec<_> = (1..=20).map(|_| updated(&mut client, Some(id))).collect();
    told.sort();
    let mut expected = runs[..20].to_vec();
    expected.sort();
    assert_eq!(told, expected);
    for run in &runs[..20] {
        client.fake.finish(run, "done");
        assert_eq!(updated(&mut client, Some(id)), *run);
    }
    client.assert_silent();
}

#[test]
fn listeners_have_lives_of_their_own() {
    let mut client = Client::modern();
    start(&mut client, 1);
    let ids: Vec<_> = (0..2).map(|_| send_listen(&mut client, &[&uri("run-1")])).collect();
    for _ in 0..4 {
        client.read();
    }
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ids[0]}});
    client.write(&cancel.to_string());
    client.assert_silent();
    client.fake.enter("run-1", "build");
    assert_eq!(updated(&mut client, Some(ids[1])), "run-1");
    client.assert_silent();
    // The end of the connection ends the other with its result, at once.
    let (took, said) = client.hang_up();
    assert!(took < Duration::from_secs(1), "{took:?}");
    let [last] = said.as_slice() else { panic!("{said:?}") };
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(ids[1]), &json!("complete")), "{last}");
}

#[test]
fn what_cannot_be_listened_to_is_left_out_or_refused() {
    let mut client = Client::modern();
    start(&mut client, 1);
    // Form: not accepted.
    let uris = [uri("run-1"), "file:///x".to_owned(), "taffrail://runs/../x".to_owned(), uri("run-1")];
    let id = client.send(
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": uris, "toolsListChanged": true, "resourcesListChanged": true}}),
    );
    let accepted = acknowledged(&mut client, id);
    assert_eq!(accepted, json!({"resourceSubscriptions": [uri("run-1"), uri("run-1")]}));
    assert_eq!(updated(&mut client, Some(id)), "run-1");
    client.assert_silent();
    // Nothing at all: a quiet stream.
    let id = send_listen(&mut client, &[]);
    assert_eq!(acknowledged(&mut client, id), json!({}));
    client.assert_silent();
    // A run that there is not is told once: who reads it learns so.
    let id = send_listen(&mut client, &[&uri("run-1"), &uri("run-9")]);
    acknowledged(&mut client, id);
    let mut told = [updated(&mut client, Some(id)), updated(&mut client, Some(id))];
    told.sort();
    assert_eq!(told, ["run-1", "run-9"]);
    client.assert_silent();
    // None of them is there.
    let id = send_listen(&mut client, &[&uri("run-8"), &uri("run-9")]);
    acknowledged(&mut client, id);
    let answer = client.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32602)), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("resources/list"), "{answer}");
    // Too many.
    let many: Vec<_> = (0..65).map(|n| uri(&format!("run-{n}"))).collect();
    let id = send_listen(&mut client, &many.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(acknowledged(&mut client, id), json!({}));
    let answer = client.read();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32602)), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("at most 64"), "{answer}");
    for params in [json!({}), json!({"notifications": 7}), json!({"notifications": {"resourceSubscriptions": "x"}})] {
        assert_eq!(refused(&mut client, "subscriptions/listen", params).0, -32602);
    }
    client.assert_silent();
}

#[test]
fn a_session_is_told_from_subscribe_to_unsubscribe() {
    let mut client = Client::legacy();
    start(&mut client, 2);
    // Twice is once.
    for run in ["run-1", "run-1", "run-2"] {
        assert_eq!(client.request("resources/subscribe", json!({"uri": uri(run)}))["result"], json!({}));
    }
    client.assert_silent();
    client.fake.enter("run-1", "build");
    assert_eq!(updated(&mut client, None), "run-1");
    client.fake.log("run-1", "hello");
    client.fake.finish("run-2", "done");
    assert_eq!(updated(&mut client, None), "run-2");
    for _ in 0..2 {
        assert_eq!(client.request("resources/unsubscribe", json!({"uri": uri("run-1")}))["result"], json!({}));
    }
    client.fake.enter("run-1", "test");
    client.fake.finish("run-1", "done");
    client.assert_silent();
    // A finished run has no news.
    assert_eq!(client.request("resources/subscribe", json!({"uri": uri("run-1")}))["result"], json!({}));
    client.assert_silent();
    let (took, said) = client.hang_up();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(said, Vec::<String>::new());
}

#[test]
fn what_cannot_be_subscribed_to_is_refused() {
    let mut client = Client::legacy();
    let (code, message) = refused(&mut client, "resources/subscribe", json!({"uri": uri("run-9")}));
    assert_eq!((code, message.as_str()), (-32002, "no run run-9; list_runs shows the runs there are"));
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        assert_eq!(refused(&mut client, method, json!({"uri": "file:///x"})).0, -32002, "{method}");
        assert_eq!(refused(&mut client, method, json!({})).0, -32602, "{method}");
        assert_eq!(refused(&mut client, method, json!({"uri": 7})).0, -32602, "{method}");
    }
    start(&mut client, 65);
    for n in 1..=64 {
        let answer = client.request("resources/subscribe", json!({"uri": uri(&format!("run-{n}"))}));
        assert_eq!(answer["result"], json!({}));
    }
    let (code, message) = refused(&mut client, "resources/subscribe", json!({"uri": uri("run-65")}));
    assert!(code == -32602 && message.contains("64"), "{message}");
    // One that is over makes room.
    client.fake.finish("run-1", "done");
    assert_eq!(updated(&mut client, None), "run-1");
    let room = || client.request("resources/subscribe", json!({"uri": uri("run-65")}))["result"] == json!({});
    assert!(std::iter::repeat_with(room).take(1000).any(|made| made));
    client.assert_silent();
}

#[test]
fn each_era_has_its_own_way() {
    let mut client = Client::legacy();
    let params = json!({"notifications": {}});
    assert_eq!(refused(&mut client, "subscriptions/listen", params).0, -32601);
    assert_eq!(refused(&mut client, "subscriptions/listen", json!({"notifications": 7})).0, -32601);
    let mut client = Client::modern();
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        assert_eq!(refused(&mut client, method, json!({"uri": uri("run-1")})).0, -32601, "{method}");
        assert_eq!(refused(&mut client, method, json!({})).0, -32601, "{method}");
    }
}

#[test]
fn a_client_that_stalls_gets_fewer() {
    let fake = Fake::default();
    let (server_in, mut to) = pipe().unwrap();
    let (from, server_out) = pipe().unwrap();
    let mut from = BufReader::new(from);
    let server = serve_in_thread(&fake, StdioTransport::new(server_in, server_out).unwrap());
    let mut write = |message: Value| to.write_all(format!("{message}\n").as_bytes()).unwrap();
    write(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
    write(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "run", "arguments": {"playbook": "slow", "wait_s": 0}}}));
    let mut read = || {
        let mut line = String::new();
        from.read_line(&mut line).unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    };
    while read()["id"] != 2 {}
    write(json!({"jsonrpc": "2.0", "id": 3, "method": "resources/subscribe", "params": {"uri": uri("run-1")}}));
    while read()["id"] != 3 {}
    // Some 15 MB of news, if each change were told.
    for _ in 0..100_000 {
        fake.enter("run-1", "build");
    }
    fake.finish("run-1", "done");
    write(json!({"jsonrpc": "2.0", "id": 4, "method": "ping"}));
    write(json!({"jsonrpc": "2.0", "id": 5, "method": "resources/read", "params": {"uri": uri("run-1")}}));
    let (mut told, mut answered) = (0, 0);
    while answered < 2 {
        match read() {
            message if message["method"] == "notifications/resources/updated" => told += 1,
            message => {
                assert!(message["id"] == 4 || message["id"] == 5, "{message}");
                answered += 1;
            }
        }
    }
    // What the pipe holds, and 1 MiB before it.
    assert!(told < 15_000, "{told} notifications");
    drop(to);
    server.join().unwrap().unwrap();
}

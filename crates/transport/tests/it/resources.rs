//! Runs as resources, in both eras.

use serde_json::{Value, json};

use crate::client::Client;

const ERAS: [fn() -> Client; 2] = [Client::legacy, Client::modern];

fn result(client: &mut Client, method: &str, params: Value) -> Value {
    let answer = client.request(method, params);
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].clone()
}

fn error(client: &mut Client, method: &str, params: Value) -> (i64, String) {
    let answer = client.request(method, params);
    (answer["error"]["code"].as_i64().expect("an error"), answer["error"]["message"].as_str().unwrap().to_owned())
}

#[test]
fn a_run_is_a_resource_that_holds_what_run_status_gives() {
    for (era, modern) in [(ERAS[0], false), (ERAS[1], true)] {
        let mut client = era();
        client.call("run", json!({"playbook": "quick"}));
        client.call("run", json!({"playbook": "slow", "wait_s": 0}));
        for (run, ttl_ms) in [("run-1", 60_000), ("run-2", 0)] {
            let uri = format!("taffrail://runs/{run}");
            let status = client.call("run_status", json!({"run": run}))["structuredContent"].clone();
            let read = result(&mut client, "resources/read", json!({"uri": uri}));
            let [contents] = read["contents"].as_array().unwrap().as_slice() else { panic!("{read}") };
            assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(uri), &json!("application/json")));
            let snapshot: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
            assert_eq!(snapshot, status);
            // The disk is shared over stdio.
            assert_eq!(snapshot["spool"], format!("/spool/{run}.jsonl"));
            match modern {
                true => assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(ttl_ms), &json!("private"))),
                false => assert_eq!(read.as_object().unwrap().keys().collect::<Vec<_>>(), ["contents"]),
            }
        }
    }
}

#[test]
fn the_list_shows_the_newest_first_a_page_at_a_time() {
    let mut client = Client::modern();
    for _ in 0..60 {
        client.call("run", json!({"playbook": "quick"}));
    }
    let first = result(&mut client, "resources/list", json!({}));
    insta::assert_json_snapshot!(first["resources"][0], @r#"
    {
      "description": "quick: done at build, started 2026-11-30T12:00:00.000000Z",
      "mimeType": "application/json",
      "name": "run-60",
      "title": "Run of quick",
      "uri": "taffrail://runs/run-60"
    }
    "#);
    assert_eq!((&first["ttlMs"], &first["cacheScope"]), (&json!(1000), &json!("private")));
    // One that begins meanwhile moves nothing.
    client.call("run", json!({"playbook": "quick"}));
    let second = result(&mut client, "resources/list", json!({"cursor": first["nextCursor"]}));
    assert_eq!(second.get("nextCursor"), None);
    let names: Vec<_> = [&first, &second]
        .into_iter()
        .flat_map(|page| page["resources"].as_array().unwrap())
        .map(|resource| resource["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, (1..=60).rev().map(|n| format!("run-{n}")).collect::<Vec<_>>());
}

#[test]
fn there_is_a_template_for_all_runs() {
    let mut client = Client::modern();
    let answer = result(&mut client, "resources/templates/list", json!({}));
    insta::assert_json_snapshot!(answer["resourceTemplates"], @r#"
    [
      {
        "description": "Snapshot of a run, as run_status gives it: status, state, cursor, what it waits for.",
        "mimeType": "application/json",
        "name": "run",
        "title": "Run",
        "uriTemplate": "taffrail://runs/{run}"
      }
    ]
    "#);
    assert_eq!((&answer["ttlMs"], &answer["cacheScope"]), (&json!(300_000), &json!("private")));
    let tools = result(&mut client, "tools/list", json!({}));
    assert_eq!((&tools["ttlMs"], &tools["cacheScope"]), (&json!(300_000), &json!("private")));
    assert!(tools.get("nextCursor").is_none());
}

#[test]
fn what_there_is_not_is_told_in_the_way_of_the_era() {
    for (era, code) in [(ERAS[0], -32002), (ERAS[1], -32602)] {
        let mut client = era();
        let unknown = client.request("resources/read", json!({"uri": "taffrail://runs/run-7"}));
        assert_eq!(unknown["error"]["code"], code);
        assert_eq!(unknown["error"]["data"], json!({"uri": "taffrail://runs/run-7"}));
        assert_eq!(unknown["error"]["message"], "no run run-7; list_runs shows the runs there are");
        for uri in ["", "taffrail://runs/", "taffrail://runs/../x", "taffrail://playbooks/x", "file:///etc/passwd"] {
            let (got, message) = error(&mut client, "resources/read", json!({"uri": uri}));
            assert_eq!(got, code, "{uri}");
            assert!(message.contains("taffrail://runs/{run}") && message.contains("resources/list"), "{message}");
        }
        let long = format!("taffrail://{}", "é".repeat(100_000));
        let (_, message) = error(&mut client, "resources/read", json!({"uri": long}));
        assert!(message.len() < 500, "{}", message.len());
        client.assert_silent();
    }
}

#[test]
fn bad_cursors_and_parameters_are_refused() {
    for era in ERAS {
        let mut client = era();
        client.call("run", json!({"playbook": "quick"}));
        for cursor in ["", "x", "run-1", "runs-before:", "runs-before:../x", "runs-before:run-9"] {
            let (code, message) = error(&mut client, "resources/list", json!({"cursor": cursor}));
            assert_eq!(code, -32602, "{cursor}");
            assert!(message.contains("nextCursor"), "{message}");
            for method in ["tools/list", "resources/templates/list", "prompts/list"] {
                assert_eq!(error(&mut client, method, json!({"cursor": cursor})).0, -32602, "{method}");
            }
        }
        assert_eq!(
            result(&mut client, "resources/list", json!({"cursor": "runs-before:run-1"}))["resources"],
            json!([])
        );
        for params in [json!({}), json!({"uri": 7})] {
            assert_eq!(error(&mut client, "resources/read", params).0, -32602);
        }
        client.assert_silent();
    }
}

#[test]
fn a_panic_is_answered() {
    let mut client = Client::modern();
    let (code, message) = error(&mut client, "resources/read", json!({"uri": "taffrail://runs/panic"}));
    assert_eq!((code, message.as_str()), (-32603, "internal error in resources/read; runs are not harmed"));
    client.assert_silent();
}

#[test]
fn a_client_that_ignores_all_this_sees_the_same() {
    /// The answers to what every client does. With `curious`, it does the rest beside that.
    fn answers(revision: &str, curious: bool) -> Vec<Value> {
        let mut client = Client::of(revision);
        let mut answers = Vec::new();
        let mut ask = |client: &mut Client, method: &str, params: Value| {
            let id = client.send(method, params);
            let (before, answer) = client.read_until(id);
            assert!(curious || before.is_empty(), "{before:?}");
            answers.push(answer["result"].clone());
        };
        let call = |tool: &str, arguments: Value| json!({"name": tool, "arguments": arguments});
        ask(&mut client, "tools/list", json!({}));
        ask(&mut client, "tools/call", call("run", json!({"playbook": "slow", "wait_s": 0})));
        if curious {
            let uri = "taffrail://runs/run-1";
            let others = [
                ("resources/list", json!({})),
                ("resources/read", json!({"uri": uri})),
                ("prompts/list", json!({})),
                ("prompts/get", json!({"name": "watch-run", "arguments": {"run": "run-1"}})),
            ];
            for (method, params) in others {
                result(&mut client, method, params);
            }
            match revision >= "2026-07-28" {
                true => drop(
                    client.send("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [uri]}})),
                ),
                false => drop(result(&mut client, "resources/subscribe", json!({"uri": uri}))),
            }
        }
        client.fake.enter("run-1", "build");
        ask(&mut client, "tools/call", call("run_status", json!({"run": "run-1", "after": 1, "wait_s": 9})));
        client.fake.finish("run-1", "halt");
        ask(&mut client, "tools/call", call("run_status", json!({"run": "run-1", "wait_s": 9})));
        ask(&mut client, "tools/call", call("run_logs", json!({"run": "run-1"})));
        ask(&mut client, "tools/call", call("list_runs", json!({})));
        answers
    }
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        assert_eq!(answers(revision, false), answers(revision, true), "{revision}");
    }
}

//! Resources, prompts and news of runs over HTTP, on the real service.

use std::time::Duration;

use serde_json::{Value, json};
use taffrail_runs::Until;

use super::{
    ground::{Ground, Serving, Wire, head},
    mcp::{NEW, OLD, messages, send},
};

/// A request of the revision without sessions.
fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn legacy(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// The answer in both eras: they differ only in what the era adds.
async fn both(ground: &Ground, method: &str, name: Option<&str>, params: Value) -> Value {
    let named: Vec<_> = [NEW, ("mcp-method", method)].into_iter().chain(name.map(|name| ("mcp-name", name))).collect();
    let new = messages(&send(ground, &named, &modern(method, params.clone())).await).remove(0);
    let old = messages(&send(ground, &[OLD], &legacy(method, params)).await).remove(0);
    let mut rest = new["result"].clone();
    for added in ["resultType", "ttlMs", "cacheScope", "_meta"] {
        rest.as_object_mut().unwrap_or_else(|| panic!("{new}")).remove(added);
    }
    assert_eq!(rest, old["result"], "{method}");
    old["result"].clone()
}

#[tokio::test]
async fn both_eras_read_the_same_resources_and_prompts() {
    let ground = Ground::new();
    let mut runs = Vec::new();
    for playbook in ["lines", "gate", "lines"] {
        runs.push(ground.run(playbook).await.to_string());
    }
    let listed = both(&ground, "resources/list", None, json!({})).await;
    let names: Vec<_> = listed["resources"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, [json!(runs[2]), json!(runs[1]), json!(runs[0])]);
    let uri = format!("taffrail://runs/{}", runs[0]);
    let read = both(&ground, "resources/read", Some(&uri), json!({"uri": uri})).await;
    let snapshot: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    let status = legacy("tools/call", json!({"name": "run_status", "arguments": {"run": runs[0]}}));
    let status = messages(&send(&ground, &[OLD], &status).await).remove(0);
    assert_eq!(snapshot, status["result"]["structuredContent"]);
    // The disk is not shared.
    assert_eq!((&snapshot["status"], snapshot.get("spool")), (&json!("done"), None));
    both(&ground, "resources/templates/list", None, json!({})).await;
    both(&ground, "prompts/list", None, json!({})).await;
    let arguments = json!({"name": "explain-failure", "arguments": {"run": runs[0]}});
    let prompt = both(&ground, "prompts/get", Some("explain-failure"), arguments).await;
    let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains(" say out| 3\n") && text.contains("status: done"), "{text}");
    let reference = json!({"type": "ref/resource", "uri": "taffrail://runs/{run}"});
    let params = json!({"ref": reference, "argument": {"name": "run", "value": runs[1]}});
    let completed = both(&ground, "completion/complete", None, params).await;
    assert_eq!(completed["completion"], json!({"values": [runs[1]], "total": 1, "hasMore": false}));
    let params =
        json!({"ref": {"type": "ref/prompt", "name": "run-playbook"}, "argument": {"name": "playbook", "value": ""}});
    let completed = both(&ground, "completion/complete", None, params).await;
    assert_eq!(completed["completion"]["values"], json!(["ask", "gate", "lines", "wait"]));
}

#[tokio::test]
async fn a_cursor_whose_run_was_never_there_is_refused() {
    let ground = Ground::new();
    let list = modern("resources/list", json!({"cursor": "runs-before:019a0000-0000-7000-8000-000000000000"}));
    let answer = messages(&send(&ground, &[NEW, ("mcp-method", "resources/list")], &list).await).remove(0);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn what_needs_a_session_is_not_promised_and_says_what_to_do() {
    let ground = Ground::new();
    let run = ground.run("lines").await;
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let greeted = messages(&send(&ground, &[], &legacy("initialize", params)).await).remove(0);
    assert_eq!(greeted["result"]["capabilities"]["resources"], json!({}), "{greeted}");
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        let request = legacy(method, json!({"uri": format!("taffrail://runs/{run}")}));
        let answer = messages(&send(&ground, &[OLD], &request).await).remove(0);
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("run_status") && message.contains("subscriptions/listen"), "{message}");
    }
    let discover = [NEW, ("mcp-method", "server/discover")];
    let told = messages(&send(&ground, &discover, &modern("server/discover", json!({}))).await).remove(0);
    assert_eq!(told["result"]["capabilities"]["resources"], json!({"subscribe": true}), "{told}");
}

/// Begins to listen, and reads up to the first notification for each run.
async fn listen(serving: &Serving, runs: &[String]) -> Wire {
    let uris: Vec<_> = runs.iter().map(|run| format!("taffrail://runs/{run}")).collect();
    let body = modern("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}})).to_string();
    let mut wire = serving.connect().await;
    let length = body.len();
    wire.send(&format!(
        "{}content-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: \
         2026-07-28\r\nmcp-method: subscriptions/listen\r\ncontent-length: {length}\r\n\r\n{body}",
        head("POST", "/mcp")
    ))
    .await;
    let count = runs.len();
    let begin = wire.until(|text| text.matches("resources/updated").count() == count).await;
    assert!(begin.starts_with("HTTP/1.1 200") && begin.contains("text/event-stream"), "{begin}");
    assert!(begin.contains("subscriptions/acknowledged"), "{begin}");
    wire
}

#[tokio::test]
async fn listeners_with_one_id_hear_of_their_own_runs_and_are_kept_alive() {
    let mut serving = Serving::with(|config| config.keep_alive = Duration::from_millis(100));
    let mut runs = Vec::new();
    for _ in 0..2 {
        let started = serving
            .service
            .start(taffrail_runs::Start::new(taffrail_runs::Work::Playbook { name: "wait".to_owned(), paths: false }));
        let run = started.await.unwrap().run;
        serving.service.wait(&run, Until::ChangedAfter(taffrail_mcp_core::Seq(1))).await.unwrap();
        runs.push(run);
    }
    // Both have the request id 1.
    let mut first = listen(&serving, &[runs[0].to_string()]).await;
    let mut second = listen(&serving, &[runs[1].to_string()]).await;
    let quiet = first.until(|text| text.matches(":\n\n").count() >= 3).await;
    assert!(!quiet.contains("resources/updated"), "{quiet}");
    let cancel = taffrail_runs::Cancel { run: runs[0].clone(), reason: None, actor: "test".to_owned(), kill: false };
    serving.service.cancel(cancel).await.unwrap();
    let told = first.until(|text| text.contains("resources/updated")).await;
    assert!(told.contains(runs[0].as_str()), "{told}");
    // The end of the server ends both with a result.
    serving.stop();
    let rest = second.rest().await;
    assert!(!rest.contains(runs[0].as_str()) && rest.contains(r#""resultType":"complete""#), "{rest}");
    let rest = first.rest().await;
    assert!(rest.contains(r#""resultType":"complete""#), "{rest}");
    serving.ended().await;
    serving.service.close().await;
}

//! How a session begins, in each revision.

use serde_json::{Value, json};

use crate::client::Client;

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[test]
fn initialize_answers_in_the_revision_that_was_asked_for() {
    let params = |revision: &str| json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    for revision in LEGACY {
        let mut client = Client::raw();
        let mut answer = client.request("initialize", params(revision));
        assert_eq!(answer["result"]["protocolVersion"], revision);
        answer["result"]["protocolVersion"] = json!("[revision]");
        insta::allow_duplicates! {
            insta::assert_json_snapshot!("initialize", answer["result"]);
        }
    }
    // A revision without a handshake, or an unknown one, gets the newest that has one.
    for revision in ["2026-07-28", "1999-01-01"] {
        let answer = Client::raw().request("initialize", params(revision));
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
    }
}

#[test]
fn discover_tells_what_there_is() {
    let mut client = Client::modern();
    let answer = client.request("server/discover", json!({}));
    insta::assert_json_snapshot!(answer["result"]);
}

#[test]
fn a_client_may_discover_and_then_fall_back_to_a_handshake() {
    let mut client = Client::raw();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    assert!(client.request("server/discover", json!({"_meta": meta}))["result"].is_object());
    client.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let answer = client.request(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    assert_eq!(answer["result"]["protocolVersion"], "2025-06-18");
    assert!(client.request("tools/list", json!({}))["result"]["tools"].is_array());
}

#[test]
fn every_revision_lists_the_same_tools_and_runs_them() {
    let mut lists: Vec<Value> = Vec::new();
    for revision in LEGACY.into_iter().chain(["2026-07-28"]) {
        let mut client = Client::of(revision);
        lists.push(client.request("tools/list", json!({}))["result"]["tools"].clone());
        let result = client.call("run", json!({"playbook": "quick"}));
        assert_eq!(result["structuredContent"]["status"], "done", "{revision}");
        let modern = revision == "2026-07-28";
        assert_eq!(result.get("resultType").is_some(), modern, "{revision}");
    }
    assert!(lists.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_modern_request_must_say_its_revision_and_a_known_one() {
    let mut client = Client::modern();
    client.call("list_playbooks", json!({}));
    client.write(r#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#);
    assert_eq!(client.read()["error"]["code"], -32602);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2031-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    client.write(&json!({"jsonrpc": "2.0", "id": "b", "method": "tools/list", "params": {"_meta": meta}}).to_string());
    assert_eq!(client.read()["error"]["code"], -32022);
}

#[test]
fn set_level_is_taken_before_initialized_and_gone_in_modern_revisions() {
    let mut client = Client::raw();
    client.request(
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    assert_eq!(client.request("logging/setLevel", json!({"level": "info"}))["result"], json!({}));
    let bad = client.request("logging/setLevel", json!({"level": "loud"}));
    insta::assert_snapshot!(bad["error"], @r#"{"code":-32602,"message":"unknown log level \"loud\"; one of debug, info, notice, warning, error, critical, alert, emergency"}"#);

    let mut client = Client::modern();
    for level in ["info", "loud"] {
        let answer = client.request("logging/setLevel", json!({"level": level}));
        assert_eq!(answer["error"]["code"], -32601);
    }
}

#[test]
fn a_bad_level_in_a_modern_request_is_refused() {
    let mut client = Client::modern();
    client.ask_for_events("loud");
    let answer = client.request("tools/call", json!({"name": "list_runs", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602);
}

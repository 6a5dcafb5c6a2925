//! MCP over HTTP, as raw requests: both eras.

use axum::{
    Router,
    body::Body,
    http::{Method, Request},
    middleware,
    routing::post_service,
};
use http_body_util::BodyExt as _;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{GetTaskParams, GetTaskResult, ServerCapabilities, ServerConfig},
    service::RequestContext,
};
use serde_json::{Value, json};
use taffrail_transport::http::{McpEndpoint, McpEndpointConfig, only_local};
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::ground::{Answer, Ground, Serving, head};

const JSON: (&str, &str) = ("content-type", "application/json");
const FORMS: (&str, &str) = ("accept", "application/json, text/event-stream");
pub(super) const OLD: (&str, &str) = ("mcp-protocol-version", "2025-06-18");
pub(super) const NEW: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

pub(super) async fn send(ground: &Ground, more: &[(&str, &str)], message: &Value) -> Answer {
    let headers: Vec<_> = [JSON, FORMS].into_iter().chain(more.iter().copied()).collect();
    ground.send(Method::POST, "/mcp", &headers, Body::from(message.to_string())).await
}

/// The messages of a stream of events, or the one that came alone.
pub(super) fn messages(answer: &Answer) -> Vec<Value> {
    let text = std::str::from_utf8(&answer.body).unwrap();
    if answer.header("content-type").starts_with("application/json") {
        return vec![serde_json::from_str(text).unwrap()];
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

/// A call of the revision without sessions.
pub(super) fn modern(tool: &str, arguments: Value, level: Option<&str>) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    if let Some(level) = level {
        meta["io.modelcontextprotocol/logLevel"] = json!(level);
    }
    let mut call = call(tool, arguments);
    call["params"]["_meta"] = meta;
    call
}

#[tokio::test]
async fn a_client_with_a_handshake_calls_tools_without_a_session() {
    let ground = Ground::new();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let greeted = send(&ground, &[], &initialize).await;
    assert_eq!(greeted.status, 200, "{greeted:?}");
    assert!(!greeted.headers.contains_key("mcp-session-id"));
    assert_eq!(messages(&greeted)[0]["result"]["protocolVersion"], "2025-06-18");
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(send(&ground, &[OLD], &initialized).await.status, 202);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let listed = messages(&send(&ground, &[OLD], &list).await);
    assert_eq!(listed[0]["result"]["tools"].as_array().unwrap().len(), 8);
    let ran = messages(&send(&ground, &[OLD], &call("run", json!({"playbook": "lines"}))).await);
    let [answer] = ran.as_slice() else { panic!("{ran:?}") };
    assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["status"]), (&json!(1), &json!("done")));
    let run = answer["result"]["structuredContent"]["run"].as_str().unwrap();
    let logs = messages(&send(&ground, &[OLD], &call("run_logs", json!({"run": run, "grep": "^2$"}))).await);
    let text = logs[0]["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("next cursor: "), "{text}");
}

#[tokio::test]
async fn a_call_that_asks_for_events_gets_them_in_order_and_its_answer_last() {
    let ground = Ground::new();
    let named = [NEW, ("mcp-method", "tools/call"), ("mcp-name", "run")];
    let arguments = json!({"playbook": "lines", "inputs": {"n": 500}});
    let answer = send(&ground, &named, &modern("run", arguments, Some("debug"))).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream"), "{answer:?}");
    let messages = messages(&answer);
    let (last, events) = messages.split_last().unwrap();
    assert_eq!(last["result"]["structuredContent"]["status"], "done");
    let seqs: Vec<_> =
        events.iter().map(|event| event["params"]["_meta"]["io.taffrail/seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let head = last["result"]["structuredContent"]["head"].as_u64().unwrap();
    assert_eq!(seqs.len() as u64, head);
    for event in events {
        assert_eq!(
            (&event["method"], &event["params"]["logger"]),
            (&json!("notifications/message"), &json!("taffrail.event"))
        );
        assert_eq!(event["params"]["data"]["seq"], event["params"]["_meta"]["io.taffrail/seq"]);
    }
    // Nobody who does not ask gets any.
    let quiet = send(&ground, &named, &modern("run", json!({"playbook": "lines"}), None)).await;
    assert_eq!(super::mcp::messages(&quiet).len(), 1);
}

#[tokio::test]
async fn a_call_that_waits_shows_that_it_is_alive() {
    let serving = Serving::with(|config| config.keep_alive = std::time::Duration::from_millis(100));
    let body = modern("run", json!({"playbook": "wait", "wait_s": 2}), None).to_string();
    let headers = format!(
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: \
         2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: run\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut wire = serving.connect().await;
    let begun = Instant::now();
    wire.send(&format!("{}{headers}{body}", head("POST", "/mcp"))).await;
    let begin = wire.until(|text| text.contains(":\n\n")).await;
    assert!(begin.starts_with("HTTP/1.1 200") && begin.contains("text/event-stream"), "{begin}");
    assert!(begun.elapsed().as_millis() < 1900, "{:?}", begun.elapsed());
    let rest = wire.until(|text| text.contains("\"running\"")).await;
    assert!(rest.matches(":\n\n").count() >= 3, "{rest}");
    serving.service.close().await;
}

#[tokio::test]
async fn a_wait_ends_with_an_answer_when_the_server_ends() {
    let mut serving = Serving::with(|_| {});
    let body = modern("run", json!({"playbook": "wait", "wait_s": 300}), None).to_string();
    let headers = format!(
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: \
         2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: run\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut wire = serving.connect().await;
    wire.send(&format!("{}{headers}{body}", head("POST", "/mcp"))).await;
    wire.until(|text| text.contains(":\n\n")).await;
    serving.stop();
    let rest = wire.rest().await;
    assert!(rest.contains("\"structuredContent\""), "{rest}");
    serving.ended().await;
    serving.service.close().await;
}

#[tokio::test]
async fn what_is_no_message_gets_an_error_of_the_protocol() {
    let ground = Ground::new();
    let raw = |text: &'static str| ground.send(Method::POST, "/mcp", &[JSON, FORMS], Body::from(text));
    for (text, code) in [
        ("{", -32700),
        ("", -32700),
        ("nonsense", -32700),
        ("[]", -32600),
        (r#" [{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"hello":1}"#, -32600),
        ("7", -32600),
    ] {
        let answer = raw(text).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (400, &json!(code)),
            "{text}: {answer:?}"
        );
    }
    let html = ground.send(Method::POST, "/mcp", &[JSON, ("accept", "text/html")], Body::from("{}")).await;
    html.problem(406, "not-acceptable");
    let typed = ground.send(Method::POST, "/mcp", &[FORMS, ("content-type", "text/plain")], Body::from("{}")).await;
    typed.problem(415, "wrong-content-type");
    let ping = json!({"jsonrpc": "2.0", "id": 5, "method": "ping"});
    let wild = ground.send(Method::POST, "/mcp", &[JSON, ("accept", "*/*")], Body::from(ping.to_string())).await;
    assert_eq!(messages(&wild), [json!({"jsonrpc": "2.0", "id": 5, "result": {}})]);
}

/// A server of somebody else, with tasks: it says which one it was asked for.
struct Tasks;

impl ServerHandler for Tasks {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tasks().build())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Err(ErrorData::invalid_params(format!("asked for {}", request.task_id), None))
    }
}

/// Sends `tasks/get` for the task `r1` to it.
async fn get_task(headers: &[(&str, &str)]) -> Answer {
    let endpoint = McpEndpoint::new(|| Tasks, McpEndpointConfig::default());
    let router = Router::new().route("/mcp", post_service(endpoint)).layer(middleware::from_fn(only_local));
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "r1", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    }}});
    let mut request = Request::post("/mcp");
    for (name, value) in [JSON, FORMS, NEW, ("mcp-method", "tasks/get")].iter().chain(headers) {
        request = request.header(*name, *value);
    }
    let response = router.oneshot(request.body(Body::from(message.to_string())).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    Answer { status: parts.status, headers: parts.headers, body: body.collect().await.unwrap().to_bytes() }
}

#[track_caller]
fn reached_the_server(answer: &Answer) {
    assert_eq!(messages(answer)[0]["error"]["message"], "asked for r1", "{answer:?}");
}

#[tokio::test]
async fn a_task_is_found_without_the_header_that_names_it_and_not_under_another_name() {
    let local = ("host", "localhost");
    reached_the_server(&get_task(&[local]).await);
    reached_the_server(&get_task(&[local, ("mcp-name", "r1")]).await);
    for name in ["r2", ""] {
        let other = get_task(&[local, ("mcp-name", name)]).await;
        assert_eq!((other.status.as_u16(), &other.json()["error"]["code"]), (400, &json!(-32020)), "{other:?}");
    }
}

#[tokio::test]
async fn only_local_turns_other_names_and_pages_away() {
    let page = |origin| [("host", "127.0.0.1:9"), ("origin", origin)];
    reached_the_server(&get_task(&page("http://127.0.0.1:9")).await);
    for (headers, code) in [
        (&[("host", "evil.example")][..], "unknown-host"),
        (&[], "unknown-host"),
        (&page("http://evil.example"), "unknown-origin"),
        (&page("null"), "unknown-origin"),
    ] {
        get_task(headers).await.problem(403, code);
    }
}

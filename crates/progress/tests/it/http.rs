//! Behind rmcp over Streamable HTTP: the response's own stream, event by event.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode, header},
};
use http_body_util::BodyExt as _;
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde_json::{Value, json};
use taffrail_progress::{Config, rmcp::WithProgress};
use tower::ServiceExt as _;

use crate::served::{Server, increasing};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_branches_are_one_increasing_stream_also_for_a_client_that_stalls() {
    let config = Config::default().min_interval(Duration::ZERO).flush_limit(Duration::from_secs(60));
    let service = StreamableHttpService::new(
        move || Ok(WithProgress::new(Server::default()).config(config)),
        Arc::new(NeverSessionManager::default()),
        StreamableHttpServerConfig::default().with_legacy_session_mode(false),
    );
    let meta = json!({
        "progressToken": "f",
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "flood", "arguments": {}, "_meta": meta});
    let request = Request::post("/")
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header("Mcp-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", "flood")
        .body(Body::from(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()))
        .unwrap();
    let response = Router::new().fallback_service(service).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let (mut body, mut stream) = (Vec::new(), response.into_body());
    while let Some(frame) = stream.frame().await {
        if body.is_empty() {
            // The client stalls: branches report, and nothing is read.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        body.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    let body = String::from_utf8(body).unwrap();
    let data = body.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
    let mut messages: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    let last = messages.pop().unwrap();
    assert!(last["id"] == 1 && last["result"].is_object(), "{last}");
    let seen: Vec<Value> = messages.iter_mut().map(|message| message["params"].take()).collect();
    increasing(&seen, "f");
    assert_eq!(seen.last().unwrap()["progress"], 1.0);
}

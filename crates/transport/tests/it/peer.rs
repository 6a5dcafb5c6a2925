//! The server over another rmcp transport: events then go through rmcp.

use std::sync::Arc;

use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use taffrail_transport::{McpConfig, McpServer};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::fake::Fake;

#[tokio::test]
async fn events_come_in_order_and_paths_are_not_told() {
    let (client, server) = tokio::io::duplex(1 << 16);
    let handler = McpServer::new(Arc::new(Fake::default()), &McpConfig::default());
    tokio::spawn(async move {
        let running = handler.serve(tokio::io::split(server)).await.unwrap();
        running.waiting().await.unwrap();
    });
    let (read, mut write) = tokio::io::split(client);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
    "name": "run", "arguments": {"playbook": "quick"},
    "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "info",
    }}});
    write.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(read).lines();
    let mut seen = Vec::new();
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 1 {
            assert!(message["result"]["structuredContent"].get("spool").is_none());
            break;
        }
        assert_eq!(message["params"]["logger"], "taffrail.event");
        assert_eq!(message["params"]["_meta"]["io.taffrail/seq"], message["params"]["data"]["seq"]);
        seen.push(message["params"]["data"]["seq"].as_u64().unwrap());
    }
    assert_eq!(seen, [1, 2, 5, 6]);
}

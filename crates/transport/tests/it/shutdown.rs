//! The end of a connection.

use std::{
    io::{PipeReader, Write as _, pipe},
    time::{Duration, Instant},
};

use serde_json::json;
use taffrail_transport::stdio::StdioTransport;

use crate::{
    client::{Client, serve_in_thread},
    fake::Fake,
};

const PROMPT: Duration = Duration::from_secs(1);

#[test]
fn an_end_before_any_request_is_clean() {
    let (took, said) = Client::raw().hang_up();
    assert!(took < PROMPT, "{took:?}");
    assert!(said.is_empty());
}

#[test]
fn an_end_ends_waits_at_once_with_what_is_known_and_no_run() {
    let mut client = Client::legacy();
    let fake = client.fake.clone();
    client.send_call("run", json!({"playbook": "slow", "wait_s": 300}));
    client.fake.until_started(1);
    let (took, said) = client.hang_up();
    assert!(took < PROMPT, "{took:?}");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("run-1"));
    assert_eq!(fake.status("run-1"), "running");
}

#[test]
fn requests_piped_in_before_the_end_are_all_answered() {
    let mut client = Client::legacy();
    for _ in 0..100 {
        client.send_call("run", json!({"playbook": "quick"}));
    }
    let (took, said) = client.hang_up();
    assert!(took < PROMPT, "{took:?}");
    assert_eq!(said.len(), 100);
}

#[test]
fn a_broken_output_ends_the_server() {
    let (server_in, mut to) = pipe().unwrap();
    let (from, server_out): (PipeReader, _) = pipe().unwrap();
    drop(from);
    let server = serve_in_thread(&Fake::default(), StdioTransport::new(server_in, server_out).unwrap());
    let start = Instant::now();
    to.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").unwrap();
    // However it ends, it ends.
    let _ = server.join().unwrap();
    assert!(start.elapsed() < PROMPT);
}

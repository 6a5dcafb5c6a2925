//! A client that does not read.

use std::{
    io::{self, BufRead as _, BufReader, Write as _, pipe},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::json;
use taffrail_transport::stdio::StdioTransport;

use crate::{client::serve_in_thread, fake::Fake};

/// Counts what gets through.
struct Counted<W>(W, Arc<AtomicUsize>);

impl<W: io::Write> io::Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.fetch_add(bytes.len(), Ordering::Relaxed);
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn costs_bounded_memory_and_harms_no_run() {
    let fake = Fake::default();
    let (server_in, mut to) = pipe().unwrap();
    let (from, server_out) = pipe().unwrap();
    let mut from = BufReader::new(from);
    let counted = Arc::new(AtomicUsize::new(0));
    let output = Counted(server_out, counted.clone());
    let server = serve_in_thread(&fake, StdioTransport::new(server_in, output).unwrap());
    let mut write = |message: serde_json::Value| to.write_all(format!("{message}\n").as_bytes()).unwrap();
    write(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
    write(json!({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": {"level": "debug"}}));
    // The last that it reads.
    for _ in 0..2 {
        from.read_line(&mut String::new()).unwrap();
    }
    write(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "run", "arguments": {"playbook": "slow", "wait_s": 300}}}));
    fake.until_started(1);
    // Some 100 MB of events, none of which is read.
    let text = "x".repeat(1000);
    for _ in 0..100_000 {
        fake.log("run-1", &text);
    }
    fake.finish("run-1", "done");
    assert_eq!(fake.status("run-1"), "done");
    thread::sleep(Duration::from_millis(200));
    assert!(counted.load(Ordering::Relaxed) < 4 << 20, "bytes handed out: {counted:?}");
    // The client goes away: the server notices by the broken pipe, although its input stays open.
    drop(from);
    server.join().unwrap().unwrap();
    drop(to);
}

//! A thousand MCP calls that wait for one run, over HTTP: what they take, and how soon all are answered.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use memchr::memmem;
use serde_json::{Value, json};

use crate::{
    load::{Connection, Target, raise_open_files},
    peers::{Ours, Store},
    report::{self, median, round},
};

const CALLS: usize = 1000;

/// A call that waits gets its head after 300 ms; all have it then, and their first comment.
const SETTLED: Duration = Duration::from_millis(1500);

pub(crate) fn bench(rounds: usize) -> Result<()> {
    raise_open_files()?;
    let waits: [(&str, Value, &str); 2] = [
        (
            "run_logs",
            json!({ "cursor": 1, "wait_s": 300 }),
            r#"{"type":"log","state":"s","stream":"stdout","text":"x"}"#,
        ),
        (
            "run_status",
            json!({ "after": 1, "wait_s": 300 }),
            r#"{"type":"state-start","machine":"m","depth":0,"state":"s","step":1,"kind":"run"}"#,
        ),
    ];
    for (tool, arguments, event) in waits {
        let (mut each, mut slowest) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (kib, ms) = measure(tool, &arguments, event)?;
            each.push(kib);
            slowest.push(ms);
        }
        let (each, slowest) = (median(&mut each), median(&mut slowest));
        report::below(&format!("waiting: KiB of each of {CALLS} calls of {tool}"), each, 32.0);
        report::below(&format!("waiting: milliseconds until all {CALLS} calls of {tool} are answered"), slowest, 200.0);
        report::figure(
            "waiting",
            &[
                ("tool", tool.into()),
                ("calls", CALLS.into()),
                ("kib_each", round(each).into()),
                ("all_answered_ms", round(slowest).into()),
            ],
        );
    }
    Ok(())
}

fn measure(tool: &str, arguments: &Value, event: &str) -> Result<(f64, f64)> {
    let ours = Ours::start(Store::Sqlite)?;
    let run = ours.run("waited-for")?;
    let target = run.target("waited-for");
    let mut arguments = arguments.clone();
    arguments["run"] = json!(run.id());
    let begin = |number| begin(target.addr, tool, &arguments, number);
    // What the first call ever takes is not what a call takes.
    let first = begin(CALLS)?;
    thread::sleep(SETTLED);
    let before = ours.memory()?;
    let mut calls = (0..CALLS).map(begin).collect::<Result<Vec<_>>>()?;
    thread::sleep(SETTLED);
    let after = ours.memory()?;
    calls.push(first);

    let happened = Instant::now();
    publish(&target, event)?;
    for (number, call) in calls.iter_mut().enumerate() {
        answered(call, number)?;
    }
    let took = happened.elapsed();
    let kib = (after.pss_mib - before.pss_mib) * 1024.0 / CALLS as f64;
    Ok((kib, took.as_secs_f64() * 1e3))
}

/// Sends a call and does not wait for it.
fn begin(addr: SocketAddr, tool: &str, arguments: &Value, id: usize) -> Result<TcpStream> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string();
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {addr}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    Ok(stream)
}

fn publish(target: &Target, event: &str) -> Result<()> {
    Connection::open(target.addr)?.post(&target.publish, "application/x-ndjson", event.as_bytes())?.success()
}

/// Reads a call's answer, which is the only message of its stream.
fn answered(stream: &mut TcpStream, id: usize) -> Result<()> {
    let (mut got, mut buffer) = (Vec::new(), [0; 8192]);
    // The first one that was begun has the last number.
    let finder = |got: &[u8]| {
        memmem::find(got, br#""result""#)
            .is_some_and(|at| memmem::find(got.get(at..).unwrap_or_default(), b"\n\n").is_some())
    };
    while !finder(&got) {
        let read = stream.read(&mut buffer)?;
        ensure!(read > 0, "call {id} ended without an answer: {}", String::from_utf8_lossy(&got));
        got.extend_from_slice(buffer.get(..read).unwrap_or_default());
    }
    let own = format!(r#""id":{id}"#);
    ensure!(memmem::find(&got, own.as_bytes()).is_some(), "call {id}: {}", String::from_utf8_lossy(&got));
    Ok(())
}

//! Subscribers that do not read.

use taffrail_mcp_core::{Seq, ThreadId};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::web::{PATIENCE, Web, lines};

const EVENTS: u64 = 100_000;

/// The ids of a chunked response, in order.
fn ids(response: &[u8]) -> Vec<u64> {
    let start = response.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let (mut body, mut rest) = (Vec::new(), &response[start..]);
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        let Some(chunk) = rest.get(end + 2..end + 2 + size) else { break };
        body.extend_from_slice(chunk);
        rest = rest.get(end + 4 + size..).unwrap_or_default();
    }
    let text = String::from_utf8(body).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_stops_gets_everything_when_it_reads_again() {
    let web = Web::start();
    let run = web.external("t").await;
    let mut socket = TcpStream::connect(web.url.strip_prefix("http://").unwrap()).await.unwrap();
    let request = "GET /api/v1/threads/t/stream HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut response = vec![0; 4096];
    let read = timeout(PATIENCE, socket.read(&mut response)).await.unwrap().unwrap();
    response.truncate(read);
    // It reads nothing now, and the publisher does not wait for it: each body is answered.
    for first in (0..EVENTS).step_by(1000) {
        let (status, answer) = web.events(&run, lines(first..first + 1000)).await;
        assert_eq!(status, 200, "{answer}");
    }
    let mut buffer = vec![0; 256 * 1024];
    let mut seen = 0;
    while !has_the_last(&response[seen..]) {
        let read = timeout(PATIENCE, socket.read(&mut buffer)).await.unwrap().unwrap();
        assert!(read > 0);
        seen = response.len().saturating_sub(16);
        response.extend_from_slice(&buffer[..read]);
    }
    assert_eq!(ids(&response), (1..=EVENTS + 1).collect::<Vec<_>>());
}

/// Whether the last record is there.
fn has_the_last(response: &[u8]) -> bool {
    let last = format!("id: {}\n", EVENTS + 1);
    response.windows(last.len()).any(|bytes| bytes == last.as_bytes())
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Opens a stream that nothing is read of.
async fn unread(web: &Web) -> TcpStream {
    let mut socket = TcpStream::connect(web.url.strip_prefix("http://").unwrap()).await.unwrap();
    let request = "GET /api/v1/threads/t/stream HTTP/1.1\r\nhost: localhost\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    socket
}

/// The store forgets all but the last few records here, so what is held is held for readers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ones_that_never_read_hold_a_bounded_part_of_the_log() {
    let web = Web::start();
    let run = web.external("t").await;
    let text = "x".repeat(1000);
    let body: String = (0..1000).map(|n| format!("{{\"type\":\"n\",\"n\":{n},\"text\":\"{text}\"}}\n")).collect();
    let mut sockets = Vec::new();
    let mut held = 0;
    for round in 0..60 {
        if round < 10 {
            sockets.push(unread(&web).await);
        }
        if round == 20 {
            held = resident_kib();
        }
        let (status, answer) = web.events(&run, body.clone()).await;
        assert_eq!(status, 200, "{answer}");
        let last = Seq(answer["last"].as_u64().unwrap());
        web.service.relay().store().trim(ThreadId::new("t").unwrap(), last).await.unwrap();
    }
    // Some 50 MiB went by since then.
    let more = resident_kib().saturating_sub(held);
    assert!(more < 8 * 1024, "{more} KiB");
}

//! Subscribers that do not read.

use std::time::Duration;

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
    let held_before = resident_kib();
    for first in (0..EVENTS).step_by(1000) {
        let (status, answer) = web.events(&run, lines(first..first + 1000)).await;
        assert_eq!(status, 200, "{answer}");
    }
    let held = resident_kib().saturating_sub(held_before);
    // The store keeps everything in memory here, some 15 MiB; a queue for the reader would be as much again.
    assert!(held < 40 * 1024, "{held} KiB");
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

#[tokio::test]
async fn many_that_do_not_read_cost_the_publisher_nothing() {
    let web = Web::start();
    let run = web.external("t").await;
    let mut sockets = Vec::new();
    for _ in 0..100 {
        let mut socket = TcpStream::connect(web.url.strip_prefix("http://").unwrap()).await.unwrap();
        let request = "GET /api/v1/threads/t/stream HTTP/1.1\r\nhost: localhost\r\n\r\n";
        socket.write_all(request.as_bytes()).await.unwrap();
        sockets.push(socket);
    }
    for first in (0..20_000).step_by(1000) {
        let sent = web.events(&run, lines(first..first + 1000));
        let (status, answer) = timeout(Duration::from_secs(20), sent).await.unwrap();
        assert_eq!(status, 200, "{answer}");
    }
}

//! Limits, each where it is: over sockets.

use std::time::Duration;

use axum::{body::Body, http::Method};
use tokio::time::Instant;

use super::ground::{Ground, Serving, head};

#[tokio::test]
async fn a_body_that_is_too_large_is_not_read() {
    let ground = Ground::with(|config| config.limits.body_bytes = 1000);
    let send = |path, body: Body| {
        ground.send(Method::POST, path, &[("content-type", "application/json"), ("accept", "*/*")], body)
    };
    for path in ["/api/v1/threads/t/runs", "/mcp", "/login", "/api/v1/runs/x/cancel"] {
        let answer = send(path, Body::from(" ".repeat(1001))).await;
        assert!(answer.problem(413, "too-large").contains("1000 bytes"), "{path}");
        // One that does not say how long it is.
        let parts = futures_util::stream::iter((0..20).map(|_| Ok::<_, std::io::Error>(" ".repeat(100))));
        send(path, Body::from_stream(parts)).await.problem(413, "too-large");
    }
    let told = Serving::with(|_| {});
    let request = format!("{}content-type: application/json\r\ncontent-length: 99999999\r\n\r\n", head("POST", "/mcp"));
    let answer = told.ask(&request.replace("\r\nhost", "\r\naccept: */*\r\nhost")).await;
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("\"limit\":4194304"), "{answer}");
}

#[tokio::test]
async fn a_head_that_is_too_large_is_a_431() {
    let serving = Serving::with(|_| {});
    let one = format!("{}x-long: {}\r\n\r\n", head("GET", "/api/v1/runs"), "a".repeat(100_000));
    let answer = serving.ask(&one).await;
    assert!(answer.starts_with("HTTP/1.1 431") && answer.contains("head-too-large"), "{answer}");
    let target = format!("{}\r\n", head("GET", &format!("/api/v1/runs?{}", "a".repeat(40_000))));
    assert!(serving.ask(&target).await.starts_with("HTTP/1.1 431"));
    let many: String = (0..1000).map(|number| format!("x-{number}: {}\r\n", "a".repeat(90))).collect();
    let answer = serving.ask(&format!("{}{many}\r\n", head("GET", "/"))).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    // Beyond what anybody would answer in words.
    let vast = format!("{}x-vast: {}\r\n\r\n", head("GET", "/"), "a".repeat(1_000_000));
    let mut wire = serving.connect().await;
    let (mut read, mut write) = wire.0.split();
    let sent = async { _ = tokio::io::AsyncWriteExt::write_all(&mut write, vast.as_bytes()).await };
    let mut answer = [0; 12];
    let (_, got) = tokio::join!(sent, tokio::io::AsyncReadExt::read_exact(&mut read, &mut answer));
    got.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 431");
    assert!(serving.ask(&format!("{}\r\n", head("GET", "/api/v1/runs"))).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn who_sends_a_head_byte_by_byte_is_let_go() {
    let serving = Serving::with(|config| config.limits.head_time = Duration::from_millis(300));
    for begin in ["", "G", "PRI * HT", "GET / HTTP/1.1\r\nhost: localh"] {
        let mut wire = serving.connect().await;
        let begun = Instant::now();
        wire.send(begin).await;
        // hyper says why when it knows that it is HTTP/1.1.
        let rest = wire.rest().await;
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 408"), "{begin:?}: {rest}");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    // Idle between two requests is as long.
    let mut wire = serving.connect().await;
    wire.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(wire.rest().await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn who_sends_a_body_byte_by_byte_is_told() {
    let serving = Serving::with(|config| config.limits.request_time = Duration::from_millis(300));
    let mut wire = serving.connect().await;
    let lengths = "content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    wire.send(&format!("{}{lengths}", head("POST", "/api/v1/threads/t/runs"))).await;
    let answer = wire.rest().await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("too-slow"), "{answer}");
}

#[tokio::test]
async fn one_connection_too_many_is_told_and_closed() {
    let serving = Serving::with(|config| config.limits.connections = 2);
    let ask = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut wire = serving.connect().await;
        wire.send(ask).await;
        wire.until(|text| text.contains("\"ok\"")).await;
        held.push(wire);
    }
    let refused = serving.connect().await.rest().await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 1"), "{refused}");
    let (head, body) = refused.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("content-length: {}", body.len())), "{refused}");
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["code"], "too-many-connections");
    drop(held);
    let admitted = async {
        while !serving.ask(ask).await.starts_with("HTTP/1.1 200") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::ground::SOON, admitted).await.expect("places are not given back");
}

#[tokio::test]
async fn one_client_may_ask_so_often() {
    let ground = Ground::with(|config| {
        config.limits.requests_per_second = 1;
        config.limits.burst = 5;
        config.forwarded_for = true;
    });
    for _ in 0..5 {
        assert_eq!(ground.get("/api/v1/runs").await.status, 200);
    }
    let refused = ground.get("/api/v1/runs").await;
    refused.problem(429, "too-many-requests");
    assert_eq!(refused.header("retry-after"), "1");
    // Guesses of a token count like everything else.
    let guess = ground.send(Method::GET, "/api/v1/runs", &[("authorization", "Bearer x")], Body::empty()).await;
    guess.problem(429, "too-many-requests");
    let other = ground.send(Method::GET, "/api/v1/runs", &[("x-forwarded-for", "192.0.2.7")], Body::empty()).await;
    assert_eq!(other.status, 200);
}

#[tokio::test]
async fn small_answers_leave_at_once() {
    let serving = Serving::with(|_| {});
    let mut wire = serving.connect().await;
    let begun = Instant::now();
    // A delayed acknowledgement would make each take 40 ms.
    for _ in 0..50 {
        wire.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        wire.until(|text| text.contains("\"ok\"")).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

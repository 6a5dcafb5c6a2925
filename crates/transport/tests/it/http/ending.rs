//! How a server ends, and which HTTP it speaks.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::Instant,
};

use super::ground::{Serving, TOKEN, head};

#[tokio::test]
async fn what_is_under_way_is_answered_and_nothing_new_is_taken() {
    let mut serving = Serving::with(|_| {});
    let mut waiting = serving.connect().await;
    let body = r#"{"playbook":"wait"}"#;
    let lengths = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    waiting.send(&format!("{}{lengths}", head("POST", "/api/v1/threads/t/runs"))).await;
    let started = waiting.until(|text| text.ends_with('}')).await;
    let run = started.split("\"run\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let path = format!("/api/v1/runs/{run}/events?types=nothing&wait_ms=30000");
    waiting.send(&format!("{}\r\n", head("GET", &path))).await;
    let mut idle = serving.connect().await;
    idle.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    idle.until(|text| text.contains("\"ok\"")).await;
    let begun = Instant::now();
    serving.stop();
    let answer = waiting.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"records\":[]"), "{answer}");
    assert_eq!(idle.rest().await, "", "an idle connection just ends");
    serving.ended().await;
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    serving.service.close().await;
}

#[tokio::test]
async fn what_does_not_end_is_cut_off_after_the_grace() {
    let mut serving = Serving::with(|config| config.limits.grace = Duration::from_millis(200));
    let mut stuck = serving.connect().await;
    let lengths = "content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    stuck.send(&format!("{}{lengths}", head("POST", "/api/v1/threads/t/runs"))).await;
    // Answered requests show that the one before has arrived, too.
    serving.ask("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    serving.stop();
    serving.ended().await;
    let mut rest = Vec::new();
    // A reset is as good as an end.
    let _ = stuck.0.read_to_end(&mut rest).await;
    assert!(rest.is_empty());
}

#[tokio::test]
async fn an_address_in_use_says_so() {
    let serving = Serving::with(|_| {});
    let (_dir, service) = super::ground::service(std::sync::Arc::new(taffrail_relay::MemoryStore::new()));
    let bind = |config, addr| taffrail_transport::http::HttpServer::bind(service.clone(), config, addr).map(drop);
    let taken = bind(super::ground::config(|_| {}), serving.addr).unwrap_err().to_string();
    assert!(taken.contains(&format!("{} is in use", serving.addr)) && taken.contains("--listen"), "{taken}");
    let open = super::ground::config(|config| config.token = None);
    let refused = bind(open.clone(), ([0, 0, 0, 0], 0).into()).unwrap_err().to_string();
    assert!(refused.contains("without a token") && refused.contains("--no-auth"), "{refused}");
    bind(open, ([127, 0, 0, 1], 0).into()).unwrap();
}

/// A frame of HTTP/2 (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

#[tokio::test]
async fn http_2_without_tls_is_spoken_too() {
    let serving = Serving::with(|_| {});
    // :method GET, :scheme http; then literals: :path (4), :authority (1), authorization (23).
    let mut block = vec![0x82, 0x86];
    let literal = |block: &mut Vec<u8>, index: &[u8], text: &str| {
        block.extend(index);
        block.push(u8::try_from(text.len()).unwrap());
        block.extend(text.as_bytes());
    };
    literal(&mut block, &[0x04], "/api/v1/runs");
    literal(&mut block, &[0x01], "localhost");
    literal(&mut block, &[0x0f, 0x08], &format!("Bearer {TOKEN}"));
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    request.extend(frame(4, 0, 0, &[]));
    request.extend(frame(1, 0x4 | 0x1, 1, &block));
    let mut wire = serving.connect().await;
    wire.0.write_all(&request).await.unwrap();
    let reading = async {
        let (mut status, mut body) = (None, Vec::new());
        loop {
            let mut head = [0; 9];
            wire.0.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            wire.0.read_exact(&mut payload).await.unwrap();
            match head[3] {
                1 => status = Some(payload[0]),
                0 => body.extend(payload),
                _ => continue,
            }
            if head[4] & 1 == 1 {
                return (status, body);
            }
        }
    };
    let (status, body) = tokio::time::timeout(super::ground::SOON, reading).await.unwrap();
    // 0x88 is :status 200 in the static table.
    assert_eq!((status, body), (Some(0x88), br#"{"runs":[]}"#.to_vec()));
}

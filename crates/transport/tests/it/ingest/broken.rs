//! Bodies that come slowly, or not to their end.

use std::io;

use bytes::Bytes;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, sync::mpsc};

use crate::{
    sse::Events,
    web::{Web, lines},
};

/// A body that is sent piece by piece.
fn slow_body() -> (mpsc::Sender<io::Result<Bytes>>, reqwest::Body) {
    let (pieces, mut sent) = mpsc::channel(1);
    let stream = futures_util::stream::poll_fn(move |cx| sent.poll_recv(cx));
    (pieces, reqwest::Body::wrap_stream(stream))
}

#[tokio::test]
async fn what_came_of_a_broken_body_is_kept_in_whole_lines() {
    let web = Web::start();
    let run = web.external("t").await;
    let mut events = Events::open(&web, "/api/v1/threads/t/stream", Some(1)).await;
    for (round, head) in ["content-length: 100000", "transfer-encoding: chunked"].into_iter().enumerate() {
        let mut socket = TcpStream::connect(web.url.strip_prefix("http://").unwrap()).await.unwrap();
        let request = format!(
            "POST /api/v1/runs/{run}/events HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-ndjson\r\n\
             taffrail-producer: p{round}:1\r\n{head}\r\n\r\n"
        );
        let body = format!("{}{{\"type\":\"torn\"", lines(0..3));
        let body = if round == 1 { format!("{:x}\r\n{body}", 1000) } else { body };
        socket.write_all(format!("{request}{body}").as_bytes()).await.unwrap();
        drop(socket);
        for n in 0..3 {
            assert_eq!(events.record().await["n"], n);
        }
        // The producer sends the rest, from where it believes it was.
        let (_, answer) = web.events_of(&run, Some(&format!("p{round}:1")), lines(0..5)).await;
        assert_eq!((answer["stored"].as_u64(), answer["known"].as_u64()), (Some(2), Some(3)));
        for n in 3..5 {
            assert_eq!(events.record().await["n"], n);
        }
    }
}

#[tokio::test]
async fn what_comes_slowly_is_stored_as_it_comes() {
    let web = Web::start();
    let run = web.external("t").await;
    let mut events = Events::open(&web, "/api/v1/threads/t/stream", Some(1)).await;
    let (pieces, body) = slow_body();
    let sending = web.events_of(&run, Some("p:1"), body);
    let reading = async {
        for n in 0..5u64 {
            let line = lines(n..n + 1);
            let (one, two) = line.split_at(7);
            // Half a line waits for its other half; a whole one for nothing.
            pieces.send(Ok(Bytes::copy_from_slice(one.as_bytes()))).await.unwrap();
            pieces.send(Ok(Bytes::copy_from_slice(two.as_bytes()))).await.unwrap();
            assert_eq!(events.record().await["n"], n);
        }
        drop(pieces);
    };
    let ((status, answer), ()) = tokio::join!(sending, reading);
    assert_eq!((status.as_u16(), answer["stored"].as_u64(), answer["last"].as_u64()), (200, Some(5), Some(6)));
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_answered_with_what_is_kept() {
    let mut config = crate::web::config();
    config.limits.request_time = std::time::Duration::from_millis(300);
    let web = Web::with(config);
    let run = web.external("t").await;
    let (pieces, body) = slow_body();
    let sending = web.events(&run, body);
    let feeding = async { pieces.send(Ok(Bytes::from(lines(0..2)))).await.unwrap() };
    let ((status, problem), ()) = tokio::join!(sending, feeding);
    assert_eq!(
        (status.as_u16(), problem["code"].as_str(), problem["stored"].as_u64()),
        (408, Some("too-slow"), Some(2))
    );
}

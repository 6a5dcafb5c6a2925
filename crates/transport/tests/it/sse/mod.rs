//! Streams, as clients see them: over sockets.

mod answers;
mod away;
mod ends;
mod filters;
mod flood;
mod stalled;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::timeout;

use crate::web::{PATIENCE, Web};

/// One event of a stream, as it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) id: Option<u64>,
    pub(crate) event: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) retry: Option<u64>,
    pub(crate) comment: Option<String>,
}

impl Sent {
    /// Reads what is between two empty lines. Strict: we know what we send.
    fn read(text: &str) -> Self {
        let mut sent = Self::default();
        for line in text.lines() {
            match line.split_once(": ").unwrap() {
                ("id", id) => sent.id = Some(id.parse().unwrap()),
                ("event", event) => sent.event = Some(event.to_owned()),
                ("data", data) => assert_eq!(sent.data.replace(data.to_owned()), None),
                ("retry", ms) => sent.retry = Some(ms.parse().unwrap()),
                ("", comment) => sent.comment = Some(comment.to_owned()),
                other => panic!("{other:?}"),
            }
        }
        sent
    }

    /// The record.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(self.data.as_deref().unwrap()).unwrap()
    }
}

/// A stream that is read.
pub(crate) struct Events {
    response: Response,
    buffer: Vec<u8>,
    read: usize,
}

impl Events {
    /// Opens a stream; the first thing it says is how long to wait before coming back.
    pub(crate) async fn open(web: &Web, path: &str, last_event_id: Option<u64>) -> Self {
        let id = last_event_id.map(|id| id.to_string());
        let headers: Vec<_> = id.iter().map(|id| ("last-event-id", id.as_str())).collect();
        Self::of(web.get(path, &headers).await).await
    }

    pub(crate) async fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut events = Self { response, buffer: Vec::new(), read: 0 };
        assert_eq!(events.next().await.unwrap(), Sent { retry: Some(2000), ..Sent::default() });
        events
    }

    /// The next event; `None` when the stream has ended in good order.
    pub(crate) async fn next(&mut self) -> Option<Sent> {
        loop {
            let waiting = &self.buffer[self.read..];
            if let Some(end) = waiting.windows(2).position(|two| two == b"\n\n") {
                let sent = Sent::read(std::str::from_utf8(&waiting[..=end]).unwrap());
                self.read += end + 2;
                return Some(sent);
            }
            self.buffer.drain(..self.read);
            self.read = 0;
            let chunk: Option<Bytes> = timeout(PATIENCE, self.response.chunk()).await.unwrap().unwrap();
            match chunk {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => {
                    assert!(self.buffer.is_empty(), "the stream ended inside an event");
                    return None;
                }
            }
        }
    }

    /// The next record.
    pub(crate) async fn record(&mut self) -> serde_json::Value {
        let sent = self.next().await.unwrap();
        let record = sent.json();
        assert_eq!((sent.id, sent.event), (record["seq"].as_u64(), None));
        record
    }
}

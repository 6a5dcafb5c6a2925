//! The connections of a follower, one at a time.

use std::{fmt, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::{Method, Response, header};
use taffrail_mcp_core::{Gap, Seq, Snapshot, Start};

use super::{Target, is_over};
use crate::client::{
    Client, ClientError, EventPage, EventQuery, ListRuns,
    api::{api, cursor},
    call::content_type,
    sse::{Frame, Item, Parser},
    wire,
};

/// Most data of one event. A record has half a megabyte at most when every byte of a line is escaped.
const MAX_EVENT: usize = 32 * 1024 * 1024;
/// Records of a page when there is polling.
const PAGE: usize = 2000;

/// What goes on at the moment.
pub(super) enum Io {
    Idle,
    Asking(BoxFuture<'static, Told>),
    Opening(BoxFuture<'static, Result<Response, ClientError>>),
    Open(Box<Open>),
}

/// A stream that is open.
pub(super) struct Open {
    response: Response,
    parser: Parser,
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Io::Idle => "Idle",
            Io::Asking(_) => "Asking",
            Io::Opening(_) => "Opening",
            Io::Open(_) => "Open",
        })
    }
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Told {
    /// A stream begins after this position.
    Start(Seq),
    /// The stream is open.
    Opened,
    /// It brought something.
    Piece(Vec<Piece>),
    /// There is nothing more.
    Ended,
    Page(EventPage),
    Snapshot(Box<Snapshot>),
    /// The stream ended or broke.
    Closed(String),
    /// What came is no event stream.
    NoStream(String),
    TooLate,
    Failed(ClientError),
}

/// What a stream brings.
#[derive(Debug)]
pub(super) enum Piece {
    Record {
        seq: Seq,
        line: Bytes,
    },
    Gap(Gap),
    End(Box<Snapshot>),
    Retry(Duration),
    /// Something that cannot be read.
    Wrong(String),
}

impl Io {
    /// Opens a stream; where that is to bring what is new only, asks first where that begins.
    pub(super) fn open(client: &Client, target: &Target, start: Start, position: Option<Seq>) -> Self {
        let start = position.map_or(start, Start::After);
        if start == Start::Live {
            let (client, target) = (client.clone(), target.clone());
            return Io::Asking(Box::pin(
                async move { head(&client, &target).await.map_or_else(Told::Failed, Told::Start) },
            ));
        }
        let path = match target {
            Target::Run(run) => api(["runs", run.as_str(), "stream"]),
            Target::Thread(thread) => api(["threads", thread.as_str(), "stream"]),
        };
        let after = cursor(start);
        // Twice, because some proxies drop headers that they do not know.
        let query: Vec<_> = after.clone().map(|after| ("after", after)).into_iter().collect();
        let mut request = client.caller.request(Method::GET, &path, &query).header(header::ACCEPT, "text/event-stream");
        if let Some(after) = after {
            request = request.header("Last-Event-ID", after);
        }
        let caller = client.caller.clone();
        Io::Opening(Box::pin(async move { caller.send(request).await }))
    }

    /// Asks for a page.
    pub(super) fn poll(client: &Client, target: &Target, position: Option<Seq>, wait: Duration) -> Self {
        let (client, target) = (client.clone(), target.clone());
        let start = position.map_or(Start::Beginning, Start::After);
        Io::Asking(Box::pin(async move {
            let Target::Run(run) = target else { return Told::TooLate };
            let query = EventQuery { start, limit: Some(PAGE), wait, ..EventQuery::default() };
            client.events(&run, &query).await.map_or_else(Told::Failed, Told::Page)
        }))
    }

    /// Asks for the snapshot.
    pub(super) fn ask(client: &Client, target: &Target) -> Self {
        let (client, target) = (client.clone(), target.clone());
        Io::Asking(Box::pin(async move {
            let Target::Run(run) = target else { return Told::Closed("a thread's stream never ends".to_owned()) };
            client.snapshot(&run).await.map_or_else(Told::Failed, |snapshot| Told::Snapshot(Box::new(snapshot)))
        }))
    }

    /// Waits for what comes next. May be dropped at any time.
    pub(super) async fn next(&mut self) -> Told {
        match self {
            Io::Idle => Told::Closed("there is no connection".to_owned()),
            Io::Asking(asking) => {
                let told = asking.await;
                *self = Io::Idle;
                told
            }
            Io::Opening(opening) => {
                let opened = opening.await;
                *self = Io::Idle;
                match opened {
                    Ok(response) => self.opened(response),
                    Err(error) => Told::Failed(error),
                }
            }
            Io::Open(open) => match open.response.chunk().await {
                Ok(Some(piece)) => Told::Piece(read(&mut open.parser, &piece)),
                Ok(None) => Told::Closed("the stream ended before the run did".to_owned()),
                Err(error) => Told::Closed(format!("the connection broke: {}", error.without_url())),
            },
        }
    }

    fn opened(&mut self, response: Response) -> Told {
        if is_over(response.status()) {
            return Told::Ended;
        }
        match content_type(response.headers()) {
            Some("text/event-stream") => {
                *self = Io::Open(Box::new(Open { response, parser: Parser::new(MAX_EVENT) }));
                Told::Opened
            }
            other => {
                let other = wire::said(other.unwrap_or("no type"), 100);
                Told::NoStream(format!("what came is {other}, not an event stream"))
            }
        }
    }
}

/// The last position of what is followed.
async fn head(client: &Client, target: &Target) -> Result<Seq, ClientError> {
    match target {
        Target::Run(run) => Ok(client.snapshot(run).await?.head),
        Target::Thread(thread) => {
            let newest = ListRuns { thread: Some(thread.clone()), limit: Some(1), ..ListRuns::default() };
            Ok(client.runs(&newest).await?.first().map_or(Seq::START, |run| run.head))
        }
    }
}

fn read(parser: &mut Parser, bytes: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let read = parser.push(bytes, |item| {
        pieces.extend(match item {
            Item::Retry(after) => Some(Piece::Retry(after)),
            Item::Frame(frame) => piece(frame),
        });
    });
    if let Err(too_long) = read {
        pieces.push(Piece::Wrong(too_long.to_string()));
    }
    pieces
}

/// An event as what it means; `None` for one of a kind that is not known.
fn piece(frame: Frame) -> Option<Piece> {
    let Frame { event, id, data } = frame;
    match event.as_str() {
        "" | "message" => {
            let Some(seq) = wire::record(&data) else {
                return Some(Piece::Wrong("an event that is no record".to_owned()));
            };
            // What is resumed by must be where it stands.
            match id.as_deref() {
                Some(id) if id != seq.to_string() => {
                    let id = wire::said(id, 40);
                    Some(Piece::Wrong(format!("record {seq} under the id {id}")))
                }
                _ => Some(Piece::Record { seq, line: data }),
            }
        }
        "gap" => Some(wire::gap(&data).map_or_else(Piece::Wrong, Piece::Gap)),
        "end" => Some(match serde_json::from_slice(&data) {
            Ok(snapshot) => Piece::End(Box::new(snapshot)),
            Err(error) => Piece::Wrong(format!("an end without snapshot: {error}")),
        }),
        _ => None,
    }
}

//! Server-sent events: threads, runs and streamed turns.
//!
//! A stream is a [`Follower`] and a body. The blocks of the log are framed once for all ([`FrameCache`]); a stream is
//! asked for frames when its connection has room, and then gets all that waits. What a stream does with what it gets is
//! decided in [`session`], without I/O; [`stream`] drives it.

mod body;
mod cache;
mod frame;
mod looks;
mod session;
mod stream;

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use taffrail_mcp_core::{RunFold, RunKind, Seq, Start, ThreadKind};
use taffrail_relay::{Filter, Follower};
use taffrail_runs::Started;

use self::{
    body::MadeBody,
    looks::Followed,
    session::Session,
    stream::{Stream, Until},
};
pub(crate) use self::{cache::FrameCache, looks::Looks};
use super::{
    api::PathId,
    app::{App, OpenStream},
    body::{not_acceptable, takes},
    cursor,
    params::Params,
    paths,
    problem::Problem,
};

/// About what one delivery takes, in bytes: what a stream holds beside what its connection has taken. Smaller ones read
/// the store more often, larger ones gain nothing.
const DELIVERY_BYTES: usize = 128 * 1024;

const EVENT_STREAM: &str = "text/event-stream";

/// The routes of streams.
pub(super) fn routes() -> Router<App> {
    Router::new().route(paths::THREAD_STREAM, get(thread)).route(paths::RUN_STREAM, get(run))
}

/// What a request for a stream asks for.
struct Asked {
    start: Start,
    filter: Option<Filter>,
}

impl Asked {
    fn read(uri: &Uri, headers: &HeaderMap) -> Result<Self, Problem> {
        if !takes(headers, EVENT_STREAM) {
            return Err(not_acceptable(EVENT_STREAM));
        }
        let mut params = Params::of(uri)?;
        let after = params.text("after")?;
        let start = cursor::requested(headers.get("last-event-id"), after.as_deref())?;
        let types = params.list("types")?;
        let state = params.text("state")?;
        params.finish()?;
        let filter = Filter { types, state, ..Filter::default() };
        Ok(Self { start, filter: filter.looks_inside().then_some(filter) })
    }
}

/// `GET /api/v1/threads/{thread}/stream`: all runs of a thread, for ever.
async fn thread(
    State(app): State<App>,
    PathId(thread): PathId<ThreadKind>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Asked { start, filter } = Asked::read(&uri, &headers)?;
    let place = app.open_stream()?;
    let follower = app.service().relay().follow(&thread, None, start).await?;
    let session = Session::new(thread.clone(), filter, follower.position());
    Ok(answer(app, follower, session, Until::Never, Followed::Thread(thread), place))
}

/// `GET /api/v1/runs/{run}/stream`: a run, to its end.
async fn run(
    State(app): State<App>,
    PathId(run): PathId<RunKind>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Asked { start, filter } = Asked::read(&uri, &headers)?;
    let place = app.open_stream()?;
    let service = app.service();
    let mut fold = service.fold(&run).await?;
    let follower = service.relay().follow(&fold.thread, Some(run.clone()), begin(start, &fold)).await?;
    if !fold.status.ended() && follower.position() > fold.last {
        // Something was written since its state was read: its end, perhaps, which would not be seen then.
        fold = service.fold(&run).await?;
    }
    if fold.status.ended() && follower.position() >= fold.last {
        // There is nothing more, and there will not be: a browser does not come back after this.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let mut session = Session::new(fold.thread, filter, follower.position());
    if fold.status.ended() {
        session.begins_over();
    }
    Ok(answer(app, follower, session, Until::Ended(run.clone()), Followed::Run(run), place))
}

/// A thread can have had records before the run's first one: they are not missed, whoever removed them.
fn begin(start: Start, fold: &RunFold) -> Start {
    let before = Seq(fold.first.0.saturating_sub(1));
    match start {
        Start::Beginning => Start::After(before),
        Start::After(after) => Start::After(after.max(before)),
        Start::Live => Start::Live,
    }
}

/// Answers a streamed turn: the records of the run that was just started, then `end`. It ends at a suspension too.
pub(super) async fn turn(app: App, started: Started, place: OpenStream) -> Result<Response, Problem> {
    let Started { run, thread, after, .. } = started;
    let follower = app.service().relay().follow(&thread, Some(run.clone()), Start::After(after)).await;
    let follower = follower.map_err(|error| Problem::from(error).with("run", run.as_str()))?;
    let session = Session::new(thread, None, after);
    Ok(answer(app, follower, session, Until::Rests(run.clone()), Followed::Run(run), place))
}

fn answer(
    app: App,
    mut follower: Follower,
    session: Session,
    until: Until,
    followed: Followed,
    place: OpenStream,
) -> Response {
    follower.take_about(DELIVERY_BYTES);
    let look = app.looks().follow(app.service(), followed);
    let stream = Stream { app, follower, session, until, place, look };
    let mut response = Response::new(Body::new(MadeBody::new(|out| stream.make(out))));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store, no-transform"));
    // For proxies of the nginx kind: pass it on as it comes.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use taffrail_relay::{MemoryStore, Relay};
    use taffrail_runs::{Config, Layout, Service};

    use super::*;
    use crate::http::HttpConfig;

    /// Ten thousand of them wait for hours.
    #[tokio::test]
    async fn a_stream_that_waits_is_small() {
        let dir = tempfile::tempdir().unwrap();
        let relay = Relay::start(Arc::new(MemoryStore::new()), taffrail_relay::Config::default()).unwrap();
        let layout = Layout::new(dir.path().join("data"));
        let service = Service::open(relay, Config::new(layout, dir.path().into(), dir.path().into())).unwrap();
        let app = App::new(service, HttpConfig::default());
        let thread = taffrail_mcp_core::ThreadId::new("t").unwrap();
        let follower = app.service().relay().follow(&thread, None, Start::Beginning).await.unwrap();
        let session = Session::new(thread.clone(), None, Seq::START);
        let look = app.looks().follow(app.service(), Followed::Thread(thread));
        let place = app.open_stream().unwrap();
        let stream = Stream { app, follower, session, until: Until::Never, place, look };
        let size = std::mem::size_of_val(&stream.make(body::Out::default()));
        assert!(size <= 2048, "{size} bytes");
    }
}

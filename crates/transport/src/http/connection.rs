//! One connection: HTTP/1.1 or HTTP/2, with its time limits.

use std::{
    convert::Infallible,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::http::Request;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::net::TcpStream;

use super::{
    HttpLimits,
    app::App,
    gate::{Ends, Gate},
    linger::Lingering,
    metrics::Metrics,
};

/// What hyper reads of a head before it gives up by itself. Above [`HttpLimits::head_bytes`], so that the gate can
/// answer in our words; what is beyond even that gets a bare 431.
const READ_MOST: usize = 256 * 1024;
/// Requests at once on one HTTP/2 connection.
const STREAMS_OF_ONE: u32 = 256;
/// After this silence an HTTP/2 client is asked whether it is still there, and gone if it does not say so in time.
const PING_EVERY: Duration = Duration::from_secs(30);
/// When the other machine vanishes without a word, the kernel finds out after this silence.
const PROBE_AFTER: Duration = Duration::from_secs(60);

/// How connections are served; the same for all.
pub(super) fn builder(limits: &HttpLimits) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_time)
        .max_buf_size(READ_MOST.max(limits.head_bytes));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_OF_ONE)
        .max_header_list_size(u32::try_from(READ_MOST.max(limits.head_bytes)).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    builder
}

/// Serves one connection to its end. When the server begins to shut down it ends with the requests that are under way.
pub(super) async fn serve(stream: TcpStream, app: &App, gate: &Gate, builder: &Builder<TokioExecutor>, ends: Ends) {
    tune(&stream);
    let _counted = Counted::new(app.metrics());
    let closing = app.closing();
    let begun = Arc::new(AtomicBool::new(false));
    let service = {
        let (begun, gate) = (Arc::clone(&begun), gate.clone());
        service_fn(move |request: Request<Incoming>| {
            begun.store(true, Ordering::Relaxed);
            // HTTP/2 answers several at once, each in a task of its own.
            let gate = gate.clone();
            async move { Ok::<_, Infallible>(gate.handle(request, ends).await) }
        })
    };
    let mut serving = pin!(builder.serve_connection(TokioIo::new(Lingering::new(stream)), service));
    // hyper's own limit begins when it knows which HTTP it is; who never says that is not held for ever.
    let served = tokio::select! {
        served = serving.as_mut() => Some(served),
        () = never_began(app.config().limits.head_time, &begun) => {
            tracing::debug!(remote = %ends.remote, "a connection without a request is closed");
            return;
        }
        () = closing.cancelled() => None,
    };
    let served = match served {
        Some(served) => served,
        None => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        // Clients that go away, and what is no HTTP.
        tracing::debug!(remote = %ends.remote, %error, "a connection ended");
    }
}

/// Resolves when no request has come in time.
async fn never_began(within: Duration, begun: &AtomicBool) {
    tokio::time::sleep(within).await;
    if begun.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}

fn tune(stream: &TcpStream) {
    // Small answers leave at once.
    let _ = stream.set_nodelay(true);
    use rustix::net::sockopt;
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, PROBE_AFTER);
}

/// A connection among those that are open.
struct Counted<'a>(&'a Metrics);

impl<'a> Counted<'a> {
    fn new(metrics: &'a Metrics) -> Self {
        metrics.connections.inc();
        Self(metrics)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.connections.dec();
    }
}

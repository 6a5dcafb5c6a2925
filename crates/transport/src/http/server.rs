//! The server: accepts connections, and ends in good order.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{body::Body, http::Request, response::Response};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use taffrail_runs::Service;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpSocket, TcpStream},
    sync::Semaphore,
};
use tokio_util::task::TaskTracker;

use super::{
    HttpConfig,
    app::App,
    code::Code,
    connection,
    gate::{Ends, Gate},
    linger,
    problem::Problem,
    router,
};

/// Connections that may wait to be accepted: some thousand subscribers that come back at once after a restart. The
/// kernel's own limit (`net.core.somaxconn`) is 4096.
const BACKLOG: u32 = 4096;
/// Pause after the system had no descriptor left for another connection.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(50);
/// Why the server cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Somebody else listens there.
    #[error("{addr} is in use, perhaps by another `taffrail serve`: end that one, or listen elsewhere with --listen")]
    InUse {
        /// The address.
        addr: SocketAddr,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Without a token, on an address that others reach.
    #[error(
        "{addr} can be reached from other machines: without a token everybody there could run commands here; listen on \
         127.0.0.1, or leave --no-auth out"
    )]
    OpenToAll {
        /// The address.
        addr: SocketAddr,
    },
}

/// The whole HTTP surface as a [`tower::Service`], for a server of one's own.
///
/// A clone is the same surface. Streams end when [`HttpService::close`] is called.
#[derive(Clone)]
pub struct HttpService {
    app: App,
    gate: Gate,
}

impl HttpService {
    /// Serves `service`.
    pub fn new(service: Service, config: HttpConfig) -> Self {
        let app = App::new(service, config);
        let gate = Gate::new(app.clone(), router::router(app.clone()));
        Self { app, gate }
    }

    /// Begins to shut down: streams and waits end, new requests are still answered.
    pub fn close(&self) {
        self.app.closing().cancel();
    }

    /// The paths of its routes, as templates.
    pub fn routes(&self) -> &'static [&'static str] {
        &super::paths::ALL
    }

    /// Makes the path and query of the URL that signs a browser in once; the last one no longer works. `None` where
    /// nobody need sign in.
    pub fn sign_in_path(&self) -> Option<String> {
        self.app.keys().new_code().map(|code| format!("{}?code={code}", super::paths::LOGIN))
    }
}

impl<B> tower::Service<Request<B>> for HttpService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response;
    type Error = std::convert::Infallible;
    type Future = BoxFuture<'static, Result<Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let gate = self.gate.clone();
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let ends = request.extensions().get::<Ends>().copied().unwrap_or(Ends { remote: unknown, local: unknown });
        Box::pin(async move { Ok(gate.handle(request, ends).await.map(Body::new)) })
    }
}

/// A server that is bound to an address and not yet serving.
pub struct HttpServer {
    listener: TcpListener,
    local: SocketAddr,
    service: HttpService,
}

impl HttpServer {
    /// Binds `addr`; connections wait from then on until [`HttpServer::serve`] takes them. Port 0 is one that is free.
    ///
    /// # Errors
    ///
    /// [`HttpError`] when the address cannot be had, or others could reach a server without a token there.
    pub fn bind(service: Service, config: HttpConfig, addr: SocketAddr) -> Result<Self, HttpError> {
        if config.token.is_none() && !addr.ip().to_canonical().is_loopback() {
            return Err(HttpError::OpenToAll { addr });
        }
        let listener = listen(addr).map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => HttpError::InUse { addr },
            _ => HttpError::Listen { addr, source },
        })?;
        let local = listener.local_addr().map_err(|source| HttpError::Listen { addr, source })?;
        Ok(Self { listener, local, service: HttpService::new(service, config) })
    }

    /// The address it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Where it is reached: the public URL, or that of its address.
    pub fn url(&self) -> String {
        let public = self.service.app.config().public_url.as_ref().map(ToString::to_string);
        let url = public.unwrap_or_else(|| format!("http://{}", reachable(self.local)));
        url.trim_end_matches('/').to_owned()
    }

    /// The URL that signs a browser in once; without a code where nobody need sign in.
    pub fn sign_in_url(&self) -> String {
        let path = self.service.sign_in_path().unwrap_or_else(|| super::paths::PAGE.to_owned());
        format!("{}{path}", self.url())
    }

    /// Serves until `shutdown` resolves and what is under way has ended: no more connections are taken then, streams
    /// and waits end, and requests have the grace of [`HttpLimits`](super::HttpLimits). The [`Service`] stays open:
    /// closing it is the caller's business. Dropping the future cuts everything off.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, local: _, service: HttpService { app, gate } } = self;
        let limits = &app.config().limits;
        let (closing, cut) = (app.closing(), app.cut());
        let _cut_when_dropped = cut.clone().drop_guard();
        let places = Arc::new(Semaphore::new(limits.connections.min(Semaphore::MAX_PERMITS)));
        let builder = Arc::new(connection::builder(limits));
        let full: Arc<str> = full(limits.connections).into();
        let tasks = TaskTracker::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let (stream, remote) = tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        if !is_of_one_connection(&error) {
                            tracing::warn!(%error, "a connection could not be accepted");
                            tokio::time::sleep(OUT_OF_DESCRIPTORS).await;
                        }
                        continue;
                    }
                },
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                tasks.spawn(turn_away(stream, Arc::clone(&full)));
                continue;
            };
            let local = stream.local_addr().unwrap_or(remote);
            let (app, gate, builder, cut) = (app.clone(), gate.clone(), Arc::clone(&builder), cut.clone());
            tasks.spawn(async move {
                let serving = connection::serve(stream, &app, &gate, &builder, Ends { remote, local });
                let _place = place;
                tokio::select! {
                    () = serving => {}
                    () = cut.cancelled() => {}
                }
            });
        }
        drop(listener);
        closing.cancel();
        tasks.close();
        if tokio::time::timeout(limits.grace, tasks.wait()).await.is_err() {
            tracing::warn!(left = tasks.len(), "requests are cut off: they did not end in time");
            cut.cancel();
            tasks.wait().await;
        }
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // So that a server can start again while connections of the last one linger.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// Whether only the connection that came failed, and the next one may be accepted at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// What a client gets that is one too many. Whatever it wants cannot be had, so nothing of it is read.
fn full(most: usize) -> String {
    let detail = format!("{most} connections are open, as many as this server takes: try again in a moment");
    let problem = Problem::new(Code::TooManyConnections, detail);
    // Like every problem, it has only fields that become JSON.
    let body = serde_json::to_string(&problem).unwrap_or_default();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-type: \
         application/problem+json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn turn_away(mut stream: TcpStream, told: Arc<str>) {
    // A new connection has room for it.
    if stream.write_all(told.as_bytes()).await.is_ok() {
        linger::drain(stream).await;
    }
}

/// An address that a browser on this machine can open.
fn reachable(local: SocketAddr) -> SocketAddr {
    let mut addr = local;
    if local.ip().is_unspecified() {
        addr.set_ip(if local.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    addr
}

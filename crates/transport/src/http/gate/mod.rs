//! The gate: what every request passes before and after the router.
//!
//! One function, in order: is the head of a sane size, is it us who are meant (`Host`), may its page ask (`Origin`), is
//! it one request too many, who asks. Then the router, within a time limit; a panic is an answer. The response is
//! counted and logged when its body ends.

mod auth;
mod hosts;
mod rate;
mod told;

use std::{
    net::SocketAddr,
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::MatchedPath,
    http::{HeaderMap, Method, Request, Uri},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::time::Instant;
use tower::Service as _;

pub(crate) use self::{
    auth::{Keys, Principal},
    hosts::Hosts,
    rate::Rates,
    told::Told,
};
use super::{app::App, code::Code, paths, problem::Problem};

/// The two ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    /// Who connected.
    pub(crate) remote: SocketAddr,
    /// What they connected to.
    pub(crate) local: SocketAddr,
}

/// Where the router leaves which route it chose.
#[derive(Clone, Default)]
struct Chosen(Arc<OnceLock<&'static str>>);

/// The gate and what is behind it. A clone is the same.
#[derive(Clone)]
pub(crate) struct Gate {
    app: App,
    router: Router,
}

impl Gate {
    pub(crate) fn new(app: App, router: Router) -> Self {
        Self { app, router: router.layer(tower::util::MapRequestLayer::new(note_route)) }
    }

    /// Answers a request.
    pub(crate) async fn handle<B>(&self, request: Request<B>, ends: Ends) -> Response<Told>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let started = Instant::now();
        let method = request.method().clone();
        let remote = self.app.hosts().client(request.headers(), ends);
        let chosen = Chosen::default();
        let mut principal = None;
        let response = match self.admit(request.method(), request.uri(), request.headers(), ends, remote) {
            Ok(admitted) => {
                principal = admitted;
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(admitted.unwrap_or(Principal::Nobody));
                request.extensions_mut().insert(chosen.clone());
                self.route(request).await
            }
            Err(problem) => {
                self.app.metrics().refused(problem.code());
                problem.into_response()
            }
        };
        let route = chosen.0.get().copied().unwrap_or("none");
        let told = |body| Told::new(body, self.app.clone(), route, method, started, principal, remote);
        told::respond(response, told)
    }

    /// Decides whether the router sees a request. `None`: nobody in particular asks, for what needs nobody.
    fn admit(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        ends: Ends,
        remote: std::net::IpAddr,
    ) -> Result<Option<Principal>, Problem> {
        self.measure(uri, headers)?;
        let host = self.app.hosts().check_host(uri, headers, ends)?;
        self.app.hosts().check_origin(headers, &host)?;
        self.app.rates().admit(remote)?;
        if paths::OPEN.contains(&uri.path()) {
            return Ok(None);
        }
        self.app.keys().principal(method, headers).map(Some)
    }

    /// Refuses a head that is too large.
    fn measure(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let most = self.app.config().limits.head_bytes;
        let fields: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
        if fields + target <= most {
            return Ok(());
        }
        let detail = format!("the request's head is larger than {most} bytes, the most that is taken: send less in it");
        Err(Problem::new(Code::HeadTooLarge, detail).with("limit", most))
    }

    /// Lets the router answer, within the time limit.
    async fn route(&self, request: Request<Body>) -> Response {
        let limit = self.app.config().limits.request_time;
        let answering = AssertUnwindSafe(self.router.clone().call(request)).catch_unwind();
        match tokio::time::timeout(limit, answering).await {
            Ok(Ok(Ok(response))) => response,
            Ok(Ok(Err(never))) => match never {},
            Ok(Err(_panic)) => {
                tracing::error!("a request ended in a panic");
                Problem::internal().into_response()
            }
            Err(_) => too_slow(limit).into_response(),
        }
    }
}

fn too_slow(limit: Duration) -> Problem {
    let detail =
        format!("the request did not arrive, or was not answered, within {limit:?}; it may have been carried out");
    Problem::new(Code::TooSlow, detail)
}

/// Tells the gate which route was chosen.
fn note_route(request: Request<Body>) -> Request<Body> {
    if let (Some(chosen), Some(path)) =
        (request.extensions().get::<Chosen>(), request.extensions().get::<MatchedPath>())
    {
        let known = paths::ALL.into_iter().find(|known| *known == path.as_str());
        // Only ever set here, once a request.
        let _ = chosen.0.set(known.unwrap_or("other"));
    }
    request
}

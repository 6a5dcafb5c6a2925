//! The gate: what every request passes before and after the router.
//!
//! One function, in order: is the head of a sane size, is it us who are meant (`Host`), may its page ask (`Origin`), is
//! it one request too many, who asks. Then the router, within a time limit; a panic is an answer. The response is
//! counted and logged when its body ends.

mod auth;
mod hosts;
mod pages;
mod rate;
mod told;

use std::{
    net::{IpAddr, SocketAddr},
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::MatchedPath,
    http::{HeaderMap, HeaderValue, Method, Request, Uri},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::FutureExt as _;
use tower::Service as _;

use self::told::Account;
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
        let method = request.method().clone();
        let remote = self.app.hosts().client(request.headers(), ends);
        let mut account = Account::new(self.app.clone(), method.clone(), remote);
        let (response, page) = match self.known(request.uri(), request.headers(), ends) {
            Ok(page) if page.is_some() && pages::only_asks(&method, request.headers()) => (pages::may_ask(), page),
            Ok(page) => match self.admit(&method, request.uri(), request.headers(), remote) {
                Ok(principal) => {
                    account.principal = principal;
                    let mut request = request.map(Body::new);
                    request.extensions_mut().insert(principal);
                    request.extensions_mut().insert(account.chosen.clone());
                    (self.route(request).await, page)
                }
                Err(problem) => (self.refuse(problem), page),
            },
            Err(problem) => (self.refuse(problem), None),
        };
        let mut response = account.respond(response);
        if let Some(origin) = page {
            pages::let_read(&mut response, origin);
        }
        response
    }

    /// Decides whether somebody may speak to this server at all. Gives the origin of a page that was allowed to.
    fn known(&self, uri: &Uri, headers: &HeaderMap, ends: Ends) -> Result<Option<HeaderValue>, Problem> {
        self.measure(uri, headers)?;
        let host = self.app.hosts().check_host(uri, headers, ends)?;
        self.app.hosts().check_origin(headers, host)
    }

    /// Decides who asks, and whether they may.
    fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap, remote: IpAddr) -> Result<Principal, Problem> {
        self.app.rates().admit(remote)?;
        match paths::OPEN.contains(&uri.path()) {
            true => Ok(Principal::Nobody),
            false => self.app.keys().principal(method, headers),
        }
    }

    fn refuse(&self, problem: Problem) -> Response {
        self.app.metrics().refused(problem.code());
        problem.into_response()
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

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use http_body_util::BodyExt as _;
    use taffrail_relay::{MemoryStore, Relay};
    use taffrail_runs::{Config, Layout, Service};
    use tokio::time::Instant;

    use super::*;
    use crate::http::HttpConfig;

    /// A gate before routes that misbehave.
    fn gate(dir: &std::path::Path) -> Gate {
        let relay = Relay::start(Arc::new(MemoryStore::new()), Default::default()).unwrap();
        let config = Config::new(Layout::new(dir), dir.to_owned(), dir.to_owned());
        let app = App::new(Service::open(relay, config).unwrap(), HttpConfig::default());
        let panics = async || -> &'static str { panic!("as tests do") };
        let never = async || -> &'static str { std::future::pending().await };
        Gate::new(app, Router::new().route("/panics", get(panics)).route("/never", get(never)))
    }

    async fn ask(gate: &Gate, path: &str) -> (u16, serde_json::Value) {
        let request = Request::builder().uri(path).header("host", "localhost").body(Body::empty()).unwrap();
        let here = SocketAddr::from(([127, 0, 0, 1], 1));
        let response = gate.handle(request, Ends { remote: here, local: here }).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let gate = gate(dir.path());
        for _ in 0..2 {
            let (status, problem) = ask(&gate, "/panics").await;
            assert_eq!((status, &problem["code"]), (500, &"internal".into()));
            assert!(!problem.to_string().contains("as tests do"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_never_comes_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let gate = gate(dir.path());
        let begun = Instant::now();
        let (status, problem) = ask(&gate, "/never").await;
        assert_eq!((status, &problem["code"]), (408, &"too-slow".into()));
        assert_eq!(begun.elapsed(), gate.app.config().limits.request_time);
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_is_told_of() {
        let dir = tempfile::tempdir().unwrap();
        let gate = gate(dir.path());
        let mut asking = Box::pin(ask(&gate, "/never"));
        assert!(futures_util::poll!(asking.as_mut()).is_pending());
        drop(asking);
        let told = gate.app.metrics().text(true, 0);
        assert!(
            told.contains("taffrail_http_requests_total{route=\"other\",method=\"GET\",status=\"499\"} 1"),
            "{told}"
        );
    }
}

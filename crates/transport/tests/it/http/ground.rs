//! A service with playbooks, and its HTTP surface.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, Method, Request, StatusCode},
};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use taffrail_mcp_core::RunId;
use taffrail_relay::{MemoryStore, Relay, Store};
use taffrail_runs::{Config, Layout, Service, Until};
use taffrail_transport::http::{HttpConfig, HttpServer, HttpService, OperatorToken};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};
use tower::ServiceExt as _;

/// No single step takes longer, also on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// The operator's token of every ground.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

const PLAYBOOKS: [(&str, &str); 4] = [
    (
        "lines",
        "playbook: lines\ninputs:\n  n: { type: integer, default: 3 }\nstates:\n  say:\n    exec: [seq, \"{{ inputs.n }}\"]\n",
    ),
    ("wait", "playbook: wait\nstates:\n  wait: { exec: [sleep, \"100\"] }\n"),
    (
        "gate",
        "playbook: gate\nstates:\n  agree:\n    approve: Go on?\n    by: human\n    gates:\n      \
         - { when: approval.decision == \"approve\", then: ok, to: last }\n      - { when: otherwise, then: fail }\n  \
         last: { exec: [\"true\"] }\n",
    ),
    (
        "ask",
        "playbook: ask\nstates:\n  region:\n    ask: Which?\n    schema: { type: object, properties: { r: { type: string, enum: [eu, us] } }, required: [r] }\n",
    ),
];

/// A service on a store in memory.
pub(crate) struct Ground {
    pub(crate) dir: TempDir,
    pub(crate) service: Service,
    pub(crate) http: HttpService,
}

impl Ground {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut HttpConfig)) -> Self {
        Self::on(Arc::new(MemoryStore::new()), change)
    }

    pub(crate) fn on(store: Arc<dyn Store>, change: impl FnOnce(&mut HttpConfig)) -> Self {
        let (dir, service) = service(store);
        let http = HttpService::new(service.clone(), config(change));
        Self { dir, service, http }
    }

    /// A request with the operator's token, and what comes back.
    pub(crate) async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Body) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost:7433");
        if !headers.iter().any(|(name, _)| matches!(*name, "authorization" | "cookie")) {
            request = request.header("authorization", format!("Bearer {TOKEN}"));
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            if *name == "host" {
                request.headers_mut().unwrap().remove("host");
            }
            request = request.header(*name, *value);
        }
        let response = self.http.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status, headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], Body::empty()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[("content-type", "application/json")], Body::from(body.to_string())).await
    }

    /// Starts a playbook, and gives its run.
    pub(crate) async fn start(&self, playbook: &str) -> RunId {
        let answer = self.post("/api/v1/threads/t/runs", json!({ "playbook": playbook })).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
        RunId::new(answer.json()["run"].as_str().unwrap()).unwrap()
    }

    /// Starts a playbook, and waits until it rests.
    pub(crate) async fn run(&self, playbook: &str) -> RunId {
        let run = self.start(playbook).await;
        self.wait(&run, Until::Settled).await;
        run
    }

    /// The last position of its log.
    pub(crate) async fn head(&self, run: &RunId) -> u64 {
        self.service.snapshot(run).await.unwrap().head.0
    }

    pub(crate) async fn wait(&self, run: &RunId, until: Until) {
        tokio::time::timeout(SOON, self.service.wait(run, until)).await.expect("waited too long").unwrap();
    }
}

/// A service on a store, in a data directory of its own.
pub(crate) fn service(store: Arc<dyn Store>) -> (TempDir, Service) {
    let dir = tempfile::tempdir().unwrap();
    let playbooks = dir.path().join("playbooks");
    std::fs::create_dir(&playbooks).unwrap();
    for (name, text) in PLAYBOOKS {
        std::fs::write(playbooks.join(format!("{name}.yaml")), text).unwrap();
    }
    let relay = Relay::start(store, Default::default()).unwrap();
    let config = Config::new(Layout::new(dir.path()), playbooks, dir.path().to_owned());
    let service = Service::open(relay, Config { grace: Duration::from_millis(500), ..config }).unwrap();
    (dir, service)
}

pub(crate) fn config(change: impl FnOnce(&mut HttpConfig)) -> HttpConfig {
    let mut config = HttpConfig { token: Some(OperatorToken::new(TOKEN).unwrap()), ..HttpConfig::default() };
    change(&mut config);
    config
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {self:?}")).to_str().unwrap()
    }

    /// A problem with this status and code; gives its detail.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        let body = self.json();
        assert_eq!((&body["code"], &body["status"]), (&json!(code), &json!(status)), "{body}");
        assert_eq!(body["type"], format!("urn:taffrail:problem:{code}"));
        assert!(!body["title"].as_str().unwrap().is_empty());
        body["detail"].as_str().unwrap().to_owned()
    }
}

/// A server on a free port.
pub(crate) struct Serving {
    _dir: TempDir,
    pub(crate) service: Service,
    pub(crate) addr: SocketAddr,
    pub(crate) sign_in: String,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl Serving {
    pub(crate) fn with(change: impl FnOnce(&mut HttpConfig)) -> Self {
        let (dir, service) = service(Arc::new(MemoryStore::new()));
        let server = HttpServer::bind(service.clone(), config(change), ([127, 0, 0, 1], 0).into()).unwrap();
        let (addr, sign_in) = (server.local_addr(), server.sign_in_url());
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(server.serve(async { _ = stopped.await }));
        Self { _dir: dir, service, addr, sign_in, stop: Some(stop), task: Some(task) }
    }

    /// Asks the server to end.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the server has ended.
    pub(crate) async fn ended(&mut self) {
        let task = self.task.take().unwrap();
        tokio::time::timeout(SOON, task).await.expect("the server did not end").unwrap();
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire(TcpStream::connect(self.addr).await.unwrap())
    }

    /// A request on a connection of its own, and all that comes back.
    pub(crate) async fn ask(&self, request: &str) -> String {
        let mut wire = self.connect().await;
        wire.send(&request.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")).await;
        wire.rest().await
    }
}

/// The head of a request with the operator's token, without its end.
pub(crate) fn head(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n")
}

/// A connection, byte by byte.
pub(crate) struct Wire(pub(crate) TcpStream);

impl Wire {
    pub(crate) async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until what was read ends the search.
    pub(crate) async fn until(&mut self, found: impl Fn(&str) -> bool) -> String {
        let mut text = String::new();
        let reading = async {
            let mut part = [0; 16 * 1024];
            while !found(&text) {
                match self.0.read(&mut part).await {
                    Ok(0) => break,
                    Ok(length) => text.push_str(&String::from_utf8_lossy(&part[..length])),
                    Err(error) => panic!("{error} after {text}"),
                }
            }
        };
        let in_time = tokio::time::timeout(SOON, reading).await;
        assert!(in_time.is_ok() && found(&text), "not found in {text}");
        text
    }

    /// Reads to the end of the connection.
    pub(crate) async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(SOON, self.0.read_to_end(&mut bytes)).await;
        read.expect("the connection stays open").unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

//! A server on a socket of its own, and clients of it.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use taffrail_mcp_core::RunId;
use taffrail_relay::{MemoryStore, Relay, Store};
use taffrail_runs::{Config, Layout, Service};
use taffrail_transport::http::{HttpConfig, HttpLimits, HttpServer};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};

/// Far longer than anything here takes: a test that waits so long has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server with its own store and data directory.
pub(crate) struct Web {
    pub(crate) service: Service,
    pub(crate) client: Client,
    pub(crate) url: String,
    stop: Option<oneshot::Sender<()>>,
    serving: Option<JoinHandle<()>>,
    _dir: TempDir,
}

/// A configuration for tests: anybody may ask, as often as they like.
pub(crate) fn config() -> HttpConfig {
    HttpConfig { limits: HttpLimits { requests_per_second: 0, ..HttpLimits::default() }, ..HttpConfig::default() }
}

/// A client; those made with `h2` speak HTTP/2 without asking first.
pub(crate) fn client(h2: bool) -> Client {
    // The second one fails, and finds the first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder().no_proxy();
    if h2 { builder.http2_prior_knowledge() } else { builder }.build().unwrap()
}

impl Web {
    pub(crate) fn start() -> Self {
        Self::with(config())
    }

    pub(crate) fn with(config: HttpConfig) -> Self {
        Self::on(Arc::new(MemoryStore::new()), config)
    }

    pub(crate) fn on(store: Arc<dyn Store>, config: HttpConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let relay = Relay::start(store, taffrail_relay::Config::default()).unwrap();
        let playbooks = dir.path().join("playbooks");
        std::fs::create_dir(&playbooks).unwrap();
        let layout = Layout::new(dir.path().join("data"));
        let service = Service::open(relay, Config::new(layout, playbooks, dir.path().to_owned())).unwrap();
        let server = HttpServer::bind(service.clone(), config, ([127, 0, 0, 1], 0).into()).unwrap();
        let url = format!("http://{}", server.local_addr());
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        let (stop, serving) = (Some(stop), Some(serving));
        Self { service, client: client(false), url, stop, serving, _dir: dir }
    }

    /// Writes a playbook.
    pub(crate) fn playbook(&self, name: &str, text: &str) {
        std::fs::write(self.service.config().playbooks.join(format!("{name}.yaml")), text).unwrap();
    }

    /// Begins to shut down.
    pub(crate) fn stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// Shuts down, and waits until that is done.
    pub(crate) async fn stopped(&mut self) {
        if self.stop.is_some() {
            self.stop();
        }
        timeout(PATIENCE, self.serving.take().unwrap()).await.unwrap().unwrap();
    }

    /// A request with a JSON body.
    pub(crate) fn posting(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        let request = self.client.post(format!("{}{path}", self.url));
        request.header("content-type", "application/json").body(body.to_string())
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        let response = self.posting(path, &body).send().await.unwrap();
        (response.status(), json_of(response).await)
    }

    /// Starts a run that lives elsewhere.
    pub(crate) async fn external(&self, thread: &str) -> RunId {
        let path = format!("/api/v1/threads/{thread}/runs");
        let (status, snapshot) = self.post(&path, json!({"external": true, "name": "test"})).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{snapshot}");
        RunId::new(snapshot["run"].as_str().unwrap()).unwrap()
    }

    /// Sends a body of events.
    pub(crate) async fn events(&self, run: &RunId, body: impl Into<reqwest::Body>) -> (StatusCode, Value) {
        self.events_of(run, None, body).await
    }

    /// Sends a body of events of a producer.
    pub(crate) async fn events_of(
        &self,
        run: &RunId,
        producer: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> (StatusCode, Value) {
        let request = self.client.post(format!("{}/api/v1/runs/{run}/events", self.url));
        let request = request.header("content-type", "application/x-ndjson").body(body);
        let request = match producer {
            Some(producer) => request.header("taffrail-producer", producer),
            None => request,
        };
        let response = timeout(PATIENCE, request.send()).await.unwrap().unwrap();
        (response.status(), json_of(response).await)
    }

    /// Asks for a path.
    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        let mut request = self.client.get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        timeout(PATIENCE, request.send()).await.unwrap().unwrap()
    }

    /// A mistake, as it is answered.
    pub(crate) async fn mistake(&self, path: &str, headers: &[(&str, &str)]) -> (u16, Value) {
        let response = self.get(path, headers).await;
        assert_eq!(response.headers()["content-type"], "application/problem+json");
        (response.status().as_u16(), json_of(response).await)
    }
}

/// What was answered, null when that is not JSON.
pub(crate) async fn json_of(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default()
}

/// The `run-finished` of an external run, as its producer sends it.
pub(crate) fn finished(status: &str) -> String {
    json!({
        "type": "run-finished", "machine": "test", "depth": 0, "status": status, "error": null, "at": null,
        "usage": {"steps": 0, "wall_ms": 1, "log_lines": 0, "log_bytes": 0, "clipped_lines": 0, "clipped_bytes": 0},
    })
    .to_string()
}

/// `count` events of a body, one a line.
pub(crate) fn lines(range: std::ops::Range<u64>) -> String {
    range.map(|n| format!("{{\"type\":\"n\",\"n\":{n}}}\n")).collect()
}

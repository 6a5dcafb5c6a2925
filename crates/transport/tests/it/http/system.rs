//! Health, metrics, the page, the keys.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use taffrail_mcp_core::{BoxFuture, RunFold, RunId, Seq, ThreadId};
use taffrail_relay::{
    Append, Appended, Block, Extent, ListRuns, MemoryStore, ReadBlocks, Store, StoreError, ThreadUsage, Trimmed,
};
use taffrail_transport::http::{CommitMeter, MeasuredStore};

use super::ground::Ground;

#[tokio::test]
async fn a_server_in_good_order_is_ready() {
    let ground = Ground::with(|config| config.data_dir = Some(std::env::temp_dir()));
    assert_eq!(ground.get("/healthz").await.json(), json!({"status": "ok"}));
    let ready = ground.get("/readyz").await;
    let checks = json!({"store": "ok", "writer": "ok", "disk": "ok", "open": "ok"});
    assert_eq!((ready.status.as_u16(), ready.json()), (200, json!({"status": "ok", "checks": checks})));
    ground.http.close();
    let closing = ground.get("/readyz").await;
    assert!(closing.problem(503, "unavailable").contains("shutting down"));
    assert_eq!(ground.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_full_disk_is_not_ready() {
    let ground = Ground::with(|config| {
        config.data_dir = Some(std::env::temp_dir());
        config.limits.disk_floor_bytes = u64::MAX;
    });
    let full = ground.get("/readyz").await;
    assert!(full.problem(503, "unavailable").contains("free some space"));
    assert_eq!(full.json()["checks"]["store"], "ok");
    assert_eq!(full.header("retry-after"), "1");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_answer_is_not_ready() {
    let stuck = Stuck::default();
    let ground = Ground::on(Arc::new(stuck.clone()), |_| {});
    assert_eq!(ground.get("/readyz").await.status, 200);
    stuck.0.store(true, Ordering::Relaxed);
    let answer = ground.get("/readyz").await;
    assert_eq!(answer.json()["checks"]["store"], "the store does not answer within 2s");
    answer.problem(503, "unavailable");
}

#[tokio::test]
async fn metrics_tell_what_happened() {
    let commits = CommitMeter::default();
    let store = MeasuredStore::new(Arc::new(MemoryStore::new()), commits.clone());
    let ground = Ground::on(Arc::new(store), |config| config.commits = commits);
    let run = ground.run("lines").await;
    ground.get(&format!("/api/v1/runs/{run}/events")).await;
    ground.get("/api/v1/runs/none").await;
    ground.get("/nope/at/all").await;
    ground.send(axum::http::Method::GET, "/", &[("host", "evil.example")], axum::body::Body::empty()).await;
    let answer = ground.get("/metrics").await;
    assert!(answer.header("content-type").starts_with("application/openmetrics-text; version=1.0.0"));
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let records = ground.service.logs(&run, Default::default()).await.unwrap().lines.len();
    for line in [
        format!("taffrail_events_committed_total {records}"),
        "taffrail_http_requests_total{route=\"/api/v1/runs/{run}/events\",method=\"GET\",status=\"200\"} 1".into(),
        "taffrail_http_requests_total{route=\"/api/v1/runs/{run}\",method=\"GET\",status=\"404\"} 1".into(),
        "taffrail_http_requests_total{route=\"none\",method=\"GET\",status=\"404\"} 1".into(),
        "taffrail_http_refused_total{code=\"unknown-host\"} 1".into(),
        "taffrail_store_healthy 1".into(),
        "taffrail_followers 0".into(),
        "# EOF".into(),
    ] {
        assert!(text.lines().any(|told| told == line), "{line} in\n{text}");
    }
    for name in [
        "taffrail_blocks_committed_total",
        "taffrail_committed_bytes_total",
        "taffrail_commit_duration_seconds_bucket",
        "taffrail_http_request_duration_seconds_sum",
        "taffrail_spool_bytes",
        "taffrail_follower_lag_most_records",
    ] {
        assert!(text.contains(name), "{name}");
    }
    assert!(!text.contains(run.as_str()), "ids are not labels");
}

#[tokio::test]
async fn the_page_is_whole_and_holds_nothing() {
    let ground = Ground::new();
    let page = ground.get("/").await;
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(page.header("content-type").starts_with("text/html"));
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    // Nothing of it needs what the policy forbids, or another server.
    for forbidden in ["http:", "https:", "//", "<style", "onclick", " style="] {
        assert!(!text.contains(forbidden), "{forbidden}");
    }
    let scripts: Vec<_> = text.match_indices("<script").collect();
    assert!(scripts.len() == 1 && text.contains("<script src=\"app.js\" defer></script>"));
    let script = ground.get("/app.js").await;
    assert!(script.header("content-type").starts_with("text/javascript"));
    let script = String::from_utf8(script.body.to_vec()).unwrap();
    assert!(!script.contains("innerHTML") && !script.contains("http:"));
    assert_eq!(ground.get("/.well-known/jwks.json").await.json(), json!({"keys": []}));
}

/// A store that stops answering.
#[derive(Clone, Default)]
struct Stuck(Arc<AtomicBool>, Arc<MemoryStore>);

impl Store for Stuck {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        self.1.append(group)
    }
    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        self.1.read(query)
    }
    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        if self.0.load(Ordering::Relaxed) {
            return Box::pin(async {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Err(StoreError::Closed)
            });
        }
        self.1.extent(thread)
    }
    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        self.1.run(run)
    }
    fn runs(&self, query: ListRuns) -> BoxFuture<'static, Result<Vec<RunFold>, StoreError>> {
        self.1.runs(query)
    }
    fn claim(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        self.1.claim(key)
    }
    fn threads(&self) -> BoxFuture<'static, Result<Vec<ThreadUsage>, StoreError>> {
        self.1.threads()
    }
    fn trim(&self, thread: ThreadId, through: Seq) -> BoxFuture<'static, Result<Trimmed, StoreError>> {
        self.1.trim(thread, through)
    }
    fn forget(&self, run: RunId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.1.forget(run)
    }
    fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.1.changes()
    }
}

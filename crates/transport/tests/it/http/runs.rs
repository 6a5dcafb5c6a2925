//! Runs over REST: started, listed, waited for, decided, resumed, cancelled.

use axum::{body::Body, http::Method};
use serde_json::json;
use taffrail_mcp_core::Snapshot;
use taffrail_runs::Until;
use tokio::time::Instant;

use super::ground::{Ground, SOON};

#[tokio::test]
async fn a_start_answers_with_the_snapshot_and_where_to_ask_again() {
    let ground = Ground::new();
    let started = ground.post("/api/v1/threads/mine/runs", json!({"playbook": "lines", "inputs": {"n": 2}})).await;
    assert_eq!(started.status, 202);
    let body = started.json();
    assert_eq!((&body["thread"], &body["playbook"]), (&json!("mine"), &json!("lines")));
    let url = body["status_url"].as_str().unwrap().to_owned();
    assert_eq!(url, format!("/api/v1/runs/{}", body["run"].as_str().unwrap()));
    assert_eq!(started.header("location"), url);
    let run = taffrail_mcp_core::RunId::new(body["run"].as_str().unwrap()).unwrap();
    ground.wait(&run, Until::Ended).await;
    let asked = ground.get(&url).await;
    let snapshot: Snapshot = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!((snapshot.usage.log_lines, snapshot.status.as_str(), snapshot.spool), (2, "done", None));
}

#[tokio::test]
async fn a_repeated_start_with_a_key_is_one_run() {
    let ground = Ground::new();
    let body = json!({"playbook": "lines", "idempotency_key": "k"});
    let one = ground.post("/api/v1/threads/t/runs", body.clone()).await.json();
    let other = ground.post("/api/v1/threads/t/runs", body).await.json();
    assert_eq!(one["run"], other["run"]);
    let reused = ground.post("/api/v1/threads/t/runs", json!({"playbook": "wait", "idempotency_key": "k"})).await;
    reused.problem(409, "key-reused");
}

#[tokio::test]
async fn an_external_run_waits_for_its_events() {
    let ground = Ground::new();
    let started = ground.post("/api/v1/threads/t/runs", json!({"external": true, "name": "build"})).await;
    assert_eq!(started.status, 202, "{started:?}");
    let body = started.json();
    assert_eq!((&body["playbook"], &body["status"]), (&json!("build"), &json!("running")));
}

#[tokio::test]
async fn the_list_goes_on_page_by_page() {
    let ground = Ground::new();
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(ground.run("lines").await.to_string());
    }
    runs.reverse();
    let mut seen = Vec::new();
    let mut path = "/api/v1/runs?limit=2&status=done,halt&thread=t".to_owned();
    loop {
        let page = ground.get(&path).await.json();
        seen.extend(page["runs"].as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()));
        match page["before"].as_str() {
            Some(before) => path = format!("/api/v1/runs?limit=2&status=done,halt&thread=t&before={before}"),
            None => break,
        }
    }
    assert_eq!(seen, runs);
    let none = ground.get("/api/v1/runs?status=suspended").await.json();
    assert_eq!(none, json!({"runs": []}));
}

#[tokio::test]
async fn a_wait_ends_with_a_change_and_not_before() {
    let ground = Ground::new();
    let run = ground.start("wait").await;
    ground.wait(&run, Until::ChangedAfter(taffrail_mcp_core::Seq(2))).await;
    let head = ground.get(&format!("/api/v1/runs/{run}")).await.json()["head"].as_u64().unwrap();
    let begun = Instant::now();
    let still = ground.get(&format!("/api/v1/runs/{run}?after={head}&wait_ms=200")).await.json();
    assert_eq!(still["status"], "running");
    assert!(begun.elapsed().as_millis() >= 200, "nothing has changed");
    let path = format!("/api/v1/runs/{run}?after={head}&wait_ms=30000");
    let cancel = format!("/api/v1/runs/{run}/cancel");
    let (waited, cancelled) = tokio::join!(ground.get(&path), ground.post(&cancel, json!({"reason": "enough"})));
    assert!(begun.elapsed() < SOON);
    assert_eq!(cancelled.json()["status"], "cancelled");
    // The end of a state is a change, too: it may be seen before the end of the run.
    assert!(waited.json()["head"].as_u64().unwrap() > head);
    // A run that is over is not waited for.
    ground.get(&format!("/api/v1/runs/{run}?wait_ms=30000")).await;
    assert!(begun.elapsed() < SOON);
    let ahead = ground.get(&format!("/api/v1/runs/{run}?after=100000")).await;
    ahead.problem(409, "cursor-ahead");
    assert!(ahead.json()["head"].as_u64().unwrap() > head);
}

#[tokio::test]
async fn a_cancelled_run_says_who_asked_and_why() {
    let ground = Ground::new();
    let run = ground.start("wait").await;
    let path = format!("/api/v1/runs/{run}/cancel");
    let cancelled = ground.post(&path, json!({"reason": "enough", "kill": true})).await;
    assert_eq!((cancelled.status.as_u16(), &cancelled.json()["status"]), (200, &json!("cancelled")));
    let asked = ground.get(&format!("/api/v1/runs/{run}/events?types=cancel-requested")).await.json();
    let record = &asked["records"][0];
    assert_eq!((&record["actor"], &record["reason"]), (&json!("http:operator"), &json!("enough")));
    // Once more, and without a body: nothing changes.
    let again = ground.send(Method::POST, &path, &[], Body::empty()).await;
    assert_eq!(again.json()["status"], "cancelled");
}

#[tokio::test]
async fn a_decision_holds_for_what_was_shown_and_then_the_run_goes_on() {
    let ground = Ground::new();
    let run = ground.run("gate").await;
    let snapshot = ground.get(&format!("/api/v1/runs/{run}")).await.json();
    let (approval, hash) = (snapshot["approval"]["approval"].as_str().unwrap(), &snapshot["approval"]["hash"]);
    let path = format!("/api/v1/runs/{run}/approvals/{approval}");
    let resume = format!("/api/v1/runs/{run}/resume");
    ground.post(&resume, json!({"inputs": {"decision": "approve"}})).await.problem(403, "human-only");
    let seen = &snapshot["head"];
    let moved = ground.post(&path, json!({"decision": "approve", "hash": "0", "seen_seq": seen})).await;
    moved.problem(409, "hash-moved");
    assert_eq!(&moved.json()["hash"], hash);
    ground.post(&path, json!({"decision": "approve", "hash": hash, "seen_seq": 1})).await.problem(409, "not-seen");
    let other = format!("/api/v1/runs/{run}/approvals/other");
    let body = json!({"decision": "approve", "hash": hash, "seen_seq": seen});
    ground.post(&other, body.clone()).await.problem(409, "not-waiting-for");
    let decided = ground.post(&path, body.clone()).await;
    assert_eq!(decided.json()["approval"]["decision"], "approve", "{decided:?}");
    let again = ground.post(&path, body).await;
    again.problem(409, "already-decided");
    assert_eq!(again.json()["decision"], "approve");
    let resumed = ground.post(&resume, json!({})).await;
    assert_eq!(resumed.status, 200, "{resumed:?}");
    ground.wait(&run, Until::Ended).await;
    assert_eq!(ground.get(&format!("/api/v1/runs/{run}")).await.json()["status"], "done");
    ground.post(&resume, json!({})).await.problem(409, "wrong-state");
}

#[tokio::test]
async fn an_answer_has_to_fit_its_schema() {
    let ground = Ground::new();
    let run = ground.run("ask").await;
    let snapshot = ground.get(&format!("/api/v1/runs/{run}")).await.json();
    let path = format!("/api/v1/runs/{run}/approvals/{}", snapshot["approval"]["approval"].as_str().unwrap());
    let with = |content| json!({"decision": "approve", "hash": snapshot["approval"]["hash"], "seen_seq": snapshot["head"], "content": content});
    ground.post(&path, with(json!({"r": "moon"}))).await.problem(422, "bad-answer");
    ground.post(&format!("/api/v1/runs/{run}/resume"), json!({})).await.problem(409, "undecided");
    assert_eq!(ground.post(&path, with(json!({"r": "eu"}))).await.status, 200);
}

#[tokio::test]
async fn what_a_caller_began_goes_on_without_the_caller() {
    let ground = Ground::new();
    let path = "/api/v1/threads/t/runs";
    let mut asked = Box::pin(ground.post(path, json!({"playbook": "lines"})));
    // Polled once, so that it has begun; then the caller is gone.
    assert!(futures_util::poll!(asked.as_mut()).is_pending());
    drop(asked);
    let found = async {
        loop {
            let runs = ground.get("/api/v1/runs?status=done").await.json();
            if !runs["runs"].as_array().unwrap().is_empty() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, found).await.expect("the run was not carried out");
}

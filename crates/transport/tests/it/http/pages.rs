//! Pages of a run's log.

use serde_json::{Value, json};
use taffrail_mcp_core::{PageMeta, RunId, Seq};

use super::ground::Ground;

async fn page(ground: &Ground, run: &RunId, query: &str) -> Value {
    let answer = ground.get(&format!("/api/v1/runs/{run}/events{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn seqs(page: &Value) -> Vec<u64> {
    page["records"].as_array().unwrap().iter().map(|record| record["seq"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn a_page_holds_the_bytes_of_the_log_and_nothing_else() {
    let ground = Ground::new();
    let run = ground.run("lines").await;
    let answer = ground.get(&format!("/api/v1/runs/{run}/events")).await;
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let lines = ground.service.logs(&run, Default::default()).await.unwrap().lines;
    let lines: Vec<_> = lines.iter().map(|line| std::str::from_utf8(line).unwrap().trim_end()).collect();
    let head = lines.len();
    assert_eq!(
        text,
        format!(
            r#"{{"records":[{}],"next":{head},"head":{head},"first":1,"done":true,"matched":{head},"scanned":{head}}}"#,
            lines.join(",")
        )
    );
    assert_eq!((answer.header("content-type"), answer.header("cache-control")), ("application/json", "no-store"));
    serde_json::from_str::<PageMeta>(&text).unwrap();
}

#[tokio::test]
async fn pages_join_to_the_whole_log() {
    let ground = Ground::new();
    let run = ground.run("lines").await;
    let whole = page(&ground, &run, "").await;
    let (mut joined, mut after) = (Vec::new(), 0);
    loop {
        let part = page(&ground, &run, &format!("?after={after}&limit=2")).await;
        joined.extend(part["records"].as_array().unwrap().clone());
        after = part["next"].as_u64().unwrap();
        if part["done"] == true {
            break;
        }
    }
    assert_eq!(&Value::from(joined), &whole["records"]);
    let end = page(&ground, &run, &format!("?after={after}")).await;
    assert_eq!((&end["records"], &end["done"]), (&json!([]), &json!(true)));
}

#[tokio::test]
async fn every_parameter_does_what_it_says() {
    let ground = Ground::new();
    let run = ground.run("lines").await;
    let logs = page(&ground, &run, "?types=log").await;
    let texts: Vec<_> = logs["records"].as_array().unwrap().iter().map(|log| log["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["1", "2", "3"]);
    assert_eq!((&logs["matched"], logs["scanned"].as_u64() > Some(3)), (&json!(3), true));
    let all = seqs(&logs);
    assert_eq!(seqs(&page(&ground, &run, "?types=log&state=say&stream=stdout").await), all);
    assert_eq!(seqs(&page(&ground, &run, "?types=log&stream=stderr").await), [0u64; 0]);
    assert_eq!(seqs(&page(&ground, &run, "?types=log&state=other").await), [0u64; 0]);
    assert_eq!(seqs(&page(&ground, &run, "?types=log&tail=2").await), all[1..]);
    assert_eq!(seqs(&page(&ground, &run, "?types=log&limit=1").await), all[..1]);
    assert_eq!(seqs(&page(&ground, &run, "?types=log&max_bytes=1").await), all[..1]);
    assert_eq!(seqs(&page(&ground, &run, "?grep=%5E%5B23%5D%24").await), all[1..]);
    assert_eq!(seqs(&page(&ground, &run, "?types=run-start,run-finished").await).len(), 2);
    assert_eq!(seqs(&page(&ground, &run, &format!("?after={}&types=log", all[0])).await), all[1..]);
    assert_eq!(seqs(&page(&ground, &run, "?after=live").await), [0u64; 0]);
}

#[tokio::test]
async fn what_retention_removed_is_an_item() {
    let ground = Ground::new();
    let run = ground.run("lines").await;
    let thread = taffrail_mcp_core::ThreadId::new("t").unwrap();
    let trimmed = ground.service.relay().store().trim(thread.clone(), Seq(3)).await.unwrap();
    assert!(trimmed.records > 0);
    let first = ground.service.relay().extent(&thread).await.unwrap().first.0;
    let page = page(&ground, &run, "").await;
    let gap =
        json!({"type": "gap", "thread": "t", "from": 1, "to": first - 1, "reason": "retention", "next": first - 1});
    assert_eq!((&page["records"][0], &page["first"]), (&gap, &json!(first)));
    assert_eq!(page["records"][1]["seq"], first);
    assert_eq!(page["matched"].as_u64().unwrap() + 1, page["records"].as_array().unwrap().len() as u64);
}

#[tokio::test]
async fn a_page_waits_for_a_first_record() {
    let ground = Ground::new();
    let run = ground.start("wait").await;
    let waiting = page(&ground, &run, "?types=cancel-requested&wait_ms=30000");
    let cancel = format!("/api/v1/runs/{run}/cancel");
    let (page, _) = tokio::join!(waiting, ground.post(&cancel, json!({})));
    assert_eq!(page["matched"], 1);
}

#[tokio::test]
async fn a_wait_ends_when_the_server_does() {
    let ground = Ground::new();
    let run = ground.start("wait").await;
    let path = format!("/api/v1/runs/{run}/events?types=nothing&wait_ms=30000");
    let begun = tokio::time::Instant::now();
    let mut waiting = Box::pin(ground.get(&path));
    assert!(futures_util::poll!(waiting.as_mut()).is_pending());
    ground.http.close();
    let page = waiting.await.json();
    assert_eq!((&page["records"], &page["done"]), (&json!([]), &json!(false)));
    assert!(begun.elapsed().as_secs() < 20);
    ground.service.close().await;
}

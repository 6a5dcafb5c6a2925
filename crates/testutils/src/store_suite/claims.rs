//! What can be done once.

use std::sync::Arc;

use taffrail_mcp_core::{RunStatus, Seq};
use taffrail_relay::{Append, Appended, Claim, Store};

use super::{append, blocks, fold, put, run_id, thread_id};

pub(super) fn claiming(key: &str, value: &str, append: Append) -> Append {
    Append { claim: Some(Claim { key: key.into(), value: value.into() }), ..append }
}

pub(super) async fn a_claim_is_taken_once(store: Arc<dyn Store>) {
    let key = "start:someone@example.org:é \"key\" \u{1f680}";
    assert_eq!(store.claim(key.into()).await.unwrap(), None);
    let first = claiming(key, "run-é\n1", append("t", 0, blocks("r", 0, &[1])));
    assert_eq!(put(&*store, first).await, Appended::Stored);
    assert_eq!(store.claim(key.into()).await.unwrap().as_deref(), Some("run-é\n1"));
    let taken = Appended::Claimed { value: "run-é\n1".into() };
    for thread in ["t", "u"] {
        let expected = u64::from(thread == "t");
        let mut late = claiming(key, "other", append(thread, expected, blocks("s", expected, &[1])));
        late.runs = vec![fold("s", thread, RunStatus::Running)];
        assert_eq!(put(&*store, late).await, taken, "{thread}");
    }
    assert_eq!(store.extent(thread_id("t")).await.unwrap().head, Seq(1), "nothing of it is stored");
    assert_eq!(store.extent(thread_id("u")).await.unwrap().head, Seq(0));
    assert_eq!(store.run(run_id("s")).await.unwrap(), None);
    assert_eq!(store.claim(key.into()).await.unwrap().as_deref(), Some("run-é\n1"));

    let group = vec![
        claiming("k", "1", append("v", 0, blocks("r", 0, &[1]))),
        claiming("k", "2", append("v", 1, blocks("r", 1, &[1]))),
        append("v", 1, blocks("r", 1, &[5])),
    ];
    let answers = store.append(group).await.unwrap();
    assert_eq!(answers, [Appended::Stored, Appended::Claimed { value: "1".into() }, Appended::Stored]);
    assert_eq!(store.extent(thread_id("v")).await.unwrap().head, Seq(6));
}

pub(super) async fn a_conflict_takes_no_claim(store: Arc<dyn Store>) {
    let wrong = claiming("k", "v", append("t", 3, blocks("r", 3, &[1])));
    assert_eq!(put(&*store, wrong).await, Appended::Conflict { head: Seq(0) });
    assert_eq!(store.claim("k".into()).await.unwrap(), None);
    assert_eq!(put(&*store, claiming("k", "v", append("t", 0, blocks("r", 0, &[1])))).await, Appended::Stored);
    assert_eq!(store.claim("k".into()).await.unwrap().as_deref(), Some("v"));
}

pub(super) async fn one_of_many_wins(store: Arc<dyn Store>) {
    let tasks: Vec<_> = (0..16)
        .map(|i| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let name = format!("t{i}");
                put(&*store, claiming("k", &name, append(&name, 0, blocks("r", 0, &[1])))).await
            })
        })
        .collect();
    let mut winners = Vec::new();
    let mut told = Vec::new();
    for (i, task) in tasks.into_iter().enumerate() {
        match task.await.unwrap() {
            Appended::Stored => winners.push(format!("t{i}")),
            Appended::Claimed { value } => told.push(value),
            conflict => panic!("{conflict:?}"),
        }
    }
    assert_eq!(winners.len(), 1);
    assert!(told.iter().all(|value| *value == winners[0]), "{winners:?} {told:?}");
}

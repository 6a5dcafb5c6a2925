//! Two values on one store, as in two processes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use taffrail_mcp_core::{RunStatus, Seq};
use taffrail_relay::{Appended, Store};
use tokio::time::{sleep, timeout};

use super::{
    Pair, all_of, append, blocks,
    claims::claiming,
    concurrent::{check_race, write_racing},
    fold, put, run_id, thread_id,
};

pub(super) async fn each_sees_what_the_other_stored((a, b): Pair) {
    let mut head = 0;
    for (i, (writer, reader)) in [(&a, &b), (&b, &a)].into_iter().cycle().take(20).enumerate() {
        let mut append = append("t", head, blocks("r", head, &[2, 1]));
        append.runs = vec![taffrail_mcp_core::RunFold { last: Seq(head + 3), ..fold("r", "t", RunStatus::Running) }];
        let state = append.runs[0].clone();
        assert_eq!(put(&**writer, append).await, Appended::Stored, "round {i}");
        head += 3;
        assert_eq!(reader.extent(thread_id("t")).await.unwrap().head, Seq(head));
        assert_eq!(reader.read(all_of("t")).await.unwrap(), writer.read(all_of("t")).await.unwrap());
        assert_eq!(reader.run(run_id("r")).await.unwrap(), Some(state));
    }
}

pub(super) async fn both_number_one_thread((a, b): Pair) {
    let writers = ["a".to_owned(), "b".to_owned()];
    let race = |store: &Arc<dyn Store>, name: &'static str| {
        let store = Arc::clone(store);
        tokio::spawn(async move { write_racing(store, "race", name, 60).await })
    };
    let tasks = [race(&a, "a"), race(&b, "b")];
    for task in tasks {
        task.await.unwrap();
    }
    check_race(&*a, "race", &writers, 60).await;
    check_race(&*b, "race", &writers, 60).await;
}

pub(super) async fn a_claim_is_taken_once_for_both((a, b): Pair) {
    for i in 0..20 {
        let claim = |store: &Arc<dyn Store>, name: &'static str| {
            let (store, key, thread) = (Arc::clone(store), format!("k{i}"), format!("{name}{i}"));
            let append = claiming(&key, name, append(&thread, 0, blocks("r", 0, &[1])));
            tokio::spawn(async move { put(&*store, append).await })
        };
        let answers = [claim(&a, "a"), claim(&b, "b")];
        let [first, second] = answers;
        let expected = match (first.await.unwrap(), second.await.unwrap()) {
            (Appended::Stored, Appended::Claimed { value }) if value == "a" => "a",
            (Appended::Claimed { value }, Appended::Stored) if value == "b" => "b",
            other => panic!("{other:?}"),
        };
        assert_eq!(a.claim(format!("k{i}")).await.unwrap().as_deref(), Some(expected));
    }
}

pub(super) async fn changes_are_noticed_in_time((a, b): Pair) {
    let mut changes = a.changes();
    let mut delays = Vec::new();
    for i in 0..15 {
        // Lets what was noticed late, or at the start, pass.
        sleep(Duration::from_millis(60 + i * 7 % 20)).await;
        changes.mark_unchanged();
        let start = Instant::now();
        assert_eq!(put(&*b, append("t", i, blocks("r", i, &[1]))).await, Appended::Stored);
        let answered = Instant::now();
        let noticed = timeout(Duration::from_secs(10), changes.changed()).await;
        noticed.expect("a change is noticed").expect("the store is open");
        assert!(a.extent(thread_id("t")).await.unwrap().head == Seq(i + 1), "what was noticed can be read");
        delays.push(answered.elapsed().min(start.elapsed()));
    }
    delays.sort_unstable();
    // The machine that runs tests may be busy for a moment; the promise is about the store.
    let typical = delays[delays.len() * 3 / 4];
    assert!(typical <= <dyn Store>::CHANGE_DELAY, "{delays:?}");

    drop(changes);
    sleep(Duration::from_millis(100)).await;
    let mut again = a.changes();
    put(&*b, append("t", 15, blocks("r", 15, &[1]))).await;
    let noticed = timeout(Duration::from_secs(10), again.changed()).await;
    noticed.expect("a later receiver works as well").expect("the store is open");
}

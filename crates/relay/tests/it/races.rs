//! Several writers of one thread, each with a relay of its own on the same store.

use taffrail_mcp_core::{EventSink, RunStart, RunStatus, Seq, Start};
use taffrail_relay::{Claim, MemoryStore, RelayError};

use crate::support::{assert_dense, note, read, relay, run, text, thread, whole};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loser_of_a_numbering_race_renumbers() {
    let store = MemoryStore::new();
    let mut tasks = Vec::new();
    for writer in 0..4 {
        let relay = relay(store.clone());
        tasks.push(tokio::spawn(async move {
            let publisher = relay.publisher(&thread(), &run(&format!("r{writer}"))).await.unwrap();
            for i in 0..500 {
                publisher.emit(note(format!("{writer} {i}")));
                if i % 10 == 0 {
                    publisher.flush().await.unwrap();
                }
            }
            publisher.flush().await.unwrap();
            let fold = relay.run(publisher.run()).await.unwrap().unwrap();
            (fold.first, fold.last)
        }));
    }
    let reader = relay(store.clone());
    let mut follower = reader.follow(&thread(), None, Start::Beginning).await.unwrap();
    let records = read(&mut follower, 2000).await;
    assert_dense(&records, Seq::START);
    for (writer, task) in tasks.into_iter().enumerate() {
        let (first, last) = task.await.unwrap();
        let prefix = format!("{writer} ");
        let mine: Vec<_> = records.iter().filter(|record| text(record).starts_with(&prefix)).collect();
        let order: Vec<_> = mine.iter().map(|record| text(record)).collect();
        assert_eq!(order, (0..500).map(|i| format!("{writer} {i}")).collect::<Vec<_>>());
        assert_eq!((mine[0].seq, mine[499].seq), (first, last), "the index knows where the run is");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_can_win_a_claim() {
    let store = MemoryStore::new();
    let mut tasks = Vec::new();
    for contender in 0..8 {
        let relay = relay(store.clone());
        tasks.push(tokio::spawn(async move {
            let claim = Claim { key: "checkpoint:c1".into(), value: contender.to_string() };
            relay.commit(&thread(), &run("r"), &[note("claimed")], Some(claim)).await
        }));
    }
    let mut winners = 0;
    let mut values = std::collections::BTreeSet::new();
    for task in tasks {
        match task.await.unwrap() {
            Ok(fold) => winners += u32::from(fold.last == Seq(1)),
            Err(RelayError::Claimed { value }) => _ = values.insert(value),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((winners, values.len()), (1, 1));
    assert_eq!(whole(&relay(store), 1).await.len(), 1);
}

#[tokio::test]
async fn a_commit_from_outside_reaches_the_run_that_writes() {
    let store = MemoryStore::new();
    let (inside, outside) = (relay(store.clone()), relay(store));
    let publisher = inside.publisher(&thread(), &run("r")).await.unwrap();
    publisher
        .emit(RunStart { machine: "m".into(), depth: 0, entry: "s".into(), resumed: false, external: false }.into());
    publisher.flush().await.unwrap();
    let mut follower = inside.follow(&thread(), None, Start::Live).await.unwrap();
    let cancel = taffrail_mcp_core::CancelRequested { actor: "me".into(), reason: None, kill: false };
    outside.commit(&thread(), &run("r"), &[cancel.into()], None).await.unwrap();
    assert_eq!(text(&read(&mut follower, 1).await[0]), "cancel-requested");
    publisher.emit(note("still here"));
    publisher.flush().await.unwrap();
    let fold = outside.run(&run("r")).await.unwrap().unwrap();
    assert_eq!((fold.last, fold.status), (Seq(3), RunStatus::Running));
    assert!(fold.cancel.is_some(), "what the other wrote is in the state that this one wrote after");
}

//! Many tasks at once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use taffrail_mcp_core::Seq;
use taffrail_relay::{Appended, Store};

use super::{all_of, append, block, blocks, lines, put, thread_id};

/// Appends blocks of one line each to a thread that others write too: renumbers after a conflict and tries again.
/// Gives the number of conflicts.
pub(super) async fn write_racing(store: Arc<dyn Store>, thread: &str, writer: &str, count: u64) -> u64 {
    let (mut head, mut conflicts) = (0, 0);
    for i in 0..count {
        loop {
            let line = format!("{writer} {i}");
            match put(&*store, append(thread, head, vec![block(writer, head + 1, &[line])])).await {
                Appended::Stored => break head += 1,
                Appended::Conflict { head: Seq(now) } => {
                    assert_ne!(now, head, "a conflict tells another head");
                    (head, conflicts) = (now, conflicts + 1);
                }
                claimed @ Appended::Claimed { .. } => panic!("{claimed:?}"),
            }
        }
    }
    conflicts
}

/// Checks that each writer's lines are there once, in order, at dense positions.
pub(super) async fn check_race(store: &dyn Store, thread: &str, writers: &[String], count: u64) {
    let read = store.read(all_of(thread)).await.unwrap();
    for (block, seq) in read.iter().zip(1..) {
        assert_eq!((block.first, block.count), (Seq(seq), 1));
    }
    let lines: Vec<String> = lines(&read).iter().map(|l| String::from_utf8_lossy(l).trim_end().to_owned()).collect();
    assert_eq!(lines.len() as u64, count * writers.len() as u64);
    for writer in writers {
        let own: Vec<_> = lines.iter().filter(|line| line.split(' ').next() == Some(writer)).collect();
        let expected: Vec<_> = (0..count).map(|i| format!("{writer} {i}")).collect();
        assert!(own.iter().copied().eq(&expected), "{writer}: {own:?}");
    }
}

pub(super) async fn writers_of_one_thread_renumber(store: Arc<dyn Store>) {
    let writers: Vec<String> = (0..6).map(|i| format!("w{i}")).collect();
    let tasks: Vec<_> = writers
        .iter()
        .map(|writer| {
            let (store, writer) = (Arc::clone(&store), writer.clone());
            tokio::spawn(async move { write_racing(store, "race", &writer, 20).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    check_race(&*store, "race", &writers, 20).await;
}

pub(super) async fn readers_never_see_a_part(store: Arc<dyn Store>) {
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (store, done) = (Arc::clone(&store), Arc::clone(&done));
            tokio::spawn(async move {
                let (mut before, mut rounds) = (0, 0);
                while !done.load(Relaxed) || rounds == 0 {
                    let known = store.extent(thread_id("whole")).await.unwrap().head.0;
                    let read = store.read(all_of("whole")).await.unwrap();
                    let now = read.iter().map(|b| b.count).sum::<u64>();
                    assert_eq!(known % 10, 0, "a head inside an append");
                    assert_eq!(now % 10, 0, "a part of an append");
                    assert!(before <= known && known <= now, "{before} {known} {now}: time went backwards");
                    (before, rounds) = (now, rounds + 1);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for i in 0..100 {
        assert_eq!(put(&*store, append("whole", i * 10, blocks("r", i * 10, &[3, 1, 6]))).await, Appended::Stored);
        let head = store.extent(thread_id("whole")).await.unwrap().head.0;
        assert_eq!(head, (i + 1) * 10, "an answered append is seen");
    }
    done.store(true, Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
}

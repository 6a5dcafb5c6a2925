//! Several processes on one database, some of which are killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use taffrail_mcp_core::Seq;
use taffrail_relay::{Appended, Store};
use taffrail_testutils::{
    postgres::{PgCluster, PgOptions},
    store_suite::{all_of, append, blocks, lines, put},
};
use tokio::sync::Barrier;

use crate::{
    child::{Ack, Writer},
    server::{fresh_url, open},
};

#[tokio::test]
async fn processes_make_a_new_schema_at_once() {
    let url = fresh_url();
    let writers: Vec<_> = (0..8).map(|i| Writer::start("once", &url, &format!("w{i}"))).collect();
    let acks: Vec<_> = writers.into_iter().flat_map(Writer::join).collect();
    assert_eq!(acks.len(), 8);
    check(&url, &acks).await;
}

/// On a disk that is slow, where the loser of a race would come too late each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_floods_share_a_thread_fairly() {
    let settings = vec!["commit_delay = 3000".into(), "commit_siblings = 0".into()];
    let server = PgCluster::with(&PgOptions { fsync: true, settings, ..PgOptions::default() });
    let url = server.url(&server.fresh_database());
    let (total, ready) = (Arc::new(AtomicU64::new(0)), Arc::new(Barrier::new(2)));
    let floods = ["a", "b"].map(|name| {
        let (url, total, ready) = (url.clone(), Arc::clone(&total), Arc::clone(&ready));
        tokio::spawn(async move {
            let store = open(&url).await;
            ready.wait().await;
            // Without a look at the head in between, as a relay does: only a conflict tells of the other writer.
            let (mut head, mut own, mut lost) = (0, 0, 0);
            while total.load(Relaxed) < 300 {
                match put(&store, append("shared", head, blocks(name, head, &[1]))).await {
                    Appended::Stored => (head, own) = (head + 1, own + total.fetch_add(1, Relaxed).min(1)),
                    Appended::Conflict { head: Seq(now) } => (head, lost) = (now, lost + 1),
                    claimed @ Appended::Claimed { .. } => panic!("{claimed:?}"),
                }
            }
            (own, lost)
        })
    });
    let mut counts = Vec::new();
    for flood in floods {
        counts.push(flood.await.unwrap());
    }
    println!("two floods, appends and conflicts: {counts:?}");
    assert!(counts.iter().all(|(own, _)| *own > 100), "{counts:?}");
    check(&url, &[]).await;
}

/// How many rounds of killing; more in a long run.
const ROUNDS: &str = "TAFFRAIL_KILLS";

#[tokio::test]
async fn killed_writers_lose_nothing_that_was_acknowledged() {
    let rounds: u64 = std::env::var(ROUNDS).map_or(12, |rounds| rounds.parse().unwrap());
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos();
    let mut random = u64::from(seed);
    let (mut url, mut acks) = (fresh_url(), Vec::new());
    for round in 0..rounds {
        if round % 6 == 0 {
            // A new database now and then: making the schema can be interrupted as well.
            (url, acks) = (fresh_url(), Vec::new());
        }
        let writers = ["a", "b"].map(|name| Writer::start("all", &url, &format!("{name}{round}")));
        for writer in writers {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            std::thread::sleep(Duration::from_millis((random >> 33) % if round % 6 == 0 { 120 } else { 300 }));
            acks.extend(writer.kill());
        }
        check(&url, &acks).await;
    }
    println!("{} acknowledged in the last database, seed {seed}", acks.len());
}

/// Checks that threads are dense, sums are right, and that all that was acknowledged is there, or was trimmed.
pub(crate) async fn check(url: &str, acks: &[Ack]) {
    let store = open(url).await;
    let mut threads = BTreeMap::new();
    for usage in store.threads().await.unwrap() {
        let read = store.read(all_of(usage.thread.as_str())).await.unwrap();
        let mut next = usage.extent.first;
        for block in &read {
            assert_eq!(block.first, next, "{usage:?}");
            next = block.last().next();
        }
        assert_eq!(next, usage.extent.head.next(), "{usage:?}");
        assert_eq!(usage.trimmed.records, usage.extent.first.0 - 1);
        assert_eq!(usage.bytes, read.iter().map(|b| b.bytes.len() as u64).sum::<u64>());
        let lines: Vec<_> = lines(&read).iter().map(|l| String::from_utf8(l.to_vec()).unwrap()).collect();
        assert_eq!(lines.iter().collect::<BTreeSet<_>>().len(), lines.len(), "something is there twice");
        threads.insert(usage.thread.to_string(), (usage.extent.first, lines));
    }
    for Ack { thread, seq, line } in acks {
        let (first, lines) = &threads[thread];
        if Seq(*seq) >= *first {
            let stored = lines.get((seq - first.0) as usize).map(|stored| stored.trim_end());
            assert_eq!(stored, Some(line.as_str()), "{thread} {seq}");
        } else {
            assert_eq!(thread, "trimmed");
        }
    }
}

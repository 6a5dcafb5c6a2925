//! What is removed, and what is told about sizes.

use std::sync::Arc;

use taffrail_mcp_core::{Seq, Timestamp};
use taffrail_relay::{Appended, Extent, ReadBlocks, Store, ThreadUsage, Trimmed};

use super::{all_of, append, blocks, put, thread_id};

const SIZES: [u64; 5] = [3, 1, 5, 1, 2];

pub(super) async fn trims_take_whole_blocks(store: Arc<dyn Store>) {
    for through in (0..=14).chain([u64::MAX]) {
        let thread = format!("trim{through}");
        let all = blocks("r", 0, &SIZES);
        put(&*store, append(&thread, 0, all.clone())).await;
        let (gone, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|b| b.last().0 <= through);
        let removed = store.trim(thread_id(&thread), Seq(through)).await.unwrap();
        let records = gone.iter().map(|b| b.count).sum();
        let bytes = gone.iter().map(|b| b.bytes.len() as u64).sum();
        assert_eq!(removed, Trimmed { records, bytes }, "through {through}");
        let extent = store.extent(thread_id(&thread)).await.unwrap();
        let first = kept.first().map_or(Seq(13), |b| b.first);
        assert_eq!(extent, Extent { first, head: Seq(12) }, "through {through}");
        for after in 0..=12 {
            for backwards in [false, true] {
                let query = ReadBlocks { after: Seq(after), backwards, ..all_of(&thread) };
                let wanted: Vec<_> = kept.iter().filter(|b| b.last().0 > after).cloned().collect();
                assert_eq!(store.read(query).await.unwrap(), wanted, "through {through} after {after}");
            }
        }
        let again = store.trim(thread_id(&thread), Seq(through)).await.unwrap();
        assert_eq!(again, Trimmed::default(), "through {through}, again");
    }
}

pub(super) async fn numbers_are_not_used_again(store: Arc<dyn Store>) {
    put(&*store, append("t", 0, blocks("r", 0, &[3, 2]))).await;
    store.trim(thread_id("t"), Seq(u64::MAX)).await.unwrap();
    assert_eq!(store.extent(thread_id("t")).await.unwrap(), Extent { first: Seq(6), head: Seq(5) });
    assert_eq!(store.read(all_of("t")).await.unwrap(), []);
    let from_start = put(&*store, append("t", 0, blocks("r", 0, &[1]))).await;
    assert_eq!(from_start, Appended::Conflict { head: Seq(5) });
    assert_eq!(put(&*store, append("t", 5, blocks("r", 5, &[2]))).await, Appended::Stored);
    assert_eq!(store.extent(thread_id("t")).await.unwrap(), Extent { first: Seq(6), head: Seq(7) });
    assert_eq!(store.read(all_of("t")).await.unwrap(), blocks("r", 5, &[2]));
}

pub(super) async fn usage_adds_up(store: Arc<dyn Store>) {
    // A block's time is its first position in milliseconds: the thread with the lowest last block is quiet longest.
    let appended = [("late", vec![3, 1, 9, 4]), ("early", vec![2]), ("middle", vec![4, 3])];
    for (thread, sizes) in &appended {
        put(&*store, append(thread, 0, blocks("r", 0, sizes))).await;
    }
    store.trim(thread_id("late"), Seq(4)).await.unwrap();
    store.trim(thread_id("late"), Seq(5)).await.unwrap();
    store.trim(thread_id("middle"), Seq(7)).await.unwrap();
    let usage = store.threads().await.unwrap();
    let names: Vec<_> = usage.iter().map(|u| u.thread.as_str()).collect();
    assert_eq!(names, ["early", "middle", "late"]);
    for ThreadUsage { thread, extent, bytes, stored_bytes, updated, trimmed } in usage {
        let kept = store.read(all_of(thread.as_str())).await.unwrap();
        let (_, sizes) = appended.iter().find(|(name, _)| *name == thread.as_str()).unwrap();
        let all = blocks("r", 0, sizes);
        assert_eq!(extent, store.extent(thread.clone()).await.unwrap());
        assert_eq!(bytes, kept.iter().map(|b| b.bytes.len() as u64).sum::<u64>(), "{thread}");
        assert_eq!(stored_bytes > 0, bytes > 0, "{thread}");
        assert_eq!(updated, all.last().map_or(Timestamp::default(), |b| b.ts));
        assert_eq!(trimmed.records, extent.first.0 - 1, "{thread}");
        assert_eq!(trimmed.bytes + bytes, all.iter().map(|b| b.bytes.len() as u64).sum::<u64>(), "{thread}");
    }
}

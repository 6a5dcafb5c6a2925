//! What a read gives.

use std::sync::Arc;

use taffrail_mcp_core::Seq;
use taffrail_relay::{Block, ReadBlocks, Store};

use super::{all_of, append, blocks, numbered, put, run_id};

const SIZES: [u64; 5] = [3, 1, 5, 1, 2];
const HEAD: u64 = 12;

async fn fill(store: &dyn Store) {
    // Neighbours on both sides must not show.
    for thread in ["q", "r", "s"] {
        put(store, append(thread, 0, blocks(thread, 0, &SIZES[..2]))).await;
    }
    put(store, append("r", 4, blocks("r", 4, &SIZES[2..]))).await;
}

/// The blocks with a record in `after+1..=until`.
fn expected(after: u64, until: u64) -> Vec<Block> {
    let wanted = |b: &Block| b.last().0 > after && b.first.0 <= until && after < until;
    blocks("r", 0, &SIZES).into_iter().filter(wanted).collect()
}

pub(super) async fn every_range(store: Arc<dyn Store>) {
    check_ranges(&*store, false).await;
}

pub(super) async fn every_range_backwards(store: Arc<dyn Store>) {
    check_ranges(&*store, true).await;
}

async fn check_ranges(store: &dyn Store, backwards: bool) {
    fill(store).await;
    let afters = (0..=HEAD + 1).chain([1 << 40, u64::MAX]);
    for after in afters {
        for until in (0..=HEAD + 1).chain([1 << 40, u64::MAX]) {
            let query = ReadBlocks { after: Seq(after), until: Seq(until), backwards, ..all_of("r") };
            assert_eq!(store.read(query).await.unwrap(), expected(after, until), "after {after} until {until}");
        }
    }
}

pub(super) async fn max_bytes_bounds_a_read(store: Arc<dyn Store>) {
    fill(&*store).await;
    let all = blocks("r", 0, &SIZES);
    let total: usize = all.iter().map(|b| b.bytes.len()).sum();
    for max_bytes in [0, 1, 30, 60, 100, 200, total - 1, total, usize::MAX] {
        for backwards in [false, true] {
            let mut left = all.clone();
            while !left.is_empty() {
                let (after, until) = (Seq(left[0].first.0 - 1), left[left.len() - 1].last());
                let query = ReadBlocks { after, until, max_bytes, backwards, ..all_of("r") };
                let read = store.read(query).await.unwrap();
                assert!(!read.is_empty(), "there is always one block");
                let sizes = || read.iter().map(|b| b.bytes.len());
                let beyond = if backwards { read[0].bytes.len() } else { read[read.len() - 1].bytes.len() };
                assert!(
                    read.len() == 1 || sizes().sum::<usize>() - beyond < max_bytes,
                    "{max_bytes} bytes were full before the last of {:?}",
                    sizes().collect::<Vec<_>>()
                );
                // What comes back is the front, or the end, of what is left.
                let rest = left.len() - read.len();
                if backwards {
                    assert_eq!(read, left[rest..], "{max_bytes} backwards");
                    left.truncate(rest);
                } else {
                    assert_eq!(read, left[..read.len()], "{max_bytes}");
                    left.drain(..read.len());
                }
                assert!(max_bytes < total || left.is_empty(), "everything fits {max_bytes} bytes");
            }
        }
    }
}

pub(super) async fn only_one_run(store: Arc<dyn Store>) {
    // One run is named as its thread, which is the usual case, the others are not.
    let runs = ["mixed", "a", "b", "mixed", "b", "b", "a", "mixed", "B", "a"];
    let mut all = Vec::new();
    for (run, count) in runs.into_iter().zip([2, 1, 3, 1, 4, 1, 1, 5, 2, 1]) {
        let head = all.last().map_or(0, |b: &Block| b.last().0);
        all.push(numbered(run, head + 1, count));
        put(&*store, append("mixed", head, vec![all[all.len() - 1].clone()])).await;
    }
    put(&*store, append("elsewhere", 0, blocks("a", 0, &[30]))).await;
    let head = all[all.len() - 1].last().0;
    for run in ["mixed", "a", "b", "B", "c", "elsewhere"] {
        for after in 0..=head {
            for until in [after + 1, after + 3, head, u64::MAX] {
                let wanted = |b: &&Block| b.run == run_id(run) && b.last().0 > after && b.first.0 <= until;
                let expected: Vec<_> = all.iter().filter(wanted).cloned().collect();
                for backwards in [false, true] {
                    let (after, until, run) = (Seq(after), Seq(until), Some(run_id(run)));
                    let query = ReadBlocks { after, until, run, backwards, ..all_of("mixed") };
                    let what = format!("{query:?}");
                    assert_eq!(store.read(query).await.unwrap(), expected, "{what}");
                }
            }
        }
    }
}

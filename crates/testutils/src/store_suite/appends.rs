//! What an append does.

use std::sync::Arc;

use bytes::Bytes;
use taffrail_mcp_core::{RunStatus, Seq, Timestamp};
use taffrail_relay::{Appended, Block, Extent, Store};

use super::{all_of, append, block, blocks, fold, lines, numbered, put, run_id, thread_id};

pub(super) async fn positions_are_dense(store: Arc<dyn Store>) {
    let mut head = 0;
    for counts in [&[1][..], &[1, 1], &[5], &[2, 100, 1], &[1]] {
        assert_eq!(put(&*store, append("dense", head, blocks("r", head, counts))).await, Appended::Stored);
        head += counts.iter().sum::<u64>();
        let extent = store.extent(thread_id("dense")).await.unwrap();
        assert_eq!(extent, Extent { first: Seq(1), head: Seq(head) });
        let read = store.read(all_of("dense")).await.unwrap();
        let mut next = Seq(1);
        for block in &read {
            assert_eq!(block.first, next);
            next = next.plus(block.count);
        }
        assert_eq!(next, Seq(head).next());
    }
}

pub(super) async fn a_missing_thread_is_empty(store: Arc<dyn Store>) {
    assert_eq!(store.extent(thread_id("missing")).await.unwrap(), Extent::default());
    assert_eq!(store.read(all_of("missing")).await.unwrap(), []);
    assert_eq!(store.run(run_id("missing")).await.unwrap(), None);
    assert_eq!(store.claim("missing".into()).await.unwrap(), None);
    assert_eq!(store.trim(thread_id("missing"), Seq(9)).await.unwrap().records, 0);
    store.forget(run_id("missing")).await.unwrap();
    assert_eq!(store.append(Vec::new()).await.unwrap(), [], "an empty group");
    assert_eq!(store.threads().await.unwrap(), [], "asking makes nothing");
}

pub(super) async fn another_head_is_a_conflict(store: Arc<dyn Store>) {
    let mut first = append("c", 5, blocks("r", 5, &[1]));
    first.runs = vec![fold("r", "c", RunStatus::Running)];
    assert_eq!(put(&*store, first).await, Appended::Conflict { head: Seq(0) }, "a new thread begins at 1");
    assert_eq!(store.run(run_id("r")).await.unwrap(), None, "nothing of it is stored");
    assert_eq!(put(&*store, append("c", 0, blocks("r", 0, &[4]))).await, Appended::Stored);
    for expected in [0, 1, 3, 5, 1000] {
        let mut late = append("c", expected, blocks("r", expected, &[2, 1]));
        late.runs = vec![fold("r", "c", RunStatus::Done)];
        assert_eq!(put(&*store, late).await, Appended::Conflict { head: Seq(4) }, "expected {expected}");
    }
    assert_eq!(store.read(all_of("c")).await.unwrap(), blocks("r", 0, &[4]));
    assert_eq!(store.run(run_id("r")).await.unwrap(), None);
    assert_eq!(put(&*store, append("c", 4, blocks("r", 4, &[2]))).await, Appended::Stored, "renumbered");
}

pub(super) async fn a_conflict_spares_other_threads(store: Arc<dyn Store>) {
    let group = vec![
        append("one", 0, blocks("r", 0, &[2])),
        append("two", 7, blocks("r", 7, &[2])),
        append("three", 0, blocks("r", 0, &[3])),
    ];
    let answers = store.append(group).await.unwrap();
    assert_eq!(answers, [Appended::Stored, Appended::Conflict { head: Seq(0) }, Appended::Stored]);
    for (thread, head) in [("one", 2), ("two", 0), ("three", 3)] {
        assert_eq!(store.extent(thread_id(thread)).await.unwrap().head, Seq(head), "{thread}");
    }
}

pub(super) async fn a_group_can_go_on_with_its_own_blocks(store: Arc<dyn Store>) {
    let group = vec![
        append("t", 0, blocks("r", 0, &[2])),
        append("t", 2, blocks("r", 2, &[1])),
        append("t", 2, blocks("r", 2, &[9])),
        append("t", 3, blocks("r", 3, &[1])),
    ];
    let answers = store.append(group).await.unwrap();
    let conflict = Appended::Conflict { head: Seq(3) };
    assert_eq!(answers, [Appended::Stored, Appended::Stored, conflict, Appended::Stored]);
    assert_eq!(store.read(all_of("t")).await.unwrap(), blocks("r", 0, &[2, 1, 1]));
}

pub(super) async fn calls_keep_their_order_without_waiting(store: Arc<dyn Store>) {
    // Were two of them swapped, the later one would be a conflict. Sizes differ, so that work takes differently long.
    let sizes = |i: u64| if i.is_multiple_of(7) { 2000 } else { 1 };
    let mut head = 0;
    let mut waiting = Vec::new();
    for i in 0..100 {
        waiting.push(store.append(vec![append("order", head, vec![numbered("r", head + 1, sizes(i))])]));
        head += sizes(i);
    }
    // The last first: nobody has to be polled for the others to go on.
    for answer in waiting.into_iter().rev() {
        assert_eq!(answer.await.unwrap(), [Appended::Stored]);
    }
    assert_eq!(store.extent(thread_id("order")).await.unwrap().head, Seq(head));
}

pub(super) async fn a_dropped_future_is_whole_or_nothing(store: Arc<dyn Store>) {
    let mut head = 0;
    for round in 0..40 {
        let waiting = store.append(vec![append("drop", head, blocks("r", head, &[3, 2]))]);
        if round % 2 == 0 {
            drop(waiting);
        } else {
            let _ = tokio::time::timeout(std::time::Duration::ZERO, waiting).await;
        }
        // Comes after it, so the dropped one is decided once this is answered.
        put(&*store, append("other", round, blocks("r", round, &[1]))).await;
        let now = store.extent(thread_id("drop")).await.unwrap().head.0;
        assert!(now == head || now == head + 5, "{head} became {now}");
        head = now;
    }
    assert_eq!(lines(&store.read(all_of("drop")).await.unwrap()).len() as u64, head);
}

pub(super) async fn holes_are_refused(store: Arc<dyn Store>) {
    assert_eq!(put(&*store, append("h", 0, blocks("r", 0, &[2]))).await, Appended::Stored);
    let bad: [(&str, Vec<Block>); 4] = [
        ("late", blocks("r", 3, &[1])),
        ("early", blocks("r", 1, &[1])),
        ("hole", vec![numbered("r", 3, 1), numbered("r", 5, 1)]),
        ("twice", vec![numbered("r", 3, 1), numbered("r", 3, 1)]),
    ];
    for (what, blocks) in bad {
        // Which answer a wrong caller gets is not part of the contract; that nothing is stored is.
        let answer = store.append(vec![append("h", 2, blocks)]).await;
        assert!(!matches!(answer.as_deref(), Ok([Appended::Stored])), "{what}: {answer:?}");
        assert_eq!(store.extent(thread_id("h")).await.unwrap().head, Seq(2), "{what}");
    }
}

pub(super) async fn everything_passes_unchanged(store: Arc<dyn Store>) {
    let mut noise = 1u64;
    let mut random = |len: usize| -> Vec<u8> {
        let byte = |state: &mut u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Any byte but a newline, which ends a line.
            if (*state >> 56) as u8 == b'\n' { 0 } else { (*state >> 56) as u8 }
        };
        (0..len).map(|_| byte(&mut noise)).collect()
    };
    let longest_id = "x".repeat(128);
    let all_bytes: Vec<u8> = (0..=255).filter(|b| *b != b'\n').collect();
    let cases: Vec<(&str, Vec<Vec<u8>>)> = vec![
        ("empty lines", vec![vec![], vec![], vec![]]),
        ("unicode", vec!["é ü 漢字 🚀 \u{202e} \u{0} e\u{301}".into(), "\u{feff}\r".into()]),
        ("every byte", vec![all_bytes.clone(), all_bytes.into_iter().rev().collect()]),
        ("not utf-8", vec![vec![0xff, 0xfe, 0xc3, 0x28], vec![0; 1000]]),
        ("256 KiB of one line", vec![vec![b'z'; 256 * 1024 - 1]]),
        ("256 KiB that do not compress", vec![random(256 * 1024 - 1)]),
        ("2 MiB", (0..2048).map(|_| random(1023)).collect()),
        ("many short lines", vec![b"{}".to_vec(); 100_000]),
    ];
    let ids = ["a", "A", "9.z_Z-", longest_id.as_str()];
    for (id, ts) in ids.into_iter().zip([0, 1, 1_796_023_967_123_456, u64::MAX]) {
        let (mut head, mut written) = (0, Vec::new());
        for (what, lines) in &cases {
            let block = Block { ts: Timestamp::from_micros(ts), ..block(id, head + 1, lines) };
            assert_eq!(put(&*store, append(id, head, vec![block.clone()])).await, Appended::Stored, "{what}");
            head = block.last().0;
            written.push(block);
        }
        let read = store.read(all_of(id)).await.unwrap();
        assert_eq!(read.len(), written.len(), "blocks stay as they are");
        for ((read, written), (what, _)) in read.iter().zip(&written).zip(&cases) {
            // Not assert_eq: nobody wants to read 2 MiB.
            assert!(read == written, "{what} of {id} changed");
        }
        assert_eq!(read.last().map(|b| b.bytes.slice(..2)), Some(Bytes::from_static(b"{}")));
    }
}

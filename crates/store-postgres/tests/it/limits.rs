//! Large things, damaged things, and what a statement costs.

use std::sync::Arc;

use taffrail_mcp_core::{RunStatus, Seq};
use taffrail_relay::{Append, Appended, Claim, ListRuns, ReadBlocks, ReadWindow, Store, StoreError};
use taffrail_testutils::store_suite::{all_of, append, block, blocks, fold, put, run_id, thread_id};

use crate::server::{fresh_url, open, shared};

#[tokio::test]
async fn compressed_blocks_take_less_room() {
    let store = open(&fresh_url()).await;
    put(&store, append("t", 0, vec![block("r", 1, &vec!["the same line again and again"; 1000])])).await;
    let usage = &store.threads().await.unwrap()[0];
    assert!(usage.stored_bytes * 10 < usage.bytes, "{usage:?}");
}

#[tokio::test]
async fn groups_of_any_shape_are_answered_one_by_one() {
    let store = open(&fresh_url()).await;
    // Few and many take different ways through the database; conflicts and claims yet others.
    for threads in [1, 3, 6, 7, 40] {
        for with_claims in [false, true] {
            let name = |i: usize| format!("{threads}-{with_claims}-{}", (i * 11) % threads);
            let mut group = Vec::new();
            for round in 0..3 {
                for i in 0..threads {
                    // The second round is wrong in every third thread.
                    let expected =
                        if round == 1 && i % 3 == 0 { 77 } else { 2 * (round - u64::from(round == 2 && i % 3 == 0)) };
                    let run = format!("r{}-{}", name(i), round);
                    let mut one = append(&name(i), expected, blocks(&run, expected, &[1, 1]));
                    one.runs = vec![fold(&run, &name(i), RunStatus::Running)];
                    if with_claims && i % 2 == 0 {
                        let key = format!("{}-{round}-{}", name(i), "long".repeat(1000));
                        one.claim = Some(Claim { key, value: run });
                    }
                    group.push(one);
                }
            }
            let answers = store.append(group).await.unwrap();
            for (at, answer) in answers.iter().enumerate() {
                let (round, i) = (at / threads, at % threads);
                let conflict = Appended::Conflict { head: Seq(2) };
                let expected = if round == 1 && i % 3 == 0 { conflict } else { Appended::Stored };
                assert_eq!(*answer, expected, "{threads} {with_claims} round {round} thread {i}");
                let stored = store.run(run_id(&format!("r{}-{round}", name(i)))).await.unwrap().is_some();
                assert_eq!(stored, expected == Appended::Stored, "a conflict changes no run");
            }
            for i in 0..threads {
                let extent = store.extent(thread_id(&name(i))).await.unwrap();
                assert_eq!(extent.head, Seq(if i % 3 == 0 { 4 } else { 6 }));
                assert_eq!(store.read(all_of(&name(i))).await.unwrap().len() as u64, extent.head.0);
            }
            let listed = store.runs(ListRuns { limit: threads, ..ListRuns::default() }).await.unwrap();
            let newest = (0..threads).rev().map(|i| format!("r{}-2", name(i)));
            assert!(listed.iter().map(|fold| fold.run.to_string()).eq(newest), "runs are listed as they came");
        }
    }
}

#[tokio::test]
async fn a_conflict_or_a_taken_claim_makes_no_thread() {
    let store = open(&fresh_url()).await;
    let claim = |value: &str| Some(Claim { key: "k".into(), value: value.into() });
    put(&store, Append { claim: claim("1"), ..append("t", 0, blocks("r", 0, &[1])) }).await;
    let late = Append { claim: claim("2"), ..append("u", 0, blocks("r", 0, &[1])) };
    assert_eq!(put(&store, late).await, Appended::Claimed { value: "1".into() });
    let group = vec![append("v", 7, blocks("r", 7, &[1])), append("w", 0, vec![])];
    assert_eq!(store.append(group).await.unwrap(), [Appended::Conflict { head: Seq(0) }, Appended::Stored]);
    let names: Vec<_> = store.threads().await.unwrap().into_iter().map(|usage| usage.thread).collect();
    assert_eq!(names, [thread_id("t")]);
}

#[tokio::test]
async fn a_window_is_what_the_questions_say_one_by_one() {
    let store = open(&fresh_url()).await;
    let window = |run: &str, after: u64, max_bytes: usize| {
        store.window(ReadWindow { run: run_id(run), after: Seq(after), max_bytes }).unwrap()
    };
    assert!(window("t", 0, 1000).await.unwrap().is_none());
    let mut head = 0;
    for run in ["t", "other", "t", "t", "other"] {
        let mut one = append("t", head, blocks(run, head, &[3, 1]));
        one.runs = vec![fold(run, "t", RunStatus::Running)];
        assert_eq!(put(&store, one).await, Appended::Stored);
        head += 4;
    }
    store.trim(thread_id("t"), Seq(2)).await.unwrap();
    for run in ["t", "other"] {
        for after in (0..=head + 1).chain([u64::MAX - 1, u64::MAX]) {
            for max_bytes in [0, 60, 200, usize::MAX] {
                let seen = window(run, after, max_bytes).await.unwrap().unwrap();
                assert_eq!(Some(&seen.fold), store.run(run_id(run)).await.unwrap().as_ref());
                assert_eq!(seen.extent, store.extent(thread_id("t")).await.unwrap());
                let query = ReadBlocks { after: Seq(after), run: Some(run_id(run)), max_bytes, ..all_of("t") };
                assert_eq!(seen.blocks, store.read(query).await.unwrap(), "{run} {after} {max_bytes}");
            }
        }
    }
}

#[tokio::test]
async fn a_trim_goes_in_steps_and_appends_go_between() {
    let store = open(&fresh_url()).await;
    let sizes = vec![2; 1700];
    put(&store, append("t", 0, blocks("r", 0, &sizes))).await;
    let trim = store.trim(thread_id("t"), Seq(3001));
    let later = store.append(vec![append("t", 3400, blocks("r", 3400, &[1]))]);
    assert_eq!(later.await.unwrap(), [Appended::Stored]);
    let removed = trim.await.unwrap();
    assert_eq!(removed.records, 3000);
    let extent = store.extent(thread_id("t")).await.unwrap();
    assert_eq!((extent.first, extent.head), (Seq(3001), Seq(3401)));
    // Two at once remove everything once.
    let both = [store.trim(thread_id("t"), Seq(3400)), store.trim(thread_id("t"), Seq(3400))];
    let mut records = 0;
    for trim in both {
        records += trim.await.unwrap().records;
    }
    assert_eq!(records, 400);
    let usage = &store.threads().await.unwrap()[0];
    assert_eq!((usage.trimmed.records, usage.extent.first), (3400, Seq(3401)));
    assert_eq!(usage.bytes, store.read(all_of("t")).await.unwrap()[0].bytes.len() as u64);
}

#[tokio::test]
async fn a_damaged_block_is_named_and_spares_the_others() {
    let server = shared();
    let database = server.fresh_database();
    let store = open(&server.url(&database)).await;
    for i in 0..10 {
        assert_eq!(put(&store, append("t", i * 1000, blocks("r", i * 1000, &[1000]))).await, Appended::Stored);
    }
    let damages = [
        "codec = 9",
        "codec = 0",
        "raw = raw + 1",
        "raw = 2147483647",
        "raw = -1",
        "count = 1",
        "bytes = substr(bytes, 1, length(bytes) - 1)",
        "bytes = ''",
        "bytes = decode(repeat('00', length(bytes)), 'hex')",
        "run = '../x'",
        "ts = -1",
    ];
    for damage in damages {
        server.sql(&database, "CREATE TABLE good AS TABLE taffrail.blocks");
        server.sql(&database, &format!("UPDATE taffrail.blocks SET {damage} WHERE first = 3001"));
        let error = store.read(all_of("t")).await.unwrap_err();
        let StoreError::Damaged { place, detail } = &error else { panic!("{damage}: {error:?}") };
        assert!(place.contains(&database) && !error.is_transient(), "{place}");
        assert!(damage.starts_with("ts") || detail.contains("3001"), "{damage}: {detail}");
        for (after, until) in [(0, 3000), (4000, 10_000)] {
            let query = ReadBlocks { after: Seq(after), until: Seq(until), ..all_of("t") };
            assert_eq!(store.read(query).await.unwrap().len() as u64, (until - after) / 1000, "{damage}");
        }
        server.sql(&database, "TRUNCATE taffrail.blocks");
        server.sql(&database, "INSERT INTO taffrail.blocks TABLE good");
        server.sql(&database, "DROP TABLE good");
    }
    assert_eq!(store.read(all_of("t")).await.unwrap().len(), 10);
}

#[tokio::test]
async fn what_the_database_refuses_in_one_group_spares_the_others() {
    let server = shared();
    let database = server.fresh_database();
    let store = open(&server.url(&database)).await;
    put(&store, append("bad", 0, blocks("r", 0, &[1, 1]))).await;
    server.sql(&database, "UPDATE taffrail.threads SET head = 1");
    let mut waiting = Vec::new();
    for i in 0..10 {
        waiting.push(store.append(vec![append(&format!("good{i}"), 0, blocks("r", 0, &[1]))]));
        waiting.push(store.append(vec![append("bad", 1, blocks("r", 1, &[1]))]));
    }
    for (i, answer) in waiting.into_iter().enumerate() {
        match answer.await {
            Ok(answers) => assert!(i % 2 == 0 && answers == [Appended::Stored], "{i}: {answers:?}"),
            Err(error) => assert!(i % 2 == 1 && matches!(error, StoreError::Unavailable { .. }), "{i}: {error:?}"),
        }
    }
}

/// Whatever is asked is found by index, also while tables are small and nobody has looked at their sizes yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_scans_a_table() {
    let server = shared();
    let database = server.fresh_database();
    let store = Arc::new(open(&server.url(&database)).await);
    for round in 0..20 {
        let mut group = Vec::new();
        for i in 0..10 {
            let (thread, run) = (format!("t{i}"), format!("r{i}-{round}"));
            let mut one = append(&thread, round * 3, blocks(&run, round * 3, &[2, 1]));
            one.runs = vec![fold(&run, &thread, RunStatus::Running)];
            one.claim = (i == 0).then(|| Claim { key: format!("k{round}"), value: run });
            group.push(one);
        }
        assert!(store.append(group).await.unwrap().iter().all(|answer| *answer == Appended::Stored));
        for (run, backwards) in [(None, false), (None, true), (Some("r1-0"), false), (Some("r1-0"), true)] {
            let query = ReadBlocks { run: run.map(run_id), backwards, max_bytes: 100, ..all_of("t1") };
            assert!(!store.read(query).await.unwrap().is_empty());
        }
        store
            .window(ReadWindow { run: run_id("r1-0"), after: Seq(1), max_bytes: 100 })
            .unwrap()
            .await
            .unwrap()
            .unwrap();
        store.claim("k0".into()).await.unwrap().unwrap();
        store.extents((0..10).map(|i| thread_id(&format!("t{i}"))).collect()).await.unwrap();
        for status in [vec![], vec![RunStatus::Running, RunStatus::Done]] {
            for thread in [None, Some(thread_id("t3"))] {
                let before = Some(run_id("r3-0"));
                store.runs(ListRuns { status: status.clone(), thread, before, limit: 5 }).await.unwrap();
            }
        }
        store.trim(thread_id("t9"), Seq(round)).await.unwrap();
        store.forget(run_id(&format!("r8-{round}"))).await.unwrap();
    }
    // Counts come when a connection ends.
    drop(Arc::into_inner(store));
    let sql = "SELECT string_agg(relname || ' ' || seq_scan, ', ' ORDER BY relname), sum(idx_scan) > 1000
               FROM pg_stat_user_tables WHERE schemaname = 'taffrail' AND relname <> 'taffrail_format'
               -- Making an index is a scan.
               AND seq_scan > (SELECT count(*) FROM pg_index WHERE indrelid = relid)";
    let mut counted = server.sql(&database, "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_tables");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while counted.parse::<u64>().unwrap() < 1000 {
        assert!(std::time::Instant::now() < deadline, "only {counted} scans of indexes were counted");
        counted = server.sql(&database, "SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_tables");
    }
    assert_eq!(server.sql(&database, sql), "|", "tables that were scanned");
}

//! The index of runs.

use std::sync::Arc;

use taffrail_mcp_core::{RunFold, RunStatus, Seq};
use taffrail_relay::{Append, Appended, ListRuns, Store};

use super::{all_of, append, blocks, claims::claiming, fold, lines, put, run_id, thread_id};

fn with_runs(append: Append, runs: &[RunFold]) -> Append {
    Append { runs: runs.to_vec(), ..append }
}

pub(super) async fn a_fold_comes_back(store: Arc<dyn Store>) {
    let folds = [fold("full", "t", RunStatus::Suspended), RunFold::new(run_id("empty"), thread_id("t"))];
    put(&*store, with_runs(append("t", 0, blocks("full", 0, &[1])), &folds)).await;
    for fold in folds {
        assert_eq!(store.run(fold.run.clone()).await.unwrap(), Some(fold));
    }
}

pub(super) async fn state_changes_with_the_blocks(store: Arc<dyn Store>) {
    let state = |status, last| RunFold { last: Seq(last), ..fold("r", "t", status) };
    let cases = [RunStatus::Running, RunStatus::Running, RunStatus::Suspended, RunStatus::Running, RunStatus::Done];
    for (status, head) in cases.into_iter().zip(0..) {
        let fold = state(status, head + 1);
        put(&*store, with_runs(append("t", head, blocks("r", head, &[1])), std::slice::from_ref(&fold))).await;
        assert_eq!(store.run(run_id("r")).await.unwrap(), Some(fold.clone()));
        for asked in [RunStatus::Running, RunStatus::Suspended, RunStatus::Done, RunStatus::Halt] {
            let listed = store.runs(ListRuns { status: vec![asked], ..ListRuns::default() }).await.unwrap();
            assert_eq!(listed, if asked == status { vec![fold.clone()] } else { vec![] }, "{asked:?}");
        }
    }
    let late = with_runs(append("t", 2, blocks("r", 2, &[1])), &[state(RunStatus::Halt, 3)]);
    assert_eq!(put(&*store, late).await, Appended::Conflict { head: Seq(5) });
    assert_eq!(store.run(run_id("r")).await.unwrap(), Some(state(RunStatus::Done, 5)), "a conflict changes no run");
}

pub(super) async fn pages_of_runs(store: Arc<dyn Store>) {
    let statuses = [RunStatus::Running, RunStatus::Done, RunStatus::Halt, RunStatus::Suspended];
    let mut all = Vec::new();
    for i in 0..25usize {
        // Ids that do not sort as the runs began.
        let (run, thread) = (format!("r{}", (i * 7) % 25), format!("t{}", i % 3));
        let head = store.extent(thread_id(&thread)).await.unwrap().head.0;
        all.insert(0, fold(&run, &thread, statuses[i % 4]));
        put(&*store, with_runs(append(&thread, head, blocks(&run, head, &[1])), &all[..1])).await;
    }
    // A run that goes on keeps its place.
    let head = store.extent(thread_id("t1")).await.unwrap().head.0;
    let at = all.iter().rposition(|fold| fold.thread == thread_id("t1")).unwrap();
    all[at].status = RunStatus::Cancelled;
    put(&*store, with_runs(append("t1", head, blocks("x", head, &[1])), &[all[at].clone()])).await;

    let filters = [vec![], vec![RunStatus::Running], vec![RunStatus::Halt, RunStatus::Done, RunStatus::Halt]];
    for status in filters.into_iter().chain([vec![RunStatus::Cancelled], vec![RunStatus::Interrupted]]) {
        for thread in [None, Some("t0"), Some("t1"), Some("none")] {
            let thread = thread.map(thread_id);
            let wanted = |fold: &&RunFold| {
                (status.is_empty() || status.contains(&fold.status))
                    && thread.as_ref().is_none_or(|t| *t == fold.thread)
            };
            let expected: Vec<_> = all.iter().filter(wanted).cloned().collect();
            for limit in [1, 2, 10, 1000, usize::MAX] {
                let (mut before, mut found) = (None, Vec::new());
                loop {
                    let query = ListRuns { status: status.clone(), thread: thread.clone(), before, limit };
                    let page = store.runs(query).await.unwrap();
                    assert!(page.len() <= limit);
                    let Some(last) = page.last() else { break };
                    before = Some(last.run.clone());
                    found.extend(page);
                }
                assert_eq!(found, expected, "{status:?} {thread:?} {limit}");
            }
        }
    }
}

pub(super) async fn a_page_has_a_default_size(store: Arc<dyn Store>) {
    let folds: Vec<_> = (0..130).map(|i| fold(&format!("r{i}"), "t", RunStatus::Running)).collect();
    put(&*store, with_runs(append("t", 0, blocks("r0", 0, &[1])), &folds)).await;
    let page = store.runs(ListRuns::default()).await.unwrap();
    assert!(page.iter().eq(folds.iter().rev().take(100)), "the newest hundred");
    let query = ListRuns { status: vec![RunStatus::Running], ..ListRuns::default() };
    assert_eq!(store.runs(query).await.unwrap().len(), 100);
}

pub(super) async fn forgetting_a_run(store: Arc<dyn Store>) {
    for (run, head) in [("gone", 0), ("stays", 2)] {
        let runs = [fold(run, "t", RunStatus::Done)];
        let append = with_runs(append("t", head, blocks(run, head, &[2])), &runs);
        put(&*store, claiming(&format!("start:{run}"), run, append)).await;
    }
    store.forget(run_id("gone")).await.unwrap();
    assert_eq!(store.run(run_id("gone")).await.unwrap(), None);
    assert_eq!(store.claim("start:gone".into()).await.unwrap(), None);
    assert_eq!(store.claim("start:stays".into()).await.unwrap().as_deref(), Some("stays"));
    let listed = store.runs(ListRuns::default()).await.unwrap();
    assert_eq!(listed.iter().map(|fold| fold.run.as_str()).collect::<Vec<_>>(), ["stays"]);
    assert_eq!(lines(&store.read(all_of("t")).await.unwrap()).len(), 4, "records stay until trimmed");
    let again = claiming("start:gone", "again", append("t", 4, blocks("again", 4, &[1])));
    assert_eq!(put(&*store, again).await, Appended::Stored, "the claim is free");
}

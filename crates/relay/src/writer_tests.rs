//! What cannot be seen from outside: groups, and what is kept of runs.

use std::sync::atomic::{AtomicBool, Ordering};

use taffrail_mcp_core::{EventSink, RunFinished, RunId, RunStart, RunStatus, ThreadId, Usage};

use super::*;
use crate::{MemoryStore, Publisher};

fn hot(queue: &Arc<Queue>) -> (Arc<Hot>, Publisher) {
    let (pacer, _) = tokio::sync::mpsc::unbounded_channel();
    let hot = Arc::new(Hot::new(ThreadId::new("t").unwrap(), Config::default(), Seq::START, pacer));
    let publisher = publisher("r", &hot, queue);
    (hot, publisher)
}

fn publisher(run: &str, hot: &Arc<Hot>, queue: &Arc<Queue>) -> Publisher {
    // Its store is gone, so that it writes nothing itself.
    let store: Weak<dyn Store> = Weak::<MemoryStore>::new();
    Publisher::new(RunId::new(run).unwrap(), Arc::clone(hot), Arc::clone(queue), (store, Config::default()))
}

#[test]
fn a_thread_is_in_a_group_once() {
    let queue = Arc::new(Queue::new());
    let (_hot, publisher) = hot(&queue);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let emitter = scope.spawn(|| {
            let mut emitted = 0;
            while !done.load(Ordering::Relaxed) {
                publisher.emit(Note::info("x").into());
                emitted += 1;
            }
            emitted
        });
        let (mut taken, mut most) = (0, 0);
        while taken < 200_000 {
            let group = take_group(&queue, &Config::default());
            most = most.max(group.len());
            taken += group.iter().map(|taken| taken.pending.count()).sum::<u64>();
        }
        done.store(true, Ordering::Relaxed);
        let emitted = emitter.join().unwrap();
        taken += take_group(&queue, &Config::default()).iter().map(|taken| taken.pending.count()).sum::<u64>();
        assert_eq!(most, 1, "twice in one group");
        assert_eq!(taken, emitted, "all that was emitted is taken, in one group or the next");
    });
}

#[tokio::test]
async fn runs_that_rest_are_not_kept() {
    let (store, queue) = (MemoryStore::new(), Arc::new(Queue::new()));
    let (hot, _publisher) = hot(&queue);
    for i in 0..10 {
        let run = RunId::new(format!("r{i}")).unwrap();
        let publisher = publisher(run.as_str(), &hot, &queue);
        let machine = "m".to_owned();
        publisher.emit(
            RunStart { machine: machine.clone(), depth: 0, entry: "s".into(), resumed: false, external: false }.into(),
        );
        write_all(&store, &queue).await;
        assert_eq!(hot.numbering().folds.len(), 1);
        let status = if i % 2 == 0 { RunStatus::Done } else { RunStatus::Suspended };
        let usage = Usage::default();
        publisher.emit(RunFinished { machine, depth: 0, status, error: None, at: None, usage, detail: None }.into());
        write_all(&store, &queue).await;
        assert!(hot.numbering().folds.is_empty());
        // What comes late is in the state all the same.
        publisher.emit(Note::info("late").into());
        write_all(&store, &queue).await;
        let fold = store.run(run).await.unwrap().unwrap();
        assert_eq!((fold.playbook.as_str(), fold.status, fold.last), ("m", status, hot.head()));
    }
}

async fn write_all(store: &MemoryStore, queue: &Queue) {
    let mut group = take_group(queue, &Config::default());
    store_group(store, queue, &Config::default(), &mut group).await.unwrap();
    assert!(group.is_empty());
}

/// A runtime that ends while somebody writes in it leaves that to the thread, which finds out whether it was stored.
#[test]
fn what_was_begun_is_written_once_when_its_runtime_ends() {
    for stored in [false, true] {
        let store = MemoryStore::new();
        let queue = Arc::new(Queue::new());
        let (hot, publisher) = hot(&queue);
        publisher.emit(Note::info("x").into());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let turn = Arc::clone(&queue.turn).try_lock_owned().unwrap();
            let group = take_group(&queue, &Config::default());
            let mut begun = AtOnce { queue: Arc::clone(&queue), group, turn: Some(turn) };
            let taken = begun.group.first_mut().unwrap();
            number(&store, &queue, &Config::default(), taken).await.unwrap();
            if stored {
                let runs = changed_folds(&taken.hot.numbering(), taken.pending.runs());
                let (thread, expected, blocks) = (taken.hot.thread.clone(), taken.expected, taken.blocks.clone());
                store.append(vec![Append { thread, expected, blocks, runs, claim: None }]).await.unwrap();
            }
            drop(begun);
            publisher.emit(Note::info("y").into());
            queue.close();
            write(Arc::new(store.clone()), Arc::clone(&queue), Config::default()).await;
            assert_eq!(hot.head(), Seq(2), "stored before: {stored}");
            assert_eq!(store.extent(hot.thread.clone()).await.unwrap().head, Seq(2));
        });
    }
}

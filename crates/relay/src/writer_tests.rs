//! What cannot be seen from outside: groups, and what is kept of runs.

use std::sync::atomic::{AtomicBool, Ordering};

use taffrail_mcp_core::{EventSink, RunFinished, RunId, RunStart, RunStatus, ThreadId, Usage};

use super::*;
use crate::{MemoryStore, Publisher};

fn hot(queue: &Arc<Queue>) -> (Arc<Hot>, Publisher) {
    let hot = Arc::new(Hot::new(ThreadId::new("t").unwrap(), Config::default(), Seq::START));
    let publisher = Publisher::new(RunId::new("r").unwrap(), Arc::clone(&hot), Arc::clone(queue));
    (hot, publisher)
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
        let publisher = Publisher::new(run.clone(), Arc::clone(&hot), Arc::clone(&queue));
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
    let group = take_group(queue, &Config::default());
    assert!(store_group(store, queue, &Config::default(), group).await.unwrap().is_empty());
}

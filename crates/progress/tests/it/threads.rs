//! Branches on threads, with a sender that reads all the while.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use taffrail_progress::{Branch, Config, ProgressSource as _};

use crate::support::Wire;

/// Tries, splits, grows and fails, and in the end has done its part.
fn work(branch: Branch, index: usize, reports: &AtomicUsize) {
    let report = |ok: bool| {
        if ok {
            reports.fetch_add(1, Ordering::Relaxed);
        }
    };
    let failing = branch.counting_progress(Some(100));
    (0..50).for_each(|step| report(failing.emit_with(format_args!("{index}: try {step}")).is_ok()));
    let p = branch.long_progress(if index.is_multiple_of(2) { None } else { Some(100) });
    for step in 1..=100 {
        report(p.emit_with(step, format_args!("{index}: step {step}")).is_ok());
        if step % 40 == 0 {
            let _ = p.grow(step + 100);
        }
    }
    if index.is_multiple_of(3) {
        let inner = p.branches().unwrap();
        for weight in [1.0, 2.0, 0.5] {
            let part = inner.branch(weight).unwrap();
            let p = part.percent_progress();
            (1..=50).for_each(|step| report(p.emit(f64::from(step) / 50.0).is_ok()));
        }
        inner.close();
    } else {
        (101..=200).for_each(|step| report(p.emit(step).is_ok()));
        branch.done();
    }
}

#[test]
fn sixty_four_branches_on_eight_threads() {
    for count in [1, 2, 7, 64] {
        let (source, mut wire) = Wire::new(Config::default().min_interval(Duration::ZERO));
        let branches = source.percent_progress().split(&vec![1.0; count]).unwrap();
        let jobs = Mutex::new(branches.into_iter().enumerate().collect::<Vec<_>>());
        let (running, reports) = (AtomicUsize::new(8), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    loop {
                        let job = jobs.lock().unwrap().pop();
                        let Some((index, branch)) = job else { break };
                        work(branch, index, &reports);
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
            while running.load(Ordering::SeqCst) > 0 {
                wire.pass(Duration::ZERO);
            }
        });
        assert!(reports.load(Ordering::Relaxed) >= count * 250);
        let sent = wire.finish();
        let (last, before) = sent.split_last().unwrap();
        assert_eq!(last.progress, 1.0);
        assert!(before.iter().all(|one| one.progress < 1.0));
    }
}

//! Branches of every kind, against a model that knows only what complete means.

use std::time::Duration;

use proptest::prelude::*;
use taffrail_progress::{
    Branch, Branches, Config, CountingProgress, DoubleProgress, LongProgress, PercentProgress, ProgressError,
    ProgressSource as _, Source,
};

use crate::support::{HALF, Wire, numbers};

/// A branch, and what the model knows about it.
struct Part {
    branch: Option<Branch>,
    tried: Try,
    done: bool,
}

enum Try {
    Nothing,
    Count { emitter: LongProgress, value: i64, total: Option<i64> },
    Parts { set: Option<Branches>, closed: bool, parts: Vec<Part> },
}

impl Part {
    fn new(branch: Branch) -> Self {
        Self { branch: Some(branch), tried: Try::Nothing, done: false }
    }

    fn complete(&self) -> bool {
        self.done || self.branch.is_none() && self.tried.complete()
    }
}

impl Try {
    fn complete(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Count { value, total, .. } => total.is_some_and(|total| *value >= total),
            Self::Parts { closed, parts, .. } => *closed && parts.iter().all(Part::complete),
        }
    }

    fn split(branches: Result<Vec<Branch>, ProgressError>) -> Self {
        let parts = branches.map(|branches| branches.into_iter().map(Part::new).collect());
        parts.map_or(Self::Nothing, |parts| Self::Parts { set: None, closed: true, parts })
    }
}

/// One thing that is done somewhere.
#[derive(Debug, Clone)]
struct Act {
    /// Which way to take at each fork.
    way: Vec<u8>,
    what: u8,
    number: u8,
    pause_ms: u64,
}

fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    let act = (prop::collection::vec(any::<u8>(), 4), any::<u8>(), any::<u8>(), 0u64..2000);
    let act = act.prop_map(|(way, what, number, pause_ms)| Act { way, what, number, pause_ms });
    prop::collection::vec(act, 0..most)
}

fn weights(seed: u8, count: usize) -> Vec<f64> {
    (0..count).map(|index| [1.0, 0.001, 3.0, 1e9, 1e-9][(index + usize::from(seed)) % 5]).collect()
}

fn act(tried: &mut Try, act: &Act, depth: usize) {
    let Try::Parts { set, closed, parts } = tried else { return };
    let here = act.way.get(depth).copied().unwrap_or(0);
    if parts.is_empty() || here.is_multiple_of(8) {
        match (&*set, act.what % 8) {
            (Some(set), 0) => {
                set.close();
                *closed = true;
            }
            (Some(set), _) => match set.branch(weights(act.number, 1)[0]) {
                Ok(branch) => parts.push(Part::new(branch)),
                Err(error) => assert!(*closed || error == ProgressError::Complete),
            },
            (None, _) => {}
        }
        return;
    }
    let index = usize::from(here) % parts.len();
    let part = &mut parts[index];
    if act.what.is_multiple_of(3) && matches!(part.tried, Try::Parts { .. }) {
        return self::act(&mut part.tried, act, depth + 1);
    }
    match act.what % 16 {
        0..=3 => {
            if let Some(branch) = &part.branch {
                let total = [None, Some(1), Some(i64::from(act.number) + 1), Some(i64::MAX)][usize::from(act.what % 4)];
                part.tried = Try::Count { emitter: branch.long_progress(total), value: 0, total };
            }
        }
        4..=9 => {
            if let Try::Count { emitter, value, .. } = &mut part.tried {
                let next = *value + i64::from(act.number);
                if emitter.emit_with(next, format_args!("at {next}")).is_ok() {
                    *value = next;
                }
            }
        }
        10 => {
            if let Try::Count { emitter, value, total } = &mut part.tried {
                let new = *value + i64::from(act.number);
                if emitter.grow(new).is_ok() {
                    assert!(total.is_none_or(|total| new > total && *value < total));
                    *total = Some(new);
                }
            }
        }
        11 | 12 => {
            let complete = part.tried.complete();
            if let Try::Count { .. } = part.tried
                && !complete
                && depth < 3
                && let Try::Count { emitter, .. } = std::mem::replace(&mut part.tried, Try::Nothing)
            {
                part.tried = if act.what.is_multiple_of(2) {
                    Try::split(emitter.split(&weights(act.number, usize::from(act.number % 5) + 1)))
                } else {
                    let set = emitter.branches().ok();
                    Try::Parts { set, closed: false, parts: Vec::new() }
                };
            }
        }
        13 => {
            if let Some(branch) = part.branch.take() {
                branch.done();
                part.done = true;
            }
        }
        14 => part.branch = None,
        _ => {
            if act.number.is_multiple_of(4)
                && let Some(branch) = part.branch.take()
            {
                branch.abandon();
                parts.remove(index);
            }
        }
    }
}

/// Ends everything below, well.
fn end(tried: &mut Try) {
    let Try::Parts { set, closed, parts } = tried else { return };
    for part in parts {
        if let Some(branch) = part.branch.take() {
            branch.done();
            part.done = true;
        } else if let Try::Count { emitter, value, total: Some(total) } = &mut part.tried {
            while *value < *total {
                *value = *total;
                // The last number may be one that widening makes equal to one before; then it is reached.
                let _ = emitter.emit(*value);
            }
        } else {
            end(&mut part.tried);
        }
    }
    if let Some(set) = set {
        set.close();
        *closed = true;
    }
}

fn script(source: &Source, mut wire: Wire, total: Option<f64>, count: usize, acts: &[Act], well: bool) {
    let emitter = source.double_progress(total);
    let mut root = if count == 0 {
        Try::Parts { set: Some(emitter.branches().unwrap()), closed: false, parts: Vec::new() }
    } else {
        Try::split(emitter.split(&weights(count as u8, count)))
    };
    let whole = total.unwrap_or(1.0);
    for one in acts {
        act(&mut root, one, 0);
        wire.pass(Duration::from_millis(one.pause_ms));
        if !root.complete() {
            assert!(wire.sent.iter().all(|sent| sent.progress < whole), "complete too early: {:?}", wire.sent.last());
        }
    }
    if well {
        end(&mut root);
    }
    let sent = wire.finish();
    let last = sent.last().map(|last| last.progress);
    assert_eq!(last.is_some_and(|last| last >= whole), root.complete() && !sent.is_empty());
    assert!(sent.iter().all(|one| one.progress <= whole && one.total == total));
    if root.complete() {
        assert_eq!(last, Some(whole));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_branches_do_the_stream_increases_and_is_complete_only_in_the_end(
        count in 0usize..=64,
        total in prop_oneof![
            Just(None), Just(Some(1.0)), Just(Some(64.0)), Just(Some(f64::MAX)), Just(Some(f64::MIN_POSITIVE)),
            Just(Some(f64::from_bits(1))),
        ],
        acts in acts(250),
        well in any::<bool>(),
    ) {
        let (source, wire) = Wire::new(Config::default());
        script(&source, wire, total, count, &acts, well);
    }
}

#[test]
fn every_number_of_branches_adds_up_exactly() {
    for count in 1..=64 {
        let (source, mut wire) = Wire::new(Config::default());
        let branches = source.long_progress(Some(count)).split(&vec![1.0; count as usize]).unwrap();
        for (index, branch) in branches.into_iter().enumerate() {
            let p = branch.counting_progress(Some(4));
            (0..4).for_each(|_| p.emit().unwrap());
            drop(branch);
            wire.pass(HALF);
            let shown = wire.sent.last().unwrap().progress;
            assert!((shown - (index as f64 + 1.0)).abs() < 1e-9, "{shown} of {count}");
        }
        let sent = wire.finish();
        assert_eq!(sent.last().unwrap().progress, count as f64);
    }
}

#[test]
fn every_kind_of_emitter_can_be_split_and_be_a_branch() {
    fn half(p: [Branch; 4]) {
        p[0].double_progress(Some(0.5)).emit(0.25).unwrap();
        p[1].long_progress(Some(10)).emit(5).unwrap();
        let count = p[2].counting_progress(Some(2));
        count.emit().unwrap();
        p[3].percent_progress().emit(0.5).unwrap();
    }
    type Split = fn(&Source) -> Result<Vec<Branch>, ProgressError>;
    let kinds: [Split; 4] = [
        |source| DoubleProgress::split(source.double_progress(Some(1.0)), &[1.0; 4]),
        |source| LongProgress::split(source.long_progress(Some(1)), &[1.0; 4]),
        |source| CountingProgress::split(source.counting_progress(Some(1)), &[1.0; 4]),
        |source| PercentProgress::split(source.percent_progress(), &[1.0; 4]),
    ];
    for split in kinds {
        let (source, wire) = Wire::new(Config::default());
        half(split(&source).unwrap().try_into().unwrap());
        assert_eq!(numbers(&wire.finish()), [0.5]);
    }
}

#[test]
fn what_was_reported_before_a_split_stays() {
    let (source, mut wire) = Wire::new(Config::default());
    let p = source.counting_progress(Some(10));
    (0..5).for_each(|_| p.emit().unwrap());
    wire.pass(HALF);
    let parts = p.split(&[1.0, 1.0]).unwrap();
    parts[0].percent_progress().emit(0.8).unwrap();
    wire.pass(HALF);
    assert_eq!(numbers(&wire.finish()), [5.0, 7.0]);
}

#[test]
fn a_message_of_a_branch_goes_out_although_the_whole_stands_still() {
    let (source, mut wire) = Wire::new(Config::default());
    let parts = source.percent_progress().split(&[1.0, 1.0]).unwrap();
    parts[0].counting_progress(Some(2)).emit_with("first try").unwrap();
    wire.pass(HALF);
    // Another try begins at nothing, which the wire does not show.
    parts[0].long_progress(Some(2)).emit_with(0, "second try").unwrap();
    wire.pass(HALF);
    let sent = wire.finish();
    assert_eq!(sent.iter().filter_map(|one| one.message.as_deref()).collect::<Vec<_>>(), ["first try", "second try"]);
    assert!(sent[1].progress < 0.2505, "{sent:?}");
}

#[test]
fn a_stale_tree_is_no_longer_heard() {
    let (source, mut wire) = Wire::new(Config::default());
    let old = source.percent_progress().split(&[1.0]).unwrap();
    let new = source.percent_progress().split(&[1.0, 1.0]).unwrap();
    drop(old.into_iter().map(Branch::done).collect::<Vec<_>>());
    wire.pass(HALF);
    new[0].percent_progress().emit(0.5).unwrap();
    assert_eq!(numbers(&wire.finish()), [0.0, 0.25]);
}

#[test]
fn wrong_splits_are_told() {
    let source = Source::silent();
    let split = |weights: &[f64]| source.percent_progress().split(weights).map(drop);
    assert_eq!(split(&[]), Err(ProgressError::NoBranches));
    assert_eq!(split(&[1.0, -1.0]), Err(ProgressError::BadWeight { weight: -1.0 }));
    let p = source.percent_progress();
    assert_eq!(source.double_progress(Some(2.0)).grow(3.0), Err(ProgressError::FixedTotal));
    p.emit(1.0).unwrap();
    assert_eq!(p.split(&[1.0]).map(drop), Err(ProgressError::Complete));
}

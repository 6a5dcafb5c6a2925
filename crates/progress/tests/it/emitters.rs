//! What each emitter accepts, with and without a token.

use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use taffrail_progress::{Config, ProgressError, ProgressSource as _, Source};

use crate::support::{HALF, Wire, numbers};

/// Does the same with a stream that is sent and with one that is not: the answers must be the same.
#[track_caller]
fn both(answers: impl Fn(&Source) -> Vec<Result<(), ProgressError>>) -> (Vec<Result<(), ProgressError>>, Vec<f64>) {
    let (source, mut wire) = Wire::new(Config::default());
    let with = answers(&source);
    wire.pass(HALF);
    let without = answers(&Source::silent());
    // Errors may hold NaN, which is not equal to itself.
    assert_eq!(format!("{with:?}"), format!("{without:?}"));
    (with, numbers(&wire.finish()))
}

#[test]
fn what_is_refused_is_not_sent() {
    let (answers, sent) = both(|source| {
        let p = source.double_progress(Some(10.0));
        [3.5, 3.5, f64::NAN, 2.0, f64::INFINITY].map(|value| p.emit(value)).to_vec()
    });
    assert_eq!(answers[0], Ok(()));
    assert_eq!(answers[1], Err(ProgressError::NotGreater { value: 3.5, last: 3.5 }));
    assert!(matches!(answers[2], Err(ProgressError::NotFinite { value }) if value.is_nan()));
    assert_eq!(answers[3], Err(ProgressError::NotGreater { value: 2.0, last: 3.5 }));
    assert_eq!(answers[4], Err(ProgressError::NotFinite { value: f64::INFINITY }));
    assert_eq!(sent, [3.5]);
}

#[test]
fn whole_numbers_are_compared_as_the_wire_has_them() {
    let (answers, sent) = both(|source| {
        let p = source.long_progress(None);
        [1 << 53, (1 << 53) + 1, (1 << 53) + 2, i64::MAX, i64::MAX - 1].map(|value| p.emit(value)).to_vec()
    });
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, true, false]);
    assert_eq!(sent, [i64::MAX as f64]);
}

#[test]
fn fractions_stay_within_nothing_and_all() {
    let (answers, sent) = both(|source| {
        let p = source.percent_progress();
        [-0.0, 0.0, -0.1, 1.0000000000000002, f64::NAN, 1.0, 1.0].map(|value| p.emit(value)).to_vec()
    });
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false, false, false, true, false]);
    assert_eq!(answers[3], Err(ProgressError::OutOfRange { value: 1.0000000000000002 }));
    assert_eq!(sent, [1.0]);
    let (source, wire) = Wire::new(Config::default());
    source.percent_progress().emit(-0.0).unwrap();
    let sent = wire.finish();
    assert_eq!((sent[0].progress.to_bits(), sent[0].total), (0, Some(1.0)), "and zero has no sign");
}

#[test]
fn totals_that_are_none_are_told_at_each_report() {
    let (answers, sent) = both(|source| {
        let doubles =
            [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY].map(|total| source.double_progress(Some(total)).emit(1.0));
        let mut answers = doubles.to_vec();
        answers.push(source.long_progress(Some(-5)).emit_with(1, "x"));
        answers.push(source.counting_progress(Some(0)).emit());
        answers.push(source.counting_progress(Some(0)).split(&[1.0]).map(drop));
        answers
    });
    assert!(answers.iter().all(|answer| matches!(answer, Err(ProgressError::BadTotal { .. }))), "{answers:?}");
    assert!(sent.is_empty());
}

#[test]
fn emitters_of_one_request_go_on_from_each_other() {
    let (source, mut wire) = Wire::new(Config::default());
    let count = source.counting_progress(Some(3));
    count.emit().unwrap();
    wire.pass(HALF);
    assert_eq!(source.percent_progress().emit(0.5), Err(ProgressError::NotGreater { value: 0.5, last: 1.0 }));
    source.double_progress(None).emit(2.5).unwrap();
    wire.pass(HALF);
    count.emit().unwrap();
    let sent = wire.finish();
    assert_eq!(numbers(&sent), [1.0, 2.5, 3.0]);
    assert_eq!(sent[0].total, Some(3.0));
    assert_eq!(sent[2].total, None, "the emitter that was made last has the say");
}

#[test]
fn a_request_that_is_retried_starts_afresh() {
    for _ in 0..2 {
        let (source, wire) = Wire::new(Config::default());
        source.counting_progress(Some(2)).emit().unwrap();
        assert_eq!(numbers(&wire.finish()), [1.0]);
    }
}

#[test]
fn an_emitter_that_many_threads_share_sends_increasing_numbers() {
    let (source, mut wire) = Wire::new(Config::default().min_interval(std::time::Duration::ZERO));
    let p = source.counting_progress(None);
    let running = AtomicUsize::new(8);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (p, running) = (&p, &running);
            scope.spawn(move || {
                for step in 0..2000 {
                    p.emit_with(format_args!("thread {thread} step {step}")).unwrap();
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while running.load(Ordering::SeqCst) > 0 {
            wire.pass(std::time::Duration::ZERO);
        }
    });
    let sent = wire.finish();
    assert_eq!(sent.last().map(|last| last.progress), Some(16_000.0));
    assert!(sent.last().unwrap().message.as_deref().unwrap().ends_with("step 1999"), "{:?}", sent.last());
}

proptest! {
    #[test]
    fn any_numbers_make_an_increasing_stream(
        values in prop::collection::vec(prop_oneof![any::<f64>(), -10.0..10.0, Just(0.0), Just(-0.0)], 0..60),
        total in prop::option::of(any::<f64>()),
        pauses in prop::collection::vec(0u64..40_000, 60),
    ) {
        let (source, mut wire) = Wire::new(Config::default());
        let p = source.double_progress(total);
        let mut last = f64::NEG_INFINITY;
        let valid = total.is_none_or(|total| total.is_finite() && total > 0.0);
        for (value, pause) in values.iter().zip(pauses) {
            let expected = valid && value.is_finite() && *value > last;
            prop_assert_eq!(p.emit(*value).is_ok(), expected);
            if expected {
                last = *value;
            }
            wire.pass(std::time::Duration::from_millis(pause));
        }
        wire.finish();
    }
}

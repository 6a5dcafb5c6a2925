//! How often, what, and what while nothing moves.

use std::time::Duration;

use taffrail_progress::{Config, Next, ProgressSource as _, ProgressToken, channel};

use crate::support::{HALF, Wire, numbers};

const BEAT: Duration = Duration::from_secs(15);

#[test]
fn at_most_two_a_second_and_the_latest_wins() {
    let (source, mut wire) = Wire::new(Config::default());
    let p = source.long_progress(Some(1000));
    for step in 1..=1000 {
        p.emit_with(step, format_args!("step {step}")).unwrap();
        wire.pass(Duration::from_millis(10));
    }
    assert!((20..=21).contains(&wire.sent.len()), "ten seconds: {}", wire.sent.len());
    let sent = wire.finish();
    for one in &sent {
        assert_eq!(one.message.as_deref(), Some(format!("step {}", one.progress).as_str()));
    }
    assert_eq!(sent.last().map(|last| last.progress), Some(1000.0));
}

#[test]
fn the_interval_can_be_set() {
    let (source, mut wire) = Wire::new(Config::default().min_interval(Duration::from_secs(3)));
    let p = source.counting_progress(None);
    for _ in 0..90 {
        p.emit().unwrap();
        wire.pass(Duration::from_millis(100));
    }
    assert_eq!(numbers(&wire.sent), [1.0, 30.0, 60.0, 90.0]);
}

#[test]
fn the_last_one_does_not_wait_for_its_time_and_is_not_sent_twice() {
    let (source, mut wire) = Wire::new(Config::default());
    let p = source.counting_progress(Some(2));
    p.emit().unwrap();
    wire.pass(Duration::from_millis(1));
    p.emit_with("done").unwrap();
    let sent = wire.finish();
    assert_eq!(numbers(&sent), [1.0, 2.0]);
    assert_eq!(sent[1].message.as_deref(), Some("done"));

    let (source, mut wire) = Wire::new(Config::default());
    source.counting_progress(Some(2)).emit().unwrap();
    wire.pass(HALF);
    assert_eq!(numbers(&wire.finish()), [1.0]);
}

#[test]
fn nothing_comes_after_the_end() {
    let (source, mut outlet) = channel(ProgressToken::Text("t".into()), Config::default(), || {});
    let p = source.counting_progress(None);
    p.emit().unwrap();
    assert!(outlet.finish().is_some());
    p.emit_with("late").unwrap();
    assert_eq!(outlet.poll(std::time::Instant::now()), Next::Sleep(None));
    assert_eq!(outlet.finish(), None);
    drop(outlet);
    p.emit().unwrap();
}

#[test]
fn a_request_without_an_emitter_is_left_alone() {
    let (_source, mut wire) = Wire::new(Config::default());
    wire.pass(BEAT * 10);
    assert!(wire.finish().is_empty());
}

#[test]
fn a_heartbeat_increases_and_never_reaches_the_next_number() {
    let (source, mut wire) = Wire::new(Config::default());
    let p = source.counting_progress(Some(3));
    wire.pass(BEAT - Duration::from_millis(1));
    assert!(wire.sent.is_empty());
    wire.pass(BEAT * 4);
    assert_eq!(wire.sent[0].progress, 0.0, "nothing done yet is no lie");
    assert_eq!(wire.sent.len(), 4);
    p.emit_with("one").unwrap();
    wire.pass(Duration::from_secs(24 * 3600));
    assert_eq!(wire.sent[4].progress, 1.0);
    assert_eq!(wire.sent.len(), 5 + 24 * 240);
    assert!(wire.sent.iter().all(|one| one.progress < 2.0));
    assert_eq!(wire.sent.last().unwrap().message.as_deref(), Some("one"));
    p.emit().unwrap();
    wire.pass(HALF);
    assert_eq!(wire.sent.last().unwrap().progress, 2.0);
    p.emit().unwrap();
    wire.pass(BEAT * 10);
    assert_eq!(wire.finish().last().unwrap().progress, 3.0, "after the end there is no room");
}

#[test]
fn a_heartbeat_of_fractions_stays_within_a_thousandth_of_what_is_left() {
    let (source, mut wire) = Wire::new(Config::default());
    let p = source.percent_progress();
    p.emit(0.5).unwrap();
    wire.pass(BEAT * 1000);
    assert_eq!(wire.sent.len(), 1001);
    assert!(wire.sent.last().unwrap().progress < 0.5005);
    // A number that the beats have passed is not lost: the wire goes on from where it is.
    p.emit_with(0.5 + f64::EPSILON, "a little").unwrap();
    wire.pass(HALF);
    assert_eq!(wire.sent.last().unwrap().message.as_deref(), Some("a little"));
    p.emit(1.0).unwrap();
    assert_eq!(wire.finish().last().unwrap().progress, 1.0);
}

#[test]
fn the_heartbeat_can_be_set_and_switched_off() {
    let (source, mut wire) = Wire::new(Config::default().heartbeat(Some(Duration::from_secs(1))));
    source.counting_progress(None).emit().unwrap();
    wire.pass(Duration::from_secs(10));
    assert_eq!(wire.sent.len(), 11);
    let (source, mut wire) = Wire::new(Config::default().heartbeat(None));
    source.counting_progress(None).emit().unwrap();
    wire.pass(BEAT * 100);
    assert_eq!(wire.finish().len(), 1);
}

#[test]
fn a_message_is_one_short_line() {
    let (source, wire) = Wire::new(Config::default());
    let text = format!("compiled\n{}", "x".repeat(400));
    source.counting_progress(None).emit_with(text).unwrap();
    let sent = wire.finish();
    let message = sent[0].message.as_deref().unwrap();
    assert!(message.starts_with("compiled xxx") && message.ends_with('…'));
    assert_eq!(message.chars().count(), 200);
}

#[test]
fn a_sleeping_outlet_is_woken_by_the_next_report_and_once() {
    let (send, woken) = std::sync::mpsc::channel();
    let (source, mut outlet) =
        channel(ProgressToken::Number(1), Config::default(), move || send.send(()).unwrap_or_default());
    let now = std::time::Instant::now();
    assert_eq!(outlet.poll(now), Next::Sleep(None));
    let p = source.counting_progress(None);
    assert_eq!(woken.try_iter().count(), 1, "an emitter has to be told of: its heartbeat begins");
    p.emit().unwrap();
    p.emit().unwrap();
    assert_eq!(woken.try_iter().count(), 0);
    assert!(matches!(outlet.poll(now), Next::Send(_)));
    assert!(matches!(outlet.poll(now), Next::Sleep(Some(_))));
    p.emit().unwrap();
    p.emit().unwrap();
    assert_eq!(woken.try_iter().count(), 1);
    assert!(matches!(outlet.poll(now), Next::Pause(_)));
    p.emit().unwrap();
    assert_eq!(woken.try_iter().count(), 0, "while it pauses nobody wakes it");
}

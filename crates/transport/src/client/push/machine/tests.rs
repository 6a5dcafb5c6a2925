//! Servers that come and go, in no time.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::client::Refusal;

const S: Duration = Duration::from_secs(1);

fn refusal(status: u16, code: &str, expected: Option<u64>) -> ClientError {
    let mut members = Map::new();
    members.extend(expected.map(|expected| ("expected".to_owned(), json!(expected))));
    let (code, detail) = (code.to_owned(), "x".to_owned());
    ClientError::Refused(Box::new(Refusal { status, code, detail, retry_after: None, members }))
}

fn unreachable() -> ClientError {
    ClientError::Unreachable { server: "x".to_owned(), source: Arc::new(std::io::Error::other("x")) }
}

fn timed_out() -> ClientError {
    ClientError::TimedOut { server: "x".to_owned(), waited: S }
}

/// A run that is made, at the event with this number.
fn machine(now: Instant, next: u64) -> Machine {
    Machine::new(now, RetryConfig::default(), true, next)
}

fn sending(count: u64, bytes: usize) -> Begun {
    Begun::Sending { count, bytes, last: false }
}

#[test]
fn the_run_is_made_first_however_long_that_takes() {
    let mut now = Instant::now();
    let mut machine = Machine::new(now, RetryConfig::default(), false, 1);
    for n in 0..50 {
        assert_eq!(machine.step(now), Step::Make);
        machine.begin(now, Begun::Making);
        assert_eq!(machine.step(now), Step::GoOn);
        assert_eq!(machine.failed(now, &unreachable(), u64::MAX), Verdict::Again);
        let Step::Wait { until } = machine.step(now) else { panic!() };
        assert!(until - now <= 30 * S, "{n}: {:?}", until - now);
        now = until;
    }
    machine.begin(now, Begun::Making);
    assert_eq!(machine.accepted(now), 0);
    assert_eq!(machine.step(now), Step::Send { from: 1, most_bytes: BATCH.0 });
}

#[test]
fn little_waits_a_moment_and_much_does_not() {
    let now = Instant::now();
    let mut machine = machine(now, 1);
    machine.begin(now, sending(3, 600));
    assert_eq!(machine.accepted(now), 3);
    assert_eq!(machine.step(now), Step::Wait { until: now + PACE });
    let later = now + PACE;
    assert_eq!(machine.step(later), Step::Send { from: 4, most_bytes: 2 * BATCH.0 });
    machine.begin(later, sending(1000, 2 * BATCH.0 - 100));
    machine.accepted(later);
    assert_eq!(machine.step(later), Step::Send { from: 1004, most_bytes: BATCH.2 });
    // The first after a pause does not wait.
    machine.begin(later, sending(1, 200));
    machine.accepted(later);
    machine.nothing();
    machine.more();
    assert!(matches!(machine.step(later + S), Step::Send { .. }));
}

#[test]
fn a_quiet_run_says_that_it_is_alive() {
    let now = Instant::now();
    let mut machine = machine(now, 5);
    machine.nothing();
    assert_eq!(machine.step(now + S), Step::Idle { until: now + BEAT });
    assert_eq!(machine.step(now + BEAT), Step::Beat { next: 5 });
    machine.begin(now + BEAT, Begun::Beating);
    assert_eq!(machine.accepted(now + BEAT), 4);
    assert_eq!(machine.step(now + BEAT), Step::Idle { until: now + 2 * BEAT });
    // Events say so, too.
    machine.more();
    machine.begin(now + 9 * S, sending(1, 100));
    machine.accepted(now + 9 * S);
    machine.nothing();
    assert_eq!(machine.step(now + 10 * S), Step::Idle { until: now + 14 * S });
}

#[test]
fn a_server_that_misses_events_gets_them_at_once() {
    let now = Instant::now();
    let mut machine = machine(now, 100);
    machine.begin(now, sending(10, 100));
    assert_eq!(machine.failed(now, &refusal(409, "hole", Some(40)), 0), Verdict::Corrected);
    assert_eq!(machine.step(now + S), Step::Send { from: 40, most_bytes: BATCH.0 });
    // One that asks for what it has just refused is not asked in circles.
    machine.begin(now, sending(10, 100));
    assert_eq!(machine.failed(now, &refusal(409, "hole", Some(40)), 0), Verdict::GiveUp);
    // More has arrived than was known here.
    let mut machine = self::machine(now, 1);
    machine.begin(now, Begun::Beating);
    assert_eq!(machine.failed(now, &refusal(409, "hole", Some(70)), 0), Verdict::Corrected);
    machine.begin(now, sending(10, 100));
    assert_eq!(machine.accepted(now), 79);
}

#[test]
fn batches_shrink_where_they_do_not_get_through() {
    let now = Instant::now();
    let mut machine = machine(now, 1);
    let mut most = BATCH.2;
    for _ in 0..10 {
        machine.begin(now, sending(100, most));
        assert_eq!(machine.failed(now, &timed_out(), 0), Verdict::Again);
        let Step::Send { most_bytes, .. } = machine.step(now + 40 * S) else { panic!() };
        assert!(most_bytes < most || most_bytes == BATCH.1, "{most_bytes}");
        most = most_bytes;
    }
    assert_eq!(most, BATCH.1);
    // Too large is too large: down to one event, and then there is no way.
    for _ in 0..20 {
        machine.begin(now, sending(2, most));
        assert_eq!(machine.failed(now, &refusal(413, "too-large", None), 0), Verdict::Again);
        let Step::Send { most_bytes, .. } = machine.step(now + 40 * S) else { panic!() };
        most = most_bytes;
    }
    assert_eq!(most, 1);
    machine.begin(now, sending(1, 2 << 20));
    assert_eq!(machine.failed(now, &refusal(413, "too-large", None), 0), Verdict::GiveUp);
}

#[test]
fn what_is_in_vain_is_given_up() {
    let now = Instant::now();
    for (status, code) in
        [(400, "bad-line"), (401, "unauthorized"), (403, "unknown-host"), (404, "no-run"), (409, "run-over")]
    {
        let mut machine = machine(now, 1);
        machine.begin(now, sending(1, 100));
        assert_eq!(machine.failed(now, &refusal(status, code, None), 0), Verdict::GiveUp, "{code}");
    }
    for (status, code) in [(429, "too-many-requests"), (500, "internal"), (503, "closing")] {
        let mut machine = machine(now, 1);
        machine.begin(now, sending(1, 100));
        assert_eq!(machine.failed(now, &refusal(status, code, None), 0), Verdict::Again, "{code}");
    }
    // What answers in the place of the server may go away again.
    let between = |status| ClientError::NotTaffrail {
        server: "x".to_owned(),
        status,
        content_type: "text/html".to_owned(),
        retry_after: None,
    };
    for status in [200, 404, 502] {
        let mut machine = machine(now, 1);
        machine.begin(now, Begun::Beating);
        assert_eq!(machine.failed(now, &between(status), 0), Verdict::Again);
    }
}

#[test]
fn in_a_hurry_nothing_waits_long() {
    let mut now = Instant::now();
    let mut machine = machine(now, 1);
    for _ in 0..20 {
        machine.begin(now, sending(1, 100));
        machine.failed(now, &unreachable(), u64::MAX);
        now += 40 * S;
    }
    machine.begin(now, sending(1, 100));
    machine.failed(now, &unreachable(), u64::MAX);
    machine.hurry();
    for _ in 0..20 {
        assert!(matches!(machine.step(now), Step::Send { .. }));
        machine.begin(now, sending(1, 100));
        machine.failed(now, &unreachable(), u64::MAX);
        let Step::Wait { until } = machine.step(now) else { panic!() };
        assert!(until - now <= S);
        now = until;
    }
    machine.begin(now, sending(1, 100));
    machine.accepted(now);
    assert!(matches!(machine.step(now), Step::Send { .. }), "no pace either");
    machine.begin(now, Begun::Sending { count: 1, bytes: 100, last: true });
    machine.accepted(now);
    assert_eq!(machine.step(now), Step::Done);
}

/// A server, by the contract: it takes what comes next, knows what it has, and refuses what would leave a hole.
#[derive(Default)]
struct Server {
    has: u64,
}

impl Server {
    fn take(&mut self, from: u64, count: u64) -> Result<(), ClientError> {
        if from > self.has + 1 {
            return Err(refusal(409, "hole", Some(self.has + 1)));
        }
        self.has = self.has.max(from + count - 1);
        Ok(())
    }
}

proptest! {
    /// Whatever gets lost, the server ends with every event, and is never sent one that it must refuse for long.
    #[test]
    fn every_event_arrives(
        total in 1..200u64,
        known in 0..250u64,
        fates in prop::collection::vec((0..6u8, 1..20u64, any::<u64>()), 0..100),
    ) {
        let mut now = Instant::now();
        let mut server = Server { has: known.min(total) / 2 };
        // What this producer remembers may be too much or too little.
        let mut machine = Machine::new(now, RetryConfig::default(), false, known.min(total).max(1));
        let mut fates = fates.into_iter();
        let mut requests = 0;
        loop {
            requests += 1;
            prop_assert!(requests < 2000, "it goes in circles");
            let (fate, size, random) = fates.next().unwrap_or((9, 50, 0));
            match machine.step(now) {
                Step::Done => break,
                Step::Wait { until } | Step::Idle { until } => now = until,
                Step::GoOn => unreachable!(),
                Step::Make => {
                    machine.begin(now, Begun::Making);
                    match fate {
                        0 | 1 => _ = machine.failed(now, &unreachable(), random),
                        _ => _ = machine.accepted(now),
                    }
                }
                Step::Beat { next } => {
                    machine.begin(now, Begun::Beating);
                    match server.take(next, 0) {
                        Ok(()) => _ = machine.accepted(now),
                        Err(error) => prop_assert_eq!(machine.failed(now, &error, random), Verdict::Corrected),
                    }
                }
                Step::Send { from, .. } => {
                    let count = size.min((total + 1).saturating_sub(from));
                    if count == 0 {
                        machine.nothing();
                        continue;
                    }
                    machine.begin(now, Begun::Sending { count, bytes: 100, last: from + count > total });
                    let taken = match fate {
                        // Lost on the way there.
                        0 => Err(unreachable()),
                        // Taken, and the answer lost.
                        1 => server.take(from, count).and(Err(timed_out())),
                        // A part was taken, then the connection broke.
                        2 => server.take(from, count.div_ceil(2)).and(Err(unreachable())),
                        3 => Err(refusal(503, "unavailable", None)),
                        // The same twice: an intermediary tried again.
                        4 => server.take(from, count).and_then(|()| server.take(from, count)),
                        _ => server.take(from, count),
                    };
                    match taken {
                        Ok(()) => prop_assert!(machine.accepted(now) <= server.has),
                        Err(error) => prop_assert_ne!(machine.failed(now, &error, random), Verdict::GiveUp),
                    }
                }
            }
        }
        prop_assert_eq!(server.has, total);
    }
}

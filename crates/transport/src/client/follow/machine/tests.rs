//! Hours of bad connections, in no time.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Map;

use super::*;
use crate::client::Refusal;

const S: Duration = Duration::from_secs(1);
/// The longest jitter.
const MOST: u64 = u64::MAX;

/// A machine and its time.
struct Pair {
    machine: Machine,
    now: Instant,
}

impl Pair {
    fn new() -> Self {
        Self { machine: Machine::new(FollowConfig::default(), RetryConfig::default(), true), now: Instant::now() }
    }

    fn pass(&mut self, time: Duration) -> &mut Self {
        self.now += time;
        self
    }

    fn page(&mut self, empty: bool) {
        self.machine.page(self.now, empty);
    }

    /// What is done next, after waiting for it; and how long that took.
    fn next(&mut self) -> (Step, Duration) {
        let start = self.now;
        loop {
            match self.machine.step(self.now) {
                Step::Wait { until } => self.now = until,
                step => return (step, self.now - start),
            }
        }
    }

    #[track_caller]
    fn stream(&mut self) -> Duration {
        let (step, waited) = self.next();
        assert_eq!(step, Step::Stream);
        waited
    }

    /// Lets the deadline pass.
    fn too_late(&mut self) -> Duration {
        let deadline = self.machine.deadline().unwrap();
        let waited = deadline - self.now;
        self.now = deadline;
        assert_eq!(self.machine.failed(self.now, Failure::TooLate, MOST), Outlook::Trouble);
        waited
    }

    fn closed(&mut self) -> Outlook {
        self.machine.failed(self.now, Failure::Closed, MOST)
    }

    fn heard(&mut self, progress: bool) -> bool {
        self.machine.heard(self.now, progress)
    }

    fn opened(&mut self) {
        self.machine.opened(self.now);
    }
}

fn refusal(status: u16, retry_after: Option<Duration>) -> ClientError {
    let (code, detail) = ("x".to_owned(), "x".to_owned());
    ClientError::Refused(Box::new(Refusal { status, code, detail, retry_after, members: Map::new() }))
}

fn unreachable() -> ClientError {
    let source = Arc::new(std::io::Error::other("refused"));
    ClientError::Unreachable { server: "http://h".to_owned(), source }
}

#[test]
fn a_stream_that_goes_on_is_left_alone() {
    let mut pair = Pair::new();
    pair.stream();
    pair.opened();
    // A keepalive every 15 s, for a day.
    for _ in 0..24 * 60 * 4 {
        pair.pass(15 * S).heard(false);
        assert_eq!(pair.next(), (Step::GoOn, Duration::ZERO));
        assert_eq!(pair.machine.deadline(), Some(pair.now + 45 * S));
    }
}

#[test]
fn a_server_that_restarts_is_asked_again_soon_and_then_less_often() {
    let mut pair = Pair::new();
    pair.stream();
    pair.opened();
    pair.heard(true);
    pair.machine.retry(2 * S);
    assert_eq!(pair.pass(S).closed(), Outlook::Usual);
    let mut waits = Vec::new();
    for _ in 0..12 {
        waits.push(pair.stream());
        assert!(pair.machine.refused(pair.now, &unreachable(), MOST));
    }
    assert!(waits[0] >= 2 * S && waits[0] <= 3 * S, "{waits:?}");
    assert!(waits.iter().all(|wait| *wait >= 2 * S && *wait <= 33 * S), "{waits:?}");
    assert!(waits.last() > waits.first(), "{waits:?}");
    // It is no reason to poll, however long it takes.
    pair.stream();
    assert!(!pair.machine.is_polling(pair.now));
}

#[test]
fn all_is_well_when_a_record_came_or_a_while_went_by() {
    let mut pair = Pair::new();
    pair.stream();
    pair.opened();
    assert!(!pair.heard(false), "anybody can send a byte");
    assert!(pair.pass(15 * S).heard(false));
    let mut pair = Pair::new();
    pair.stream();
    pair.opened();
    assert!(pair.heard(true) && pair.heard(false));
}

#[test]
fn a_half_open_connection_is_left_after_45_s() {
    let mut pair = Pair::new();
    pair.stream();
    pair.opened();
    pair.heard(true);
    assert_eq!(pair.too_late(), 45 * S);
    pair.stream();
    assert!(!pair.machine.is_polling(pair.now), "once may be a laptop that slept");
}

#[test]
fn a_proxy_that_ends_idle_streams_is_no_reason_to_poll() {
    let mut pair = Pair::new();
    for _ in 0..100 {
        assert!(pair.stream() < 2 * S);
        pair.opened();
        pair.heard(false);
        assert_eq!(pair.pass(30 * S).closed(), Outlook::Usual);
    }
}

#[test]
fn streams_held_back_lead_to_polling_and_are_tried_again_later() {
    for hold in ["header", "first byte"] {
        let mut pair = Pair::new();
        let start = pair.now;
        let mut tries = 0;
        let began = loop {
            match pair.next().0 {
                Step::Stream => tries += 1,
                Step::Poll { wait } => break (wait, pair.now - start),
                step => panic!("{step:?}"),
            }
            if hold == "first byte" {
                pair.opened();
            }
            pair.too_late();
        };
        assert_eq!((began.0, tries), (20 * S, 2), "{hold}");
        assert!(began.1 < 25 * S, "{hold}: {began:?}");
        // Polls, until the time for another try has come; each try that fails makes the next one later.
        let mut gaps = Vec::new();
        for _ in 0..8 {
            let polls = pair.now;
            loop {
                pair.pass(20 * S).page(false);
                match pair.next().0 {
                    Step::Poll { .. } => {}
                    Step::Stream => break,
                    step => panic!("{step:?}"),
                }
            }
            gaps.push(pair.now - polls);
            pair.too_late();
            assert!(matches!(pair.next().0, Step::Poll { .. }), "one try is enough");
        }
        assert!(gaps[0] < 60 * S && gaps.is_sorted(), "{gaps:?}");
        assert!(gaps[7] >= 600 * S && gaps[7] < 660 * S, "{gaps:?}");
        // One that comes through ends the polling for good.
        loop {
            match pair.next().0 {
                Step::Stream => break,
                _ => pair.pass(20 * S).page(false),
            }
        }
        pair.opened();
        for _ in 0..5 {
            pair.pass(15 * S).heard(false);
        }
        pair.closed();
        pair.stream();
        pair.opened();
        pair.closed();
        pair.stream();
    }
}

#[test]
fn lumps_with_long_silences_lead_to_polling() {
    let mut pair = Pair::new();
    for _ in 0..2 {
        pair.stream();
        pair.opened();
        pair.heard(true);
        pair.too_late();
    }
    assert!(matches!(pair.next().0, Step::Poll { .. }));
}

#[test]
fn streams_that_end_at_once_lead_to_polling() {
    let mut pair = Pair::new();
    for _ in 0..3 {
        pair.stream();
        pair.opened();
        pair.heard(false);
        assert_eq!(pair.pass(S).closed(), Outlook::Trouble);
    }
    assert!(matches!(pair.next().0, Step::Poll { .. }));
    // Those that brought a record have helped.
    let mut pair = Pair::new();
    for _ in 0..20 {
        pair.stream();
        pair.opened();
        pair.heard(true);
        pair.pass(S).closed();
    }
    pair.stream();
}

#[test]
fn what_is_no_stream_leads_to_polling_at_once() {
    let mut pair = Pair::new();
    pair.stream();
    assert_eq!(pair.machine.failed(pair.now, Failure::NoStream, 0), Outlook::Trouble);
    assert!(matches!(pair.next().0, Step::Poll { .. }));
}

#[test]
fn a_thread_has_no_other_way() {
    let mut pair = Pair::new();
    pair.machine = Machine::new(FollowConfig::default(), RetryConfig::default(), false);
    pair.stream();
    assert_eq!(pair.machine.failed(pair.now, Failure::NoStream, 0), Outlook::Blocked);
}

#[test]
fn empty_polls_that_return_at_once_do_not_spin() {
    let mut pair = Pair::new();
    pair.stream();
    pair.machine.failed(pair.now, Failure::NoStream, 0);
    pair.next();
    let start = pair.now;
    let mut polls = 0;
    while pair.now < start + 20 * S {
        pair.page(true);
        assert!(matches!(pair.next().0, Step::Poll { .. }));
        polls += 1;
    }
    assert_eq!(polls, 20);
    // Full ones may come as fast as they can.
    pair.page(false);
    assert_eq!(pair.next().1, Duration::ZERO);
}

#[test]
fn refusals_wait_as_told_or_are_for_good() {
    let mut pair = Pair::new();
    for status in [429, 503] {
        pair.stream();
        assert!(pair.machine.refused(pair.now, &refusal(status, Some(7 * S)), 0));
        assert_eq!(pair.stream(), 7 * S);
        assert!(pair.machine.refused(pair.now, &refusal(status, Some(100_000 * S)), 0));
        assert_eq!(pair.stream(), 300 * S);
        pair = Pair::new();
    }
    for status in [400, 401, 403, 404, 409] {
        assert!(!Pair::new().machine.refused(pair.now, &refusal(status, None), 0), "{status}");
    }
}

#[test]
fn an_end_is_asked_for_until_it_is_known() {
    let mut pair = Pair::new();
    pair.stream();
    pair.machine.ended();
    assert_eq!(pair.next().0, Step::Snapshot);
    assert!(pair.machine.refused(pair.now, &unreachable(), MOST));
    assert_eq!(pair.next().0, Step::Snapshot);
    pair.too_late();
    assert_eq!(pair.next().0, Step::Snapshot);
    // A proxy that answers 204 for itself: the run goes on.
    pair.machine.goes_on(pair.now, 0);
    assert!(matches!(pair.next().0, Step::Poll { .. }));
}

proptest! {
    /// Whatever happens, the machine is always either waiting for a bounded time or at work with a deadline, and does
    /// not ask more than a few times a second.
    #[test]
    fn it_neither_hangs_nor_spins(events in prop::collection::vec((0..9u8, 0..20u32, any::<u64>()), 1..300)) {
        let mut pair = Pair::new();
        let start = pair.now;
        let mut begun = 0u32;
        for (event, seconds, random) in events {
            let (step, waited) = pair.next();
            prop_assert!(waited <= 331 * S, "{waited:?}");
            begun += u32::from(matches!(step, Step::Stream | Step::Poll { .. } | Step::Snapshot));
            let deadline = pair.machine.deadline().unwrap();
            prop_assert!(deadline - pair.now <= 20 * S + ANSWER_TIME);
            let later = (pair.now + S * seconds).min(deadline);
            pair.now = later;
            match event {
                0 => pair.machine.opened(pair.now),
                1 => _ = pair.machine.heard(pair.now, false),
                2 => _ = pair.machine.heard(pair.now, true),
                3 => _ = pair.machine.failed(pair.now, Failure::Closed, random),
                4 => {
                    pair.now = deadline;
                    _ = pair.machine.failed(pair.now, Failure::TooLate, random);
                }
                5 => _ = pair.machine.failed(pair.now, Failure::NoStream, random),
                6 => _ = pair.machine.refused(pair.now, &unreachable(), random),
                7 => pair.page(true),
                _ => pair.machine.retry(S * seconds),
            }
        }
        let seconds = (pair.now - start).as_secs_f64();
        prop_assert!(f64::from(begun) <= 40.0 + seconds * 4.0, "{begun} in {seconds} s");
    }

    #[test]
    fn each_record_comes_once_in_order(
        dense in any::<bool>(),
        seqs in prop::collection::vec(1..30u64, 0..100),
    ) {
        let mut order = Order::new(Some(Seq::START), dense);
        let mut passed = Vec::new();
        for seq in seqs {
            match order.record(Seq(seq)) {
                Verdict::New => passed.push(seq),
                Verdict::Seen => prop_assert!(passed.last().is_some_and(|last| seq <= *last)),
                Verdict::Missing { expected } => {
                    prop_assert!(dense && expected.0 < seq);
                    prop_assert_eq!(order.position.map(Seq::next), Some(expected));
                }
            }
        }
        prop_assert!(passed.windows(2).all(|pair| pair[0] < pair[1]));
        if dense {
            prop_assert_eq!(passed.clone(), (1..=passed.len() as u64).collect::<Vec<_>>());
        }
    }
}

#[test]
fn a_hole_is_asked_for_once_more() {
    let mut order = Order::new(Some(Seq(3)), true);
    assert_eq!(order.record(Seq(5)), Verdict::Missing { expected: Seq(4) });
    assert!(!order.missing_again(Seq(4)));
    assert_eq!(order.record(Seq(5)), Verdict::Missing { expected: Seq(4) });
    assert!(order.missing_again(Seq(4)));
    // A gap that is told is none.
    assert!(order.gap(Seq(4)));
    assert_eq!(order.record(Seq(5)), Verdict::New);
    assert!(!order.gap(Seq(5)));
    assert_eq!(order.record(Seq(7)), Verdict::Missing { expected: Seq(6) });
    assert!(!order.missing_again(Seq(6)), "it is another one");
}

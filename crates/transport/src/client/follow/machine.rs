//! What a follower does next: stream, poll, wait, or give up. No I/O, no clock, no randomness.

use std::time::Duration;

use taffrail_mcp_core::Seq;
use tokio::time::Instant;

use super::super::{ClientError, FollowConfig, RetryConfig, backoff::Backoff};

/// A stream that has brought something for this long comes through.
const STEADY: Duration = Duration::from_secs(60);
/// One that ends sooner, and without a record, has not helped.
const SHORT: Duration = Duration::from_secs(10);
/// What an answer may take, beside the time for which the server was asked to hold it.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Polls that bring nothing and return at once are asked no oftener.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// The longest time of polling before a stream is tried again.
const POLL_FOR: Duration = Duration::from_secs(600);

/// What speaks against streams, until one comes through: with this much, there is polling.
const ENOUGH: u32 = 6;
/// A stream ended soon, without a record and without its end.
const AGAINST_SHORT: u32 = 2;
/// No header, no first byte, no byte for long: somebody holds the stream back.
const AGAINST_SILENT: u32 = 3;

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Open a stream.
    Stream,
    /// Ask for a page, and let the server hold it this long.
    Poll { wait: Duration },
    /// Ask for the run's snapshot: it is over.
    Snapshot,
    /// Nothing before this time.
    Wait { until: Instant },
    /// What was begun goes on.
    GoOn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Waiting { until: Instant },
    Opening { since: Instant },
    Open { since: Instant, heard: Option<Instant>, progress: bool },
    Polling { since: Instant, wait: Duration },
    Asking { since: Instant },
}

/// Why a stream came to nothing, or a thing that was begun must be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// It ended, or its connection broke.
    Closed,
    /// The time for it is over.
    TooLate,
    /// What came is no event stream.
    NoStream,
}

/// What that means for who follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outlook {
    /// Nothing: so connections end that were as they should be.
    Usual,
    /// It is tried again, later or in another way.
    Trouble,
    /// No stream comes through, and there is no other way.
    Blocked,
}

/// Decides for one follower.
#[derive(Debug)]
pub(super) struct Machine {
    config: FollowConfig,
    phase: Phase,
    backoff: Backoff,
    /// Whether polling is possible.
    can_poll: bool,
    against: u32,
    polling: Option<Instant>,
    poll_for: Duration,
    over: bool,
}

impl Machine {
    pub(super) fn new(config: FollowConfig, retry: RetryConfig, can_poll: bool) -> Self {
        Self {
            config,
            phase: Phase::Idle,
            backoff: Backoff::new(retry),
            can_poll,
            against: 0,
            polling: None,
            poll_for: config.poll_for,
            over: false,
        }
    }

    /// What to do at `now`; what was told once is begun.
    pub(super) fn step(&mut self, now: Instant) -> Step {
        match self.phase {
            Phase::Waiting { until } if now < until => Step::Wait { until },
            Phase::Idle | Phase::Waiting { .. } => self.begin(now),
            Phase::Opening { .. } | Phase::Open { .. } | Phase::Polling { .. } | Phase::Asking { .. } => Step::GoOn,
        }
    }

    fn begin(&mut self, now: Instant) -> Step {
        if self.over {
            self.phase = Phase::Asking { since: now };
            return Step::Snapshot;
        }
        match self.polling {
            Some(until) if now < until => {
                let wait = self.config.poll_wait;
                self.phase = Phase::Polling { since: now, wait };
                Step::Poll { wait }
            }
            _ => {
                self.phase = Phase::Opening { since: now };
                Step::Stream
            }
        }
    }

    /// When [`Machine::failed`] is to be told that it is too late.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Idle | Phase::Waiting { .. } => None,
            Phase::Opening { since } => Some(since + self.config.header_time),
            Phase::Open { since, heard: None, .. } => Some(since + self.config.first_byte_time),
            Phase::Open { heard: Some(heard), .. } => Some(heard + self.config.silence),
            Phase::Polling { since, wait } => Some(since + wait + ANSWER_TIME),
            Phase::Asking { since } => Some(since + ANSWER_TIME),
        }
    }

    /// The headers of a stream are there.
    pub(super) fn opened(&mut self, now: Instant) {
        self.phase = Phase::Open { since: now, heard: None, progress: false };
    }

    /// The stream brought bytes; `progress` when a record or a gap was among them. Whether all is well: it has brought one,
    /// or has lasted.
    pub(super) fn heard(&mut self, now: Instant, with_progress: bool) -> bool {
        let Phase::Open { since, heard, progress } = &mut self.phase else { return false };
        *heard = Some(now);
        *progress |= with_progress;
        let (progress, lasted) = (*progress, now.duration_since(*since));
        if progress {
            self.backoff.reset();
        }
        if lasted >= STEADY {
            self.comes_through();
        }
        progress || lasted >= SHORT
    }

    fn comes_through(&mut self) {
        self.against = 0;
        self.polling = None;
        self.poll_for = self.config.poll_for;
        self.backoff.reset();
    }

    /// The stream told how long to wait between connections.
    pub(super) fn retry(&mut self, after: Duration) {
        self.backoff.at_least(after);
    }

    /// What was begun came to nothing.
    pub(super) fn failed(&mut self, now: Instant, failure: Failure, random: u64) -> Outlook {
        let mut outlook = Outlook::Trouble;
        match self.phase {
            Phase::Opening { .. } => self.speak_against(failure, now),
            Phase::Open { since, heard, progress } => {
                let lived = heard.is_some() && now.duration_since(since) >= SHORT;
                match failure {
                    Failure::Closed if progress || lived => {
                        outlook = Outlook::Usual;
                        self.comes_through();
                    }
                    _ => self.speak_against(failure, now),
                }
            }
            Phase::Idle | Phase::Waiting { .. } | Phase::Polling { .. } | Phase::Asking { .. } => {}
        }
        let until = now + self.backoff.after_failure(None, random);
        self.phase = Phase::Waiting { until };
        match self.can_poll || self.against < ENOUGH {
            true => outlook,
            false => Outlook::Blocked,
        }
    }

    fn speak_against(&mut self, failure: Failure, now: Instant) {
        self.against += match failure {
            Failure::Closed => AGAINST_SHORT,
            Failure::TooLate => AGAINST_SILENT,
            Failure::NoStream => ENOUGH,
        };
        if self.against >= ENOUGH && self.can_poll {
            self.polling = Some(now + self.poll_for);
            self.poll_for = (self.poll_for * 2).min(POLL_FOR);
            // The next stream has one try.
            self.against = ENOUGH - 1;
        }
    }

    /// A request was answered with an error. `false` when trying again would be in vain.
    pub(super) fn refused(&mut self, now: Instant, error: &ClientError, random: u64) -> bool {
        let until = now + self.backoff.after_failure(error.retry_after(), random);
        self.phase = Phase::Waiting { until };
        error.is_transient()
    }

    /// A page came, with or without records.
    pub(super) fn page(&mut self, now: Instant, empty: bool) {
        let Phase::Polling { since, .. } = self.phase else { return };
        self.backoff.reset();
        self.phase = match empty && now < since + POLL_EVERY {
            true => Phase::Waiting { until: since + POLL_EVERY },
            false => Phase::Idle,
        };
    }

    /// The run is over, as far as a stream or a page can say.
    pub(super) fn ended(&mut self) {
        self.over = true;
        self.phase = Phase::Idle;
    }

    /// The snapshot says that the run goes on: what said otherwise was not the server.
    pub(super) fn goes_on(&mut self, now: Instant, random: u64) {
        self.over = false;
        self.speak_against(Failure::NoStream, now);
        self.phase = Phase::Waiting { until: now + self.backoff.after_failure(None, random) };
    }

    /// Whether streams are given up for the moment.
    pub(super) fn is_polling(&self, now: Instant) -> bool {
        self.polling.is_some_and(|until| now < until)
    }
}

/// What a record is to a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The next.
    New,
    /// It was there before.
    Seen,
    /// Others before it are missing.
    Missing { expected: Seq },
}

/// Sees to it that each record comes once, in order.
#[derive(Debug)]
pub(super) struct Order {
    /// The last that came; `None` before the first of a log that is read from its beginning.
    pub(super) position: Option<Seq>,
    /// Every position must come: so it is in the log of a thread, while those of one run may stand far apart.
    pub(super) dense: bool,
    /// Where records were missing before.
    missed: Option<Seq>,
}

impl Order {
    pub(super) fn new(position: Option<Seq>, dense: bool) -> Self {
        Self { position, dense, missed: None }
    }

    /// Judges a record, and passes it when it is new.
    pub(super) fn record(&mut self, seq: Seq) -> Verdict {
        match self.position {
            Some(position) if seq <= position => return Verdict::Seen,
            Some(position) if self.dense && seq != position.next() => {
                return Verdict::Missing { expected: position.next() };
            }
            _ => {}
        }
        self.position = Some(seq);
        self.missed = None;
        Verdict::New
    }

    /// Passes records that can no longer be had. `false` when they were passed before.
    pub(super) fn gap(&mut self, to: Seq) -> bool {
        let new = self.position.is_none_or(|position| to > position);
        if new {
            self.position = Some(to);
            self.missed = None;
        }
        new
    }

    /// Whether records are missing at the same place as before: asking again did not help.
    pub(super) fn missing_again(&mut self, expected: Seq) -> bool {
        self.missed.replace(expected) == Some(expected)
    }
}

#[cfg(test)]
mod tests;

//! What a producer sends next. No I/O, no clock, no randomness.

use std::time::Duration;

use tokio::time::Instant;

use crate::client::{ClientError, RetryConfig, backoff::Backoff};

/// A run that writes little is sent this often at most: late enough that lines which come together go together, early
/// enough that nobody who watches waits.
const PACE: Duration = Duration::from_millis(100);
/// When there is nothing to send, the server is told this often that the producer is alive. In the answer it learns
/// that somebody wants the run to end.
const BEAT: Duration = Duration::from_secs(5);
/// Bytes of a batch: at first, at least (one event goes whatever it has), and at most.
const BATCH: (usize, usize, usize) = (256 * 1024, 16 * 1024, 1024 * 1024);
/// The longest wait between tries for who has no time.
const HURRIED: Duration = Duration::from_secs(1);

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Make the run there.
    Make,
    /// Send what there is from this number on.
    Send { from: u64, most_bytes: usize },
    /// Say that the producer is alive.
    Beat { next: u64 },
    /// Nothing before this time, whatever comes.
    Wait { until: Instant },
    /// Nothing before this time, unless there is more to send.
    Idle { until: Instant },
    /// What was begun goes on.
    GoOn,
    /// Everything is there.
    Done,
}

/// What was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begun {
    Making,
    Beating,
    /// So many events, in so many bytes.
    Sending {
        count: u64,
        bytes: usize,
        last: bool,
    },
}

/// What an error means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing: the server asks for other events than it got, and gets them.
    Corrected,
    /// It is tried again, later.
    Again,
    /// Trying again would be in vain.
    GiveUp,
}

/// Decides for one producer.
#[derive(Debug)]
pub(super) struct Machine {
    made: bool,
    /// Number of the next event.
    next: u64,
    /// There was nothing to send from there on.
    dry: bool,
    /// The last batch was as large as it may be: there is more than can wait.
    behind: bool,
    most_bytes: usize,
    begun: Option<Begun>,
    wait: Option<Instant>,
    /// When the server last answered, and when events were last sent.
    answered: Instant,
    sent: Option<Instant>,
    retry: RetryConfig,
    backoff: Backoff,
    hurried: bool,
    done: bool,
    /// Where the server last asked for other events.
    corrected: Option<u64>,
}

impl Machine {
    /// Of a run that is made there, or not yet, and whose events before `next` have arrived.
    pub(super) fn new(now: Instant, retry: RetryConfig, made: bool, next: u64) -> Self {
        Self {
            made,
            next,
            dry: false,
            behind: false,
            most_bytes: BATCH.0,
            begun: None,
            wait: None,
            answered: now,
            sent: None,
            retry,
            backoff: Backoff::new(retry),
            hurried: false,
            done: false,
            corrected: None,
        }
    }

    /// What to do at `now`.
    pub(super) fn step(&self, now: Instant) -> Step {
        if self.done {
            return Step::Done;
        }
        if self.begun.is_some() {
            return Step::GoOn;
        }
        if let Some(until) = self.wait.filter(|until| now < *until) {
            return Step::Wait { until };
        }
        if !self.made {
            return Step::Make;
        }
        if self.dry {
            let until = self.answered + BEAT;
            return if now < until { Step::Idle { until } } else { Step::Beat { next: self.next } };
        }
        match self.sent.map(|sent| sent + PACE).filter(|until| now < *until && !self.behind && !self.hurried) {
            Some(until) => Step::Wait { until },
            None => Step::Send { from: self.next, most_bytes: self.most_bytes },
        }
    }

    /// There is nothing to send.
    pub(super) fn nothing(&mut self) {
        self.dry = true;
        self.behind = false;
    }

    /// There may be something again.
    pub(super) fn more(&mut self) {
        self.dry = false;
    }

    /// A request goes out.
    pub(super) fn begin(&mut self, now: Instant, begun: Begun) {
        self.wait = None;
        if let Begun::Sending { bytes, .. } = begun {
            self.sent = Some(now);
            self.behind = bytes >= self.most_bytes / 2;
        }
        self.begun = Some(begun);
    }

    /// The server took what was sent. Returns the number up to which everything has arrived.
    pub(super) fn accepted(&mut self, now: Instant) -> u64 {
        self.answered = now;
        self.backoff.reset();
        match self.begun.take() {
            Some(Begun::Making) => self.made = true,
            Some(Begun::Sending { count, last, .. }) => {
                self.next += count;
                self.corrected = None;
                self.most_bytes = (self.most_bytes * 2).min(BATCH.2);
                self.done = last;
            }
            Some(Begun::Beating) | None => {}
        }
        self.next - 1
    }

    /// It did not.
    pub(super) fn failed(&mut self, now: Instant, error: &ClientError, random: u64) -> Verdict {
        let begun = self.begun.take();
        let refusal = error.refusal();
        if let Some(refusal) = refusal {
            // Whatever it says, it is there.
            self.answered = now;
            let expected = refusal.number("expected").filter(|_| refusal.code == "hole");
            if let Some(expected) = expected.filter(|expected| *expected > 0 && self.corrected != Some(*expected)) {
                self.corrected = Some(expected);
                self.next = expected;
                self.dry = false;
                return Verdict::Corrected;
            }
        }
        let too_large = refusal.is_some_and(|refusal| refusal.status == 413);
        if let Some(Begun::Sending { count, bytes, .. }) = begun
            && (too_large || matches!(error, ClientError::TimedOut { .. }))
        {
            if too_large && count == 1 {
                return Verdict::GiveUp;
            }
            self.most_bytes = (bytes / 2).max(if too_large { 1 } else { BATCH.1 });
        }
        let again = too_large
            || error.is_transient()
            // Something between that answers for itself: the server behind it may come back.
            || matches!(error, ClientError::NotTaffrail { .. } | ClientError::Malformed { .. });
        if !again {
            return Verdict::GiveUp;
        }
        self.wait = Some(now + self.backoff.after_failure(error.retry_after(), random));
        Verdict::Again
    }

    /// From now on there is little time.
    pub(super) fn hurry(&mut self) {
        self.hurried = true;
        let RetryConfig { first, longest } = self.retry;
        self.backoff = Backoff::new(RetryConfig { first, longest: longest.min(HURRIED) });
        self.wait = None;
    }
}

#[cfg(test)]
mod tests;

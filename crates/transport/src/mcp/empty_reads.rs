//! Makes an agent that reads the same cursor again and again wait longer each time.
//!
//! A sentence in a result that says "wait" does not stop a model from polling; each poll costs it a turn
//! and tokens. So the server does the waiting.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, Instant},
};

use super::backend::LogQuery;

/// The wait of the second empty read in a row, the third, and so on; 25 s keeps below the walls of hosts.
const STEPS_S: [u64; 5] = [2, 5, 10, 20, 25];

/// Positions remembered. One that is pushed out only starts again with no wait.
const KEPT: usize = 64;

/// After so long it is a new question, not a poll.
const FORGET: Duration = Duration::from_secs(300);

/// Counts empty reads by position.
#[derive(Debug, Default)]
pub(super) struct EmptyReads {
    /// Most recent last.
    seen: VecDeque<Seen>,
}

#[derive(Debug)]
struct Seen {
    position: Position,
    count: usize,
    at: Instant,
}

/// A cursor in a run's log, seen through one set of filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position(u64);

impl Position {
    pub(super) fn of(query: &LogQuery) -> Self {
        let LogQuery { run, after, grep, state, stream, .. } = query;
        let mut hasher = DefaultHasher::new();
        (run, after, grep, state, stream).hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl EmptyReads {
    /// How long a read at `position` may wait for something to come.
    pub(super) fn wait(&self, position: Position, asked: Duration, now: Instant) -> Duration {
        let seen =
            self.seen.iter().find(|seen| seen.position == position && now.saturating_duration_since(seen.at) < FORGET);
        let step = seen.and_then(|seen| {
            let last = STEPS_S.len() - 1;
            STEPS_S.get((seen.count - 1).min(last))
        });
        asked.max(Duration::from_secs(step.copied().unwrap_or(0)))
    }

    /// Notes what a read at `position` gave.
    pub(super) fn note(&mut self, position: Position, empty: bool, now: Instant) {
        let at = self.seen.iter().position(|seen| seen.position == position);
        let count = match at.and_then(|at| self.seen.remove(at)) {
            Some(seen) if now.saturating_duration_since(seen.at) < FORGET => seen.count,
            _ => 0,
        };
        if empty {
            self.seen.push_back(Seen { position, count: count + 1, at: now });
            if self.seen.len() > KEPT {
                self.seen.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(cursor: u64) -> Position {
        Position::of(&LogQuery { run: "r".to_owned(), after: cursor, ..LogQuery::default() })
    }

    #[test]
    fn repeated_empty_reads_wait_longer_up_to_a_limit() {
        let mut reads = EmptyReads::default();
        let now = Instant::now();
        let waits = [0, 2, 5, 10, 20, 25, 25].map(|expected| {
            let waited = reads.wait(at(7), Duration::ZERO, now);
            reads.note(at(7), true, now);
            (waited.as_secs(), expected)
        });
        assert!(waits.iter().all(|(seen, expected)| seen == expected), "{waits:?}");
        assert_eq!(reads.wait(at(7), Duration::from_secs(60), now).as_secs(), 60);
        assert_eq!(reads.wait(at(8), Duration::ZERO, now), Duration::ZERO);
    }

    #[test]
    fn news_and_time_start_again() {
        let mut reads = EmptyReads::default();
        let now = Instant::now();
        reads.note(at(1), true, now);
        reads.note(at(1), false, now);
        assert_eq!(reads.wait(at(1), Duration::ZERO, now), Duration::ZERO);
        reads.note(at(1), true, now);
        assert_eq!(reads.wait(at(1), Duration::ZERO, now + FORGET), Duration::ZERO);
    }

    #[test]
    fn memory_is_bounded() {
        let mut reads = EmptyReads::default();
        let now = Instant::now();
        for cursor in 0..1000 {
            reads.note(at(cursor), true, now);
        }
        assert_eq!(reads.seen.len(), KEPT);
    }
}

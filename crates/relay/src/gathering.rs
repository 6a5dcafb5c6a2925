//! Who was answered together mostly comes again together: waiting for them a moment puts them into one commit.
//!
//! Without it a store that takes a millisecond to commit has two groups of producers take turns, one waiting while the
//! other is stored, or worse: the first that comes again gets a commit of its own.

use std::{sync::Mutex, time::Duration};

use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

use crate::hot::lock;

/// Fewer are not waited for.
const FEWEST: usize = 4;
/// A commit that is faster than this is not worth waiting for.
const SLOW: Duration = Duration::from_micros(200);
/// What is waited at most, and never longer than the last commit took.
const LONGEST: Duration = Duration::from_millis(2);
/// After a wait in vain, so many commits go without.
const WITHOUT: u32 = 32;

/// Arrivals that are not stored yet, and how many to wait for.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    state: Mutex<State>,
    came: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Arrivals that nobody writes yet.
    waiting: usize,
    /// Those that were answered last, and those that waited then.
    expected: usize,
    /// How long these are waited for.
    until: Option<Instant>,
    /// Commits that go without.
    without: u32,
}

impl Gathering {
    /// An arrival waits to be written.
    pub(crate) fn came(&self) {
        let mut state = lock(&self.state);
        state.waiting += 1;
        if state.until.is_some() && state.waiting >= state.expected {
            drop(state);
            self.came.notify_one();
        }
    }

    /// So many of them are being written.
    pub(crate) fn taken(&self, count: usize) {
        let mut state = lock(&self.state);
        state.waiting = state.waiting.saturating_sub(count);
        state.until = None;
    }

    /// These are written, which took so long.
    pub(crate) fn written(&self, count: usize, time: Duration) {
        let mut state = lock(&self.state);
        state.expected = count + state.waiting;
        if state.without > 0 {
            state.without -= 1;
        } else if state.expected >= FEWEST && time >= SLOW {
            state.until = Some(Instant::now() + time.min(LONGEST));
        }
    }

    /// Waits for those who are expected, if somebody is.
    pub(crate) async fn gather(&self) {
        let until = {
            let state = lock(&self.state);
            match state.until {
                Some(until) if state.waiting < state.expected && until > Instant::now() => until,
                _ => return,
            }
        };
        if timeout_at(until, self.came.notified()).await.is_err() {
            lock(&self.state).without = WITHOUT;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: Duration = Duration::from_millis(1);

    /// Those who are answered at once, `count` of them.
    fn round(gathering: &Gathering, count: usize, time: Duration) {
        (0..count).for_each(|_| gathering.came());
        gathering.taken(count);
        gathering.written(count, time);
    }

    async fn waits(gathering: &Gathering) -> Duration {
        let begun = Instant::now();
        gathering.gather().await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_were_answered_are_waited_for_and_no_longer() {
        let gathering = Gathering::default();
        round(&gathering, 3, COMMIT);
        gathering.came();
        assert_eq!(waits(&gathering).await, Duration::ZERO, "too few");
        round(&gathering, 7, COMMIT / 10);
        gathering.came();
        assert_eq!(waits(&gathering).await, Duration::ZERO, "the store is fast");
        round(&gathering, 6, COMMIT);
        gathering.came();
        let last = async {
            tokio::time::sleep(COMMIT / 4).await;
            (0..7).for_each(|_| gathering.came());
        };
        let begun = Instant::now();
        tokio::join!(gathering.gather(), last);
        assert!(begun.elapsed() < COMMIT * 2, "{:?}", begun.elapsed());
        assert_eq!(waits(&gathering).await, Duration::ZERO, "all are there");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_come_is_waited_for_once() {
        let gathering = Gathering::default();
        round(&gathering, 8, COMMIT);
        gathering.came();
        assert!((COMMIT..=COMMIT * 3).contains(&waits(&gathering).await));
        gathering.taken(1);
        for _ in 0..WITHOUT {
            gathering.written(8, COMMIT);
            assert_eq!(waits(&gathering).await, Duration::ZERO);
        }
        gathering.written(8, COMMIT * 10);
        assert!(waits(&gathering).await <= LONGEST + COMMIT);
    }
}

//! When a paused spool tries again.

use std::time::Duration;

use tokio::time::Instant;

/// First wait. A disk that was full for a moment costs a reader little delay.
const FIRST: Duration = Duration::from_millis(250);
/// Longest wait. Somebody who has freed space should not wait longer to see the file go on.
const LONGEST: Duration = Duration::from_secs(15);
/// A pause this soon after the last goes on with its wait, so that a disk at its brink makes few notes.
const CALM: Duration = Duration::from_secs(60);

/// Doubles the wait from one failure to the next, up to a bound.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    wait: Option<Duration>,
    last: Option<Instant>,
    paused: bool,
}

impl Retry {
    /// Something failed; gives back the instant to try again, and whether this begins a pause.
    pub(crate) fn failed(&mut self, now: Instant) -> (Instant, bool) {
        let calm = !self.paused && self.last.is_none_or(|last| now.duration_since(last) >= CALM);
        let wait = match self.wait {
            Some(wait) if !calm => (wait * 2).min(LONGEST),
            _ => FIRST,
        };
        self.wait = Some(wait);
        self.last = Some(now);
        (now + wait, !std::mem::replace(&mut self.paused, true))
    }

    /// Something was written; whether this ends a pause.
    pub(crate) fn succeeded(&mut self) -> bool {
        std::mem::take(&mut self.paused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_a_pause_begins_and_ends_once() {
        let mut retry = Retry::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for round in 0..9 {
            let (at, begins) = retry.failed(now);
            assert_eq!(begins, round == 0);
            waits.push((at - now).as_millis());
            now = at;
        }
        assert_eq!(waits, [250, 500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]);
        assert!(retry.succeeded());
        assert!(!retry.succeeded());
    }

    #[test]
    fn a_brink_keeps_its_wait_and_calm_resets_it() {
        let mut retry = Retry::default();
        let now = Instant::now();
        retry.failed(now);
        retry.succeeded();
        let soon = now + Duration::from_secs(1);
        assert_eq!(retry.failed(soon), (soon + FIRST * 2, true));
        retry.succeeded();
        let later = soon + CALM;
        assert_eq!(retry.failed(later), (later + FIRST, true));
    }
}

//! Who has not been heard for too long. No I/O; the time is an argument.
//!
//! Nobody's clock is compared with another's: a count of beats that stands still is watched by the watcher's own. And
//! only time in which the store could be read counts, because in any other nobody could have been heard.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

/// Watches the counts of all holders.
#[derive(Debug)]
pub(crate) struct Silence {
    /// Who stands still for so long is gone.
    silence: Duration,
    /// When the store was read last, if that worked.
    read: Option<Instant>,
    /// Each holder's count, and since when it stands still.
    seen: HashMap<String, (u64, Instant)>,
}

/// What one look at the holders tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Who is silent, with the count that stands still.
    pub(crate) silent: Vec<(String, u64)>,
    /// Who was there at the last look, and is not any more.
    pub(crate) left: Vec<String>,
}

impl Silence {
    pub(crate) fn new(silence: Duration) -> Self {
        Self { silence, read: None, seen: HashMap::new() }
    }

    /// Takes in what the store answered: it was asked at `asked`, and the answer was here at `answered`.
    pub(crate) fn heard(&mut self, asked: Instant, answered: Instant, holders: Vec<(String, u64)>) -> Told {
        // A pause of ours, or an answer that took long, is no different from a store that could not be read.
        let longest = self.silence * 3 / 5;
        let connected = self.read.is_some_and(|read| asked.saturating_duration_since(read) <= longest)
            && answered.saturating_duration_since(asked) <= longest;
        self.read = Some(answered);
        let mut told = Told::default();
        let before = std::mem::take(&mut self.seen);
        for (name, beats) in holders {
            // It stood still from the answer that showed it first to the question whose answer shows it still.
            let since = match before.get(&name) {
                Some((known, since)) if connected && *known == beats => *since,
                _ => answered,
            };
            if asked.saturating_duration_since(since) >= self.silence {
                told.silent.push((name.clone(), beats));
            }
            self.seen.insert(name, (beats, since));
        }
        told.left.extend(before.into_keys().filter(|name| !self.seen.contains_key(name)));
        told
    }

    /// The store could not be read.
    pub(crate) fn failed(&mut self) {
        self.read = None;
    }

    /// Who was there when somebody looked last.
    pub(crate) fn known(&self) -> impl Iterator<Item = &str> {
        self.seen.keys().map(String::as_str)
    }

    /// Whether a holder was there when somebody looked last, not longer ago than a silence.
    pub(crate) fn is_alive(&self, name: &str, now: Instant) -> bool {
        self.read.is_some_and(|read| now.saturating_duration_since(read) < self.silence) && self.seen.contains_key(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A watcher that looks each second, on a timeline of seconds.
    struct Watcher {
        silence: Silence,
        start: Instant,
    }

    impl Watcher {
        fn new() -> Self {
            Self { silence: Silence::new(Duration::from_secs(5)), start: Instant::now() }
        }

        fn at(&self, second: f64) -> Instant {
            self.start + Duration::from_secs_f64(second)
        }

        fn hears(&mut self, second: u32, holders: &[(&str, u64)]) -> Told {
            let at = self.at(f64::from(second));
            self.silence.heard(at, at, holders.iter().map(|(name, beats)| ((*name).to_owned(), *beats)).collect())
        }

        /// The second in which `a` is silent, when it is said to have `beats(second)`; looks fail where there are none.
        fn silent_at(&mut self, beats: impl Fn(u32) -> Option<u64>) -> Option<u32> {
            (0..120).find(|second| match beats(*second) {
                Some(beats) => !self.hears(*second, &[("a", beats)]).silent.is_empty(),
                None => {
                    self.silence.failed();
                    false
                }
            })
        }
    }

    #[track_caller]
    fn check(beats: impl Fn(u32) -> Option<u64>, expected: Option<u32>) {
        assert_eq!(Watcher::new().silent_at(beats), expected);
    }

    #[test]
    fn who_beats_is_alive_however_slowly_or_oddly() {
        check(|second| Some(u64::from(second)), None);
        check(|second| Some(u64::from(second / 4)), None);
        // A count that goes back is another count.
        check(|second| Some(1000 - u64::from(second / 5)), None);
    }

    #[test]
    fn who_stands_still_is_silent_after_five_seconds() {
        check(|_| Some(7), Some(5));
        check(|second| Some(u64::from(second.min(20))), Some(25));
    }

    #[test]
    fn a_store_that_is_away_ends_nobody() {
        // Away for a minute, in which nobody could beat; then they do again.
        let beats = |second: u32| u64::from(second.min(9) + second.saturating_sub(70) / 4);
        check(|second| (!(10..70).contains(&second)).then_some(beats(second)), None);
        // Each time that it is there for a moment, nothing has moved.
        check(|second| second.is_multiple_of(5).then_some(7), None);
        // The count goes on from when it is there for good.
        check(|second| (!(3..60).contains(&second)).then_some(7), Some(65));
    }

    #[test]
    fn a_watcher_that_slept_has_not_watched() {
        let mut watcher = Watcher::new();
        for second in [0, 1, 2, 60, 61, 62, 63, 64] {
            assert_eq!(watcher.hears(second, &[("a", 1)]), Told::default(), "{second}");
        }
        assert_eq!(watcher.hears(65, &[("a", 1)]).silent, [("a".to_owned(), 1)]);
    }

    #[test]
    fn an_answer_that_took_long_counts_from_its_end() {
        let mut watcher = Watcher::new();
        let holders = || vec![("a".to_owned(), 1)];
        assert_eq!(watcher.silence.heard(watcher.at(0.0), watcher.at(2.9), holders()), Told::default());
        for second in 3..=7 {
            assert_eq!(watcher.hears(second, &[("a", 1)]), Told::default(), "{second}");
        }
        assert_eq!(watcher.hears(8, &[("a", 1)]).silent.len(), 1);
        // One that took longer than that starts anew.
        assert_eq!(watcher.silence.heard(watcher.at(9.0), watcher.at(12.5), holders()), Told::default());
        assert_eq!(watcher.hears(13, &[("a", 1)]), Told::default());
    }

    #[test]
    fn each_is_judged_alone_and_who_is_not_there_any_more_has_left() {
        let mut watcher = Watcher::new();
        for second in 0..5 {
            let told = watcher.hears(second, &[("a", 1), ("b", u64::from(second)), ("c", 3)]);
            assert_eq!(told, Told::default());
        }
        assert!(watcher.silence.is_alive("a", watcher.at(6.0)));
        assert!(!watcher.silence.is_alive("a", watcher.at(9.0)), "nobody looked");
        assert!(!watcher.silence.is_alive("z", watcher.at(6.0)));
        let told = watcher.hears(5, &[("a", 1), ("b", 5)]);
        assert_eq!(told, Told { silent: vec![("a".into(), 1)], left: vec!["c".into()] });
        // Nobody could, or did, end it: it is told again.
        assert_eq!(watcher.hears(6, &[("a", 1), ("b", 6)]).silent.len(), 1);
        assert_eq!(watcher.hears(7, &[("a", 2), ("b", 7)]), Told::default(), "it is back");
    }
}

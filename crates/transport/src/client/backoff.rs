//! How long to wait before trying again. No clock and no randomness of its own.

use std::time::Duration;

use super::RetryConfig;

/// The longest that a refusal (`Retry-After`) may make us wait: a server that says "tomorrow" is looked at again anyway.
const LONGEST_TOLD: Duration = Duration::from_secs(300);

/// Waits that grow with each failure, spread over their whole length ("full jitter"), so that the many who lost the
/// same server do not come back at the same time.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    /// The spread of the first wait.
    first: Duration,
    /// The longest spread, and the longest that an event stream may make us wait.
    longest: Duration,
    failures: u32,
    /// What the server asked for, below which no wait goes.
    floor: Duration,
}

impl Backoff {
    pub(crate) fn new(RetryConfig { first, longest }: RetryConfig) -> Self {
        Self { first, longest, failures: 0, floor: Duration::ZERO }
    }

    /// Something worked: the next wait is a first one again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The server asks for at least this time between connections (`retry:`).
    pub(crate) fn at_least(&mut self, floor: Duration) {
        self.floor = floor.min(self.longest);
    }

    /// The wait after one more failure. `told` is what the server said about this one; `random` is anything.
    pub(crate) fn after_failure(&mut self, told: Option<Duration>, random: u64) -> Duration {
        let spread = self.first.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        let floor = told.map_or(self.floor, |told| told.min(LONGEST_TOLD));
        floor + part(spread, random)
    }
}

/// A part of a time, from nothing to all of it.
fn part(of: Duration, random: u64) -> Duration {
    let micros = u64::try_from(of.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random.checked_rem(micros.saturating_add(1)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: Duration = Duration::from_millis(500);
    const LONGEST: Duration = Duration::from_secs(30);

    fn backoff() -> Backoff {
        Backoff::new(RetryConfig { first: FIRST, longest: LONGEST })
    }

    proptest! {
        #[test]
        fn waits_are_bounded_and_grow_no_further(
            failures in prop::collection::vec((any::<u64>(), prop::option::of(0..1_000_000u64)), 1..60),
            retry in 0..100_000_000u64,
        ) {
            let mut backoff = backoff();
            backoff.at_least(Duration::from_millis(retry));
            for (n, (random, told)) in failures.into_iter().enumerate() {
                let told = told.map(Duration::from_secs);
                let wait = backoff.after_failure(told, random);
                let spread = LONGEST.min(FIRST * 2u32.saturating_pow(n as u32).min(1 << 16));
                let floor = told.map_or(LONGEST.min(Duration::from_millis(retry)), |told| told.min(LONGEST_TOLD));
                prop_assert!(wait >= floor && wait <= floor + spread, "{wait:?}");
            }
        }
    }

    #[test]
    fn the_whole_spread_is_used() {
        let waits = (0..1000u64).map(|n| backoff().after_failure(None, n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let tenths = waits.fold([0; 11], |mut tenths, wait| {
            tenths[(wait.as_micros() * 10 / FIRST.as_micros()) as usize] += 1;
            tenths
        });
        assert!(tenths[..10].iter().all(|n| (50..200).contains(n)), "{tenths:?}");
    }

    #[test]
    fn success_begins_anew() {
        let mut backoff = backoff();
        (0..20).for_each(|_| _ = backoff.after_failure(None, u64::MAX));
        backoff.reset();
        assert!(backoff.after_failure(None, u64::MAX) <= FIRST);
    }
}

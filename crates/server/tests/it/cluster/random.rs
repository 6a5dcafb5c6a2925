//! Chance that can be repeated: `TAFFRAIL_SEED` gives the seed of a run that failed.

use std::{ops::Range, time::Duration};

/// SplitMix64.
pub(super) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    pub(super) fn from_environment() -> Self {
        let given = std::env::var("TAFFRAIL_SEED").ok().map(|seed| seed.parse().expect("TAFFRAIL_SEED is a number"));
        let seed = given.unwrap_or_else(|| u64::from(uuid::Uuid::new_v4().as_fields().0));
        Self { seed, state: seed }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.next() % (range.end - range.start))
    }

    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for n in (1..items.len()).rev() {
            let other = usize::try_from(self.next() % (n as u64 + 1)).unwrap();
            items.swap(n, other);
        }
    }
}

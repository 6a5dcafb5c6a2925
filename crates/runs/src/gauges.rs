//! Figures for monitoring.

use crate::{Removed, Service};

/// What a service is doing now. Costs a few locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauges {
    /// Runs that this process hosts.
    pub hosted: usize,
    /// Runs, external ones mostly, that events came for in the last half minute.
    pub ingested: usize,
    /// Runs that somebody waits for here.
    pub waited_for: usize,
    /// Other processes on the store that give signs of life; 0 with kernel locks, which do not tell.
    pub peers: usize,
    /// What retention has removed.
    pub removed: Removed,
}

impl Service {
    /// Figures for monitoring.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            hosted: self.inner.hosted.count(),
            ingested: self.inner.ingests.count(),
            waited_for: self.inner.waits.count(),
            peers: self.inner.living.peers(),
            removed: self.inner.removed.now(),
        }
    }
}

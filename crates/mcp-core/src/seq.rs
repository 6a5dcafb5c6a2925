//! Positions in a log.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A position in one thread's log.
///
/// Records are numbered 1, 2, 3, … without hole or reuse; 0 is the position before the first. The same number is the
/// SSE `id`, the `run_logs` cursor, the key of a spool line and the `_meta` mark on notifications.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first record.
    pub const START: Seq = Seq(0);

    /// The next position; stays at the maximum, which no log reaches (585,000 years at a million records a second).
    #[must_use]
    pub const fn next(self) -> Seq {
        Seq(self.0.saturating_add(1))
    }

    /// The position `n` records on.
    #[must_use]
    pub const fn plus(self, n: u64) -> Seq {
        Seq(self.0.saturating_add(n))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a reader begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// At the first record that is kept.
    #[default]
    Beginning,
    /// At the first record after this one.
    After(Seq),
    /// With what is written from now on.
    Live,
}

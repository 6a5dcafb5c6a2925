//! How much output a run may keep.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The output that one run may keep, shared by all its processes.
///
/// Bytes are as read, newlines included. Output is admitted a line (or a piece of a long line) at a time; the first one
/// that does not fit closes the budget, so that what is clipped is everything after one moment. The run goes on.
/// Clones share one budget.
#[derive(Debug, Clone)]
pub struct OutputBudget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: u64,
    used: AtomicU64,
    closed: AtomicBool,
}

impl OutputBudget {
    /// A budget of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        Self(Arc::new(Shared { limit: limit_bytes, used: AtomicU64::new(0), closed: AtomicBool::new(false) }))
    }

    /// No limit.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// Counts what a run had kept before it was resumed.
    #[must_use]
    pub fn already_used(self, bytes: u64) -> Self {
        self.0.used.fetch_add(bytes, Ordering::Relaxed);
        self
    }

    /// Bytes kept so far.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// The limit, in bytes.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Whether output is being clipped.
    pub fn is_exhausted(&self) -> bool {
        self.0.closed.load(Ordering::Relaxed)
    }

    /// Takes `bytes` out of the budget; `false` when they do not fit, now and from then on.
    pub(crate) fn admit(&self, bytes: u64) -> bool {
        if self.is_exhausted() {
            return false;
        }
        let fits = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= self.0.limit);
        let admitted = self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if !admitted {
            self.0.closed.store(true, Ordering::Relaxed);
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_at_the_first_that_does_not_fit() {
        let budget = OutputBudget::new(100).already_used(80);
        assert!(budget.admit(15));
        assert!(!budget.is_exhausted());
        assert!(!budget.admit(6));
        assert!(!budget.admit(1), "a smaller one must not slip in behind a clipped one");
        assert_eq!((budget.used(), budget.is_exhausted()), (95, true));
    }

    #[test]
    fn a_resume_past_the_limit_keeps_nothing() {
        let budget = OutputBudget::new(10).already_used(u64::MAX);
        assert!(!budget.admit(1));
        assert!(OutputBudget::unlimited().admit(u64::MAX));
    }
}

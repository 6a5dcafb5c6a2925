//! The rule of strict increase, for any number of threads, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ProgressError;

/// The last number that was accepted, as the bits of an `f64`.
///
/// Accepting is one compare-and-exchange, so accepted numbers have one order, and it is the order of their sizes.
#[derive(Debug)]
pub(crate) struct Guard(AtomicU64);

impl Guard {
    pub(crate) const fn new() -> Self {
        // Less than every finite number.
        Self(AtomicU64::new(f64::NEG_INFINITY.to_bits()))
    }

    /// The last number, if there was one.
    pub(crate) fn last(&self) -> Option<f64> {
        // Sequentially consistent with `Stream::arm`: see there.
        let last = f64::from_bits(self.0.load(Ordering::SeqCst));
        last.is_finite().then_some(last)
    }

    /// Takes `value` if it is finite and greater than all before.
    #[inline]
    pub(crate) fn accept(&self, value: f64) -> Result<(), ProgressError> {
        if !value.is_finite() {
            return Err(ProgressError::NotFinite { value });
        }
        // -0.0 is 0.0: they are equal, and only one of them looks like a number to people.
        let value = value + 0.0;
        self.advance(|_| value)
    }

    /// Takes the next whole number: 1 at first.
    #[inline]
    pub(crate) fn count(&self) -> Result<(), ProgressError> {
        self.advance(|last| if last.is_finite() { last.floor() + 1.0 } else { 1.0 })
    }

    #[inline]
    fn advance(&self, next: impl Fn(f64) -> f64) -> Result<(), ProgressError> {
        let mut bits = self.0.load(Ordering::Relaxed);
        loop {
            let last = f64::from_bits(bits);
            let value = next(last);
            if value <= last {
                return Err(ProgressError::NotGreater { value, last });
            }
            match self.0.compare_exchange_weak(bits, value.to_bits(), Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => bits = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f64], accepted: &[bool]) {
        let guard = Guard::new();
        let got: Vec<_> = values.iter().map(|value| guard.accept(*value).is_ok()).collect();
        assert_eq!(got, accepted, "{values:?}");
    }

    #[test]
    fn strictly_greater_and_finite() {
        check(&[0.0, 0.0, -0.0, 1.0, 0.5, 1.5], &[true, false, false, true, false, true]);
        check(&[-0.0, 0.0], &[true, false]);
        check(
            &[-3.0, -2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -2.5],
            &[true, true, false, false, false, false],
        );
        check(&[f64::MAX, f64::INFINITY], &[true, false]);
        check(&[0.0, f64::MIN_POSITIVE, f64::from_bits(1)], &[true, true, false]);
    }

    #[test]
    fn minus_zero_is_zero() {
        let guard = Guard::new();
        guard.accept(-0.0).unwrap();
        assert_eq!(guard.last().map(f64::to_bits), Some(0));
    }

    #[test]
    fn neighbours_that_widening_makes_equal_are_equal() {
        const TWO_53: i64 = 1 << 53;
        check(&[TWO_53 as f64, (TWO_53 + 1) as f64, (TWO_53 + 2) as f64], &[true, false, true]);
        check(&[i64::MAX as f64, (i64::MAX - 1) as f64], &[true, false]);
    }

    #[test]
    fn counting_goes_on_from_any_number_and_ends_where_numbers_have_no_successor() {
        let guard = Guard::new();
        guard.count().unwrap();
        assert_eq!(guard.last(), Some(1.0));
        guard.accept(2.5).unwrap();
        guard.count().unwrap();
        assert_eq!(guard.last(), Some(3.0));
        guard.accept(9_007_199_254_740_992.0).unwrap();
        assert!(matches!(guard.count(), Err(ProgressError::NotGreater { .. })));
    }

    #[test]
    fn what_threads_have_accepted_is_one_increasing_row() {
        let guard = Guard::new();
        let mut counts = Vec::new();
        std::thread::scope(|scope| {
            let threads = (0..8).map(|_| scope.spawn(|| (0..5000).filter(|_| guard.count().is_ok()).count()));
            let threads: Vec<_> = threads.collect();
            counts.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        });
        assert_eq!(counts.iter().sum::<usize>(), 40_000);
        assert_eq!(guard.last(), Some(40_000.0), "each count is a number of its own");
    }
}

//! The typed emitters.

use std::{fmt::Display, sync::Arc};

use crate::{
    ProgressError,
    branch::{Branch, Branches},
    guard::Guard,
    stream::Stream,
    tree::NodeId,
};

/// What all emitters are made of.
#[derive(Debug)]
pub(crate) struct Emitter {
    guard: Arc<Guard>,
    stream: Arc<Stream>,
    /// The branch that this is a try of. `None`: the request's own emitter.
    node: Option<NodeId>,
    total: Option<f64>,
    bad_total: bool,
}

impl Emitter {
    pub(crate) fn new(stream: &Arc<Stream>, node: Option<NodeId>, total: Option<f64>, whole: bool) -> Self {
        let stream = Arc::clone(stream);
        let bad_total = total.is_some_and(|total| !(total.is_finite() && total > 0.0));
        let mut emitter = Self { guard: Arc::clone(stream.guard()), stream, node, total, bad_total };
        if node.is_some() {
            emitter.guard = Arc::new(Guard::new());
        }
        match node {
            _ if bad_total => {}
            None => emitter.stream.lead_by_emitter(total, whole),
            Some(node) => {
                emitter.stream.with_tree(|tree| tree.begin(node, &emitter.guard, total));
            }
        }
        emitter
    }

    #[inline]
    fn check(&self) -> Result<(), ProgressError> {
        if self.bad_total { Err(self.refuse()) } else { Ok(()) }
    }

    #[cold]
    fn refuse(&self) -> ProgressError {
        ProgressError::BadTotal { total: self.total.unwrap_or(f64::NAN) }
    }

    #[inline]
    fn emit(&self, value: f64) -> Result<(), ProgressError> {
        self.check()?;
        self.guard.accept(value)?;
        self.stream.moved();
        Ok(())
    }

    #[inline]
    fn emit_with(&self, value: f64, message: impl Display) -> Result<(), ProgressError> {
        self.check()?;
        self.stream.say(|| self.guard.accept(value), message)
    }

    #[inline]
    fn count(&self) -> Result<(), ProgressError> {
        self.check()?;
        self.guard.count()?;
        self.stream.moved();
        Ok(())
    }

    #[inline]
    fn count_with(&self, message: impl Display) -> Result<(), ProgressError> {
        self.check()?;
        self.stream.say(|| self.guard.count(), message)
    }

    fn divide(self, weights: &[f64], open: bool) -> Result<(Arc<Stream>, NodeId, Vec<NodeId>), ProgressError> {
        self.check()?;
        for weight in weights {
            crate::tree::check_weight(*weight)?;
        }
        let Self { guard, stream, node, total, .. } = self;
        let (node, ids) = match node {
            None => stream.lead_by_tree(total, weights, open)?,
            Some(node) => {
                let split = stream.with_tree(|tree| tree.split(node, &guard, weights, open));
                (node, split.unwrap_or(Err(ProgressError::Complete))?)
            }
        };
        Ok((stream, node, ids))
    }

    fn split(self, weights: &[f64]) -> Result<Vec<Branch>, ProgressError> {
        if weights.is_empty() {
            return Err(ProgressError::NoBranches);
        }
        let (stream, _, ids) = self.divide(weights, false)?;
        Ok(ids.into_iter().map(|id| Branch::new(Arc::clone(&stream), id)).collect())
    }

    fn branches(self) -> Result<Branches, ProgressError> {
        let (stream, node, _) = self.divide(&[], true)?;
        Ok(Branches::new(stream, node))
    }

    fn grow(&self, total: f64) -> Result<(), ProgressError> {
        if !(total.is_finite() && total > 0.0) {
            return Err(ProgressError::BadTotal { total });
        }
        let Some(node) = self.node else { return Err(ProgressError::FixedTotal) };
        self.check()?;
        self.stream.with_tree(|tree| tree.grow(node, &self.guard, total)).unwrap_or(Err(ProgressError::Complete))
    }
}

/// What each emitter has beside its own `emit`.
macro_rules! becomes_branches {
    () => {
        /// Turns this emitter into one branch for each weight, and no more than these.
        ///
        /// Weights are from 1e-9 to 1e9, and only their ratios count. What was reported so far stays; the branches share
        /// the rest. The whole is complete when all of them are. See [`Branch`].
        ///
        /// # Errors
        ///
        /// [`ProgressError::NoBranches`], [`ProgressError::BadWeight`], [`ProgressError::BadTotal`];
        /// [`ProgressError::Complete`] when there is no rest or, on a branch, another try has begun;
        /// [`ProgressError::TooDeep`].
        pub fn split(self, weights: &[f64]) -> Result<Vec<Branch>, ProgressError> {
            self.0.split(weights)
        }

        /// Turns this emitter into branches that join as they become known. See [`Branches`].
        ///
        /// # Errors
        ///
        /// As [`split`](Self::split), but for the weights.
        pub fn branches(self) -> Result<Branches, ProgressError> {
            self.0.branches()
        }
    };
}

/// Reports numbers.
///
/// Cheap to share between threads by reference or in an `Arc`. Reporting takes some nanoseconds, never waits, and is the
/// same whether or not the client asked for progress: a violation is an error for every client, or for none. Dropping it
/// sends nothing and completes nothing; what was reported stays.
#[derive(Debug)]
pub struct DoubleProgress(pub(crate) Emitter);

impl DoubleProgress {
    /// Reports that `progress` is reached: a finite number, greater than every one before.
    ///
    /// # Errors
    ///
    /// [`ProgressError::NotFinite`], [`ProgressError::NotGreater`], [`ProgressError::BadTotal`]: nothing is sent, and
    /// nothing changes. (MCP 2026-07-28, progress: "The progress value MUST increase with each notification".)
    #[inline]
    pub fn emit(&self, progress: f64) -> Result<(), ProgressError> {
        self.0.emit(progress)
    }

    /// Reports like [`emit`](Self::emit), with words: one line, at most 200 characters, the meaning first.
    ///
    /// What is longer or has line breaks is made to fit. The message stays beside the numbers until another replaces it;
    /// the number and the message on the wire are the latest of each.
    ///
    /// # Errors
    ///
    /// As [`emit`](Self::emit).
    #[inline]
    pub fn emit_with(&self, progress: f64, message: impl Display) -> Result<(), ProgressError> {
        self.0.emit_with(progress, message)
    }

    /// Raises the total of a branch, or makes it known. What was reported stays; the rest of the branch is shared out
    /// over the work that is open now.
    ///
    /// # Errors
    ///
    /// [`ProgressError::NotGreater`] where `total` is not greater than the one before and than what is reached;
    /// [`ProgressError::BadTotal`]; [`ProgressError::Complete`]; [`ProgressError::FixedTotal`] on the request's own emitter.
    pub fn grow(&self, total: f64) -> Result<(), ProgressError> {
        self.0.grow(total)
    }

    becomes_branches!();
}

/// Reports whole numbers. Otherwise as [`DoubleProgress`].
///
/// Numbers are compared as the wire carries them, as 64-bit floats: from 2^53 on some neighbours are one number there.
#[derive(Debug)]
pub struct LongProgress(pub(crate) Emitter);

impl LongProgress {
    /// Reports that `progress` is reached: greater than every number before.
    ///
    /// # Errors
    ///
    /// As [`DoubleProgress::emit`].
    #[inline]
    pub fn emit(&self, progress: i64) -> Result<(), ProgressError> {
        self.0.emit(progress as f64)
    }

    /// Reports like [`emit`](Self::emit), with words. See [`DoubleProgress::emit_with`].
    ///
    /// # Errors
    ///
    /// As [`DoubleProgress::emit`].
    #[inline]
    pub fn emit_with(&self, progress: i64, message: impl Display) -> Result<(), ProgressError> {
        self.0.emit_with(progress as f64, message)
    }

    /// Raises the total of a branch. See [`DoubleProgress::grow`].
    ///
    /// # Errors
    ///
    /// As [`DoubleProgress::grow`].
    pub fn grow(&self, total: i64) -> Result<(), ProgressError> {
        self.0.grow(total as f64)
    }

    becomes_branches!();
}

/// Counts: 1, 2, 3, … Otherwise as [`DoubleProgress`].
#[derive(Debug)]
pub struct CountingProgress(pub(crate) Emitter);

impl CountingProgress {
    /// Counts one more. Any number of threads may: each call is a number of its own.
    ///
    /// # Errors
    ///
    /// [`ProgressError::BadTotal`]; [`ProgressError::NotGreater`] after 2^53.
    #[inline]
    pub fn emit(&self) -> Result<(), ProgressError> {
        self.0.count()
    }

    /// Counts one more, with words. See [`DoubleProgress::emit_with`].
    ///
    /// # Errors
    ///
    /// As [`emit`](Self::emit).
    #[inline]
    pub fn emit_with(&self, message: impl Display) -> Result<(), ProgressError> {
        self.0.count_with(message)
    }

    /// Raises the total of a branch. See [`DoubleProgress::grow`].
    ///
    /// # Errors
    ///
    /// As [`DoubleProgress::grow`].
    pub fn grow(&self, total: u64) -> Result<(), ProgressError> {
        self.0.grow(total as f64)
    }

    becomes_branches!();
}

/// Reports fractions from 0 to 1; the total on the wire is 1. Otherwise as [`DoubleProgress`].
#[derive(Debug)]
pub struct PercentProgress(pub(crate) Emitter);

impl PercentProgress {
    /// Reports that `fraction` is done: from 0 to 1, and greater than every one before.
    ///
    /// # Errors
    ///
    /// [`ProgressError::OutOfRange`], and as [`DoubleProgress::emit`].
    #[inline]
    pub fn emit(&self, fraction: f64) -> Result<(), ProgressError> {
        Self::check(fraction)?;
        self.0.emit(fraction)
    }

    /// Reports like [`emit`](Self::emit), with words. See [`DoubleProgress::emit_with`].
    ///
    /// # Errors
    ///
    /// As [`emit`](Self::emit).
    #[inline]
    pub fn emit_with(&self, fraction: f64, message: impl Display) -> Result<(), ProgressError> {
        Self::check(fraction)?;
        self.0.emit_with(fraction, message)
    }

    #[inline]
    fn check(fraction: f64) -> Result<(), ProgressError> {
        // What is not finite is told apart by the guard.
        if fraction.is_finite() && !(0.0..=1.0).contains(&fraction) {
            return Err(ProgressError::OutOfRange { value: fraction });
        }
        Ok(())
    }

    becomes_branches!();
}

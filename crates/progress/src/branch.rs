//! Branches of an emitter.

use std::sync::Arc;

use crate::{
    ProgressError, ProgressSource, Source,
    stream::Stream,
    tree::{NodeId, Tree},
};

/// One part of the work, to be reported from anywhere, while others report theirs.
///
/// It is a [`ProgressSource`]: whoever does the work makes an emitter of it, and does not see that it is a branch. Making
/// another one begins another try: what was done in the one before stays on the wire, and the new try covers the rest.
///
/// A branch is complete when its try reached a known total and the branch was dropped, so that no other try can begin, or
/// by [`done`](Self::done). Dropping it completes nothing: after a failure, or a panic, the whole never claims to be
/// complete. Where a part turns out not to be needed, [`abandon`](Self::abandon) it.
///
/// The calls here, other than reporting, take a lock for the time of walking over the branches.
///
/// ```
/// use taffrail_progress::{ProgressSource, Source};
///
/// # fn fetch(_: &impl ProgressSource) {}
/// # fn build(_: &impl ProgressSource) {}
/// fn work(cx: &impl ProgressSource) -> Result<(), taffrail_progress::ProgressError> {
///     let parts = cx.percent_progress().split(&[1.0, 4.0])?; // building takes four times as long
///     std::thread::scope(|scope| {
///         for (part, job) in parts.into_iter().zip([fetch, build]) {
///             scope.spawn(move || job(&part));
///         }
///     });
///     Ok(())
/// }
/// # work(&Source::silent()).unwrap();
/// ```
#[derive(Debug)]
pub struct Branch {
    stream: Arc<Stream>,
    node: NodeId,
}

impl Branch {
    pub(crate) const fn new(stream: Arc<Stream>, node: NodeId) -> Self {
        Self { stream, node }
    }

    /// All of it is done, whatever was reported.
    pub fn done(self) {
        self.change(Tree::done);
    }

    /// It will not be done and need not be: the other branches share its rest.
    pub fn abandon(self) {
        self.change(Tree::abandon);
    }

    fn change(&self, change: impl FnOnce(&mut Tree, NodeId)) {
        // Where another emitter of the request has taken the lead, there is no tree to change.
        self.stream.with_tree(|tree| change(tree, self.node));
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        self.change(Tree::let_go);
    }
}

impl ProgressSource for Branch {
    fn progress_source(&self) -> Source {
        Source::of_branch(Arc::clone(&self.stream), self.node)
    }
}

/// An open set of branches: more join as the work becomes known.
///
/// A branch that joins takes its share of what is left; what is on the wire stays. The set keeps back a sixteenth for
/// those that may still come, until it is [`close`](Self::close)d: only a closed set can be complete. Dropping it closes
/// nothing. Clones are the same set.
#[derive(Debug, Clone)]
pub struct Branches {
    stream: Arc<Stream>,
    node: NodeId,
}

impl Branches {
    pub(crate) const fn new(stream: Arc<Stream>, node: NodeId) -> Self {
        Self { stream, node }
    }

    /// Another branch joins. `weight` is from 1e-9 to 1e9; only the ratio to the others counts.
    ///
    /// # Errors
    ///
    /// [`ProgressError::BadWeight`]; [`ProgressError::Complete`] once the set is closed, done, or part of a try that was
    /// begun anew.
    pub fn branch(&self, weight: f64) -> Result<Branch, ProgressError> {
        let joined = self.stream.with_tree(|tree| tree.join(self.node, weight));
        let id = joined.unwrap_or(Err(ProgressError::Complete))?;
        Ok(Branch::new(Arc::clone(&self.stream), id))
    }

    /// No more branches join: the set is complete as soon as all that did are.
    pub fn close(&self) {
        self.stream.with_tree(|tree| tree.close(self.node));
    }
}

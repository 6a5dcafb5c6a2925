//! Where emitters come from.

use std::sync::Arc;

use crate::{
    CountingProgress, DoubleProgress, LongProgress, PercentProgress, emitter::Emitter, stream::Stream, tree::NodeId,
};

/// Makes emitters that are bound to one request, or to one [`Branch`](crate::Branch) of its work.
///
/// Totals are positive and finite, or `None` where not known. A total that is neither does not fail here but at each
/// report, so that nothing has to be handled where an emitter is made.
///
/// There is one stream of numbers on a request: emitters that are made one after the other, or used at once, go on from
/// each other's numbers, with the total of the one made last. To report parts separately, split one. A request that is
/// retried with answers (MRTR) has a stream of its own and starts afresh.
pub trait ProgressSource {
    /// The stream behind it.
    fn progress_source(&self) -> Source;

    /// Reports numbers, with fractions or not, in any unit.
    fn double_progress(&self, total: Option<f64>) -> DoubleProgress {
        DoubleProgress(self.progress_source().emitter(total, false))
    }

    /// Reports whole numbers, in any unit.
    fn long_progress(&self, total: Option<i64>) -> LongProgress {
        LongProgress(self.progress_source().emitter(total.map(|total| total as f64), true))
    }

    /// Counts 1, 2, 3, …
    fn counting_progress(&self, total: Option<u64>) -> CountingProgress {
        CountingProgress(self.progress_source().emitter(total.map(|total| total as f64), true))
    }

    /// Reports a fraction of the whole, from 0 to 1.
    fn percent_progress(&self) -> PercentProgress {
        PercentProgress(self.progress_source().emitter(Some(1.0), false))
    }
}

/// The stream of progress of one request. Clones are the same stream.
///
/// Made by [`channel`](crate::channel), or, with the feature `tokio`, by `RequestProgress`. It does not keep the stream
/// open: once the request is answered, reports are still checked, and go nowhere.
#[derive(Debug, Clone)]
pub struct Source {
    stream: Arc<Stream>,
    node: Option<NodeId>,
}

impl Source {
    pub(crate) const fn new(stream: Arc<Stream>) -> Self {
        Self { stream, node: None }
    }

    pub(crate) const fn of_branch(stream: Arc<Stream>, node: NodeId) -> Self {
        Self { stream, node: Some(node) }
    }

    /// For a request without a progress token: everything is checked, nothing is sent.
    pub fn silent() -> Self {
        Self::new(Arc::new(Stream::silent()))
    }

    fn emitter(&self, total: Option<f64>, whole: bool) -> Emitter {
        Emitter::new(&self.stream, self.node, total, whole)
    }
}

impl ProgressSource for Source {
    fn progress_source(&self) -> Source {
        self.clone()
    }
}

impl<S: ProgressSource + ?Sized> ProgressSource for &S {
    fn progress_source(&self) -> Source {
        (**self).progress_source()
    }
}

impl<S: ProgressSource + ?Sized> ProgressSource for Arc<S> {
    fn progress_source(&self) -> Source {
        (**self).progress_source()
    }
}

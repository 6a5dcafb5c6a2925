//! What the emitters of one request share with whatever sends.

use std::{
    fmt::{self, Debug, Display},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    ProgressError,
    guard::Guard,
    message::Messages,
    tree::{NodeId, Tree},
};

/// A beat, or a message without a move, goes a 1024th of the way to what it must not reach; and where the next real number
/// is not known, it must not go further than a 1024th of what is left.
const SMALL: f64 = 1.0 / 1024.0;

/// The progress of one request.
pub(crate) struct Stream {
    /// One for all emitters of a request: there is one token, and on one token numbers increase.
    guard: Arc<Guard>,
    /// The sender has nothing to do, and wants to be woken by the next move.
    armed: AtomicBool,
    closed: AtomicBool,
    messages: Messages,
    /// Who speaks. Only turns and the sender take this lock; reporting a number does not.
    lead: Mutex<Lead>,
    wake: Box<dyn Fn() + Send + Sync>,
}

/// Whose numbers go over the wire: those of the emitter that was made last.
#[derive(Debug)]
enum Lead {
    Nobody,
    Emitter { total: Option<f64>, whole: bool },
    Tree(Tree),
}

/// What there is to say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    /// Nothing before the first report.
    pub(crate) value: Option<f64>,
    pub(crate) total: Option<f64>,
    /// What must not be reached without a report.
    pub(crate) limit: f64,
}

impl Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("guard", &self.guard).field("lead", &self.lead).finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            guard: Arc::new(Guard::new()),
            armed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            messages: Messages::default(),
            lead: Mutex::new(Lead::Nobody),
            wake: Box::new(wake),
        }
    }

    /// One that nobody reads. Its emitters check what they are told all the same.
    pub(crate) fn silent() -> Self {
        let stream = Self::new(|| {});
        stream.close();
        stream
    }

    pub(crate) const fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    fn lead(&self) -> MutexGuard<'_, Lead> {
        // What a panicking thread has left is whole: turns do not call anything that could panic in between.
        self.lead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An emitter takes the lead.
    pub(crate) fn lead_by_emitter(&self, total: Option<f64>, whole: bool) {
        *self.lead() = Lead::Emitter { total, whole };
        self.moved();
    }

    /// The emitter with `total` becomes branches.
    pub(crate) fn lead_by_tree(
        &self,
        total: Option<f64>,
        weights: &[f64],
        open: bool,
    ) -> Result<(NodeId, Vec<NodeId>), ProgressError> {
        let mut lead = self.lead();
        let last = self.guard.last();
        if total.is_some_and(|total| last.is_some_and(|last| last >= total)) {
            return Err(ProgressError::Complete);
        }
        let mut tree = Tree::new(last, total);
        let root = tree.root();
        let ids = tree.divide(root, weights, open)?;
        *lead = Lead::Tree(tree);
        drop(lead);
        self.moved();
        Ok((root, ids))
    }

    /// Changes the tree. `None` where another emitter has the lead by now.
    pub(crate) fn with_tree<T>(&self, change: impl FnOnce(&mut Tree) -> T) -> Option<T> {
        let done = match &mut *self.lead() {
            Lead::Tree(tree) => Some(change(tree)),
            _ => None,
        };
        self.moved();
        done
    }

    /// Takes a number with `accept`, and keeps its message for the next notification.
    #[inline]
    pub(crate) fn say(
        &self,
        accept: impl FnOnce() -> Result<(), ProgressError>,
        message: impl Display,
    ) -> Result<(), ProgressError> {
        if self.closed.load(Ordering::Relaxed) {
            return accept();
        }
        let saying = self.messages.begin();
        accept()?;
        saying.put(message);
        self.moved();
        Ok(())
    }

    /// After a move: wakes the sender, if it sleeps.
    #[inline]
    pub(crate) fn moved(&self) {
        if self.armed.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        if self.armed.swap(false, Ordering::SeqCst) {
            (self.wake)();
        }
    }

    /// The sender goes to sleep. It must read once more after this: a number that was accepted before may not have woken
    /// it. Both sides write first and then read (number, then flag; flag, then number), sequentially consistent, so that
    /// at least one of them sees the other.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn disarm(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }

    /// Nothing is sent from now on.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.disarm();
    }

    pub(crate) const fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Where things stand. `None` before there is any emitter.
    pub(crate) fn read(&self) -> Option<Reading> {
        let reading = match &*self.lead() {
            Lead::Nobody => return None,
            Lead::Emitter { total, whole } => {
                let value = self.guard.last();
                let at = value.unwrap_or(0.0);
                let limit = match total {
                    Some(total) if *whole => total.min(at.floor() + 1.0),
                    Some(total) => at + (total - at) * SMALL,
                    None if *whole => at.floor() + 1.0,
                    None => at + at.abs().max(1.0) * SMALL,
                };
                Reading { value, total: *total, limit }
            }
            Lead::Tree(tree) => {
                let (value, is_final) = tree.value();
                let limit = if is_final { value } else { value + (tree.end() - value) * SMALL };
                Reading { value: Some(value), total: tree.total(), limit }
            }
        };
        Some(reading)
    }
}

impl Reading {
    /// The number to send after `sent`, or none where there is none to be had without inventing progress.
    pub(crate) fn after(&self, sent: Option<f64>) -> Option<f64> {
        let value = self.value.unwrap_or(0.0);
        match sent {
            None => Some(value),
            Some(sent) if value > sent => Some(value),
            Some(sent) => {
                let next = sent + (self.limit - sent) * SMALL;
                (sent < next && next < self.limit).then_some(next)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: f64, limit: f64, sent: Option<f64>, expected: Option<f64>) {
        assert_eq!(Reading { value: Some(value), total: None, limit }.after(sent), expected);
    }

    #[test]
    fn what_moved_is_sent_as_it_is_and_what_did_not_goes_a_small_step() {
        check(5.0, 6.0, None, Some(5.0));
        check(5.0, 6.0, Some(4.9), Some(5.0));
        check(5.0, 6.0, Some(5.0), Some(5.0 + SMALL));
        check(6.0, 6.0, Some(6.0), None);
        check(7.0, 6.0, Some(7.0), None);
        check(1e300, 1e300, Some(1e300), None);
    }

    #[test]
    fn steps_without_a_move_never_reach_the_limit() {
        let reading = Reading { value: Some(5.0), total: None, limit: 6.0 };
        let (mut sent, mut steps) = (5.0, 0);
        while let Some(next) = reading.after(Some(sent)) {
            assert!(sent < next && next < 6.0);
            (sent, steps) = (next, steps + 1);
        }
        assert!(steps > 20_000, "at one in 15 s, more than three days: {steps}");
    }

    #[test]
    fn limits() {
        let stream = Stream::silent();
        assert_eq!(stream.read(), None);
        let limit = |total, whole| {
            stream.lead_by_emitter(total, whole);
            stream.read().unwrap().limit
        };
        assert_eq!(limit(Some(10.0), true), 1.0);
        stream.guard().accept(9.0).unwrap();
        assert_eq!(limit(Some(10.0), true), 10.0);
        assert_eq!(limit(None, true), 10.0);
        assert_eq!(limit(Some(10.0), false), 9.0 + SMALL);
        assert_eq!(limit(None, false), 9.0 + 9.0 * SMALL);
        stream.guard().accept(10.0).unwrap();
        assert_eq!(limit(Some(10.0), true), 10.0);
        assert_eq!(limit(Some(10.0), false), 10.0);
        stream.guard().accept(11.0).unwrap();
        assert!(limit(Some(10.0), false) < 11.0, "past the total there is no room");
        stream.guard().accept(f64::MAX).unwrap();
        assert!(!(limit(None, false) > f64::MAX && limit(None, false).is_finite()));
    }
}

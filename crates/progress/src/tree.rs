//! Many branches, one number. `docs/progress.md` has the rule and its proof.
//!
//! Every node of the tree has a *rest*: the share of its work that is still to be done, from 1 down to 0. The rule is one
//! sentence: **the rest is shared out over the work that is open.** At a *turn* (a branch joins, a try begins anew, a total
//! grows, an emitter becomes branches) a node keeps its rest and looks up how much work is open from now on; between
//! turns its rest shrinks as that open work does. So a rest never grows, whatever happens below it.
//!
//! A node whose work is done, and below which nothing can bring new work any more, is *final*; its rest is 0. The wire shows
//! `total · (1 − rest of the root)`, and less than the total until the root is final.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{ProgressError, guard::Guard};

/// What a branch keeps back, as a part of the rest it had at its last turn, as long as somebody holds it: another try would
/// cover that.
const KEPT: f64 = 1.0 / 1024.0;

/// What an open set of branches keeps back for those that have not joined yet, as a part of the weights that have.
const OPEN_SHARE: f64 = 1.0 / 16.0;

/// Doublings of a number of unknown total after which half of the work counts as done: 255 steps. Any figure is a guess;
/// with a logarithm, steps and bytes both move a bar that never fills.
const HALF_DOUBLINGS: f64 = 8.0;

/// Weights, so that sums of any number of them stay finite.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// So that walking down the tree needs little stack.
const DEEPEST: u32 = 32;

/// Never used twice, so that a handle to what is gone reaches nothing else.
pub(crate) type NodeId = u64;

fn fresh() -> NodeId {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The branches of one emitter.
#[derive(Debug)]
pub(crate) struct Tree {
    /// On the wire. `None`: not known, and left out.
    total: Option<f64>,
    /// What the emitter had reached when it became branches; where the total is not known, the tree adds up to 1 to it.
    begin: f64,
    root: NodeId,
    nodes: HashMap<NodeId, Node>,
}

#[derive(Debug)]
struct Node {
    parent: Option<NodeId>,
    depth: u32,
    weight: f64,
    /// The rest at the last turn.
    base: f64,
    /// The open work at the last turn.
    reference: f64,
    work: Work,
    /// Somebody may begin another try.
    held: bool,
    /// Complete by its own word.
    done: bool,
}

#[derive(Debug)]
enum Work {
    NotBegun,
    Counted { guard: Arc<Guard>, total: Option<f64> },
    Branches { of: Vec<NodeId>, open: bool },
}

/// The open work of a number: from 1 down to 0, and 0 only where a known total is reached.
fn open_work(value: f64, total: Option<f64>) -> f64 {
    let value = value.max(0.0);
    match total {
        Some(total) => (1.0 - value / total).max(0.0),
        None => HALF_DOUBLINGS / (HALF_DOUBLINGS + (1.0 + value).log2()),
    }
}

pub(crate) fn check_weight(weight: f64) -> Result<(), ProgressError> {
    if WEIGHTS.contains(&weight) { Ok(()) } else { Err(ProgressError::BadWeight { weight }) }
}

impl Tree {
    /// The root: an emitter that has reached `value` of `total`.
    pub(crate) fn new(value: Option<f64>, total: Option<f64>) -> Self {
        let begin = value.unwrap_or(0.0);
        // Where nothing is known about the whole, the branches are the whole.
        let base = total.map_or(1.0, |total| open_work(begin, Some(total)));
        let work = Work::Branches { of: Vec::new(), open: true };
        let root = Node { parent: None, depth: 0, weight: 1.0, base, reference: 0.0, work, held: false, done: false };
        let id = fresh();
        Self { total, begin, root: id, nodes: HashMap::from([(id, root)]) }
    }

    pub(crate) const fn root(&self) -> NodeId {
        self.root
    }

    pub(crate) const fn total(&self) -> Option<f64> {
        self.total
    }

    /// What the wire may show, and whether that is the end.
    pub(crate) fn value(&self) -> (f64, bool) {
        let is_final = self.is_final(self.root);
        let gone = 1.0 - self.rest(self.root);
        let (value, end) = match self.total {
            Some(total) => (total * gone, total),
            None => (self.begin + gone, self.end()),
        };
        if is_final { (end, true) } else { (value.min(end.next_down()), false) }
    }

    /// What the wire shows in the end.
    pub(crate) fn end(&self) -> f64 {
        self.total.unwrap_or(self.begin + 1.0)
    }

    /// The share of a node's work that is still to be done. Unknown nodes have none.
    fn rest(&self, id: NodeId) -> f64 {
        let Some(node) = self.nodes.get(&id) else { return 0.0 };
        if self.is_final(id) {
            return 0.0;
        }
        // Nothing was open at the last turn: nobody has joined yet, and the rest waits for those who do.
        let ratio = if node.reference > 0.0 { self.open(node) / node.reference } else { 1.0 };
        node.base * ratio.clamp(if node.held { KEPT } else { 0.0 }, 1.0)
    }

    /// The work of a node that is open: all of it is 1 for a number, the sum of the weights for branches.
    fn open(&self, node: &Node) -> f64 {
        match &node.work {
            Work::NotBegun => 1.0,
            Work::Counted { guard, total } => open_work(guard.last().unwrap_or(0.0), *total),
            Work::Branches { of, open } => {
                let weight = |id: &NodeId| self.nodes.get(id).map_or(0.0, |node| node.weight);
                let coming = if *open { OPEN_SHARE * of.iter().map(weight).sum::<f64>() } else { 0.0 };
                of.iter().map(|id| weight(id) * self.rest(*id)).sum::<f64>() + coming
            }
        }
    }

    /// Whether nothing below a node can bring new work any more, and all of it is done.
    fn is_final(&self, id: NodeId) -> bool {
        let Some(node) = self.nodes.get(&id) else { return true };
        if node.done {
            return true;
        }
        !node.held
            && match &node.work {
                Work::NotBegun => false,
                Work::Counted { guard, total } => reached(guard, *total),
                Work::Branches { of, open } => !open && of.iter().all(|id| self.is_final(*id)),
            }
    }

    /// A turn of a node: it keeps its rest, and what is open after `change` is what the rest is shared out over.
    fn turn(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        let rest = self.rest(id);
        let Some(node) = self.nodes.get_mut(&id) else { return };
        change(node);
        node.base = rest;
        let open = self.nodes.get(&id).map_or(0.0, |node| self.open(node));
        if let Some(node) = self.nodes.get_mut(&id) {
            node.reference = open;
        }
    }

    /// A branch joins `parent`, which must be an open set of branches.
    pub(crate) fn join(&mut self, parent: NodeId, weight: f64) -> Result<NodeId, ProgressError> {
        check_weight(weight)?;
        let depth = match self.nodes.get(&parent) {
            Some(Node { work: Work::Branches { open: true, .. }, depth, .. }) if !self.is_over(parent) => *depth + 1,
            _ => return Err(ProgressError::Complete),
        };
        let id = self.add(parent, depth, weight);
        self.turn(parent, |node| {
            if let Work::Branches { of, .. } = &mut node.work {
                of.push(id);
            }
        });
        Ok(id)
    }

    fn add(&mut self, parent: NodeId, depth: u32, weight: f64) -> NodeId {
        let id = fresh();
        let (base, reference, work) = (1.0, 1.0, Work::NotBegun);
        let node = Node { parent: Some(parent), depth, weight, base, reference, work, held: true, done: false };
        self.nodes.insert(id, node);
        id
    }

    /// Makes branches of a node, one for each weight; others may join if `open`.
    pub(crate) fn divide(&mut self, id: NodeId, weights: &[f64], open: bool) -> Result<Vec<NodeId>, ProgressError> {
        for weight in weights {
            check_weight(*weight)?;
        }
        let depth = match self.nodes.get(&id) {
            Some(node) if node.depth >= DEEPEST => return Err(ProgressError::TooDeep),
            Some(node) => node.depth + 1,
            None => return Err(ProgressError::Complete),
        };
        let ids: Vec<_> = weights.iter().map(|weight| self.add(id, depth, *weight)).collect();
        let of = ids.clone();
        self.turn(id, |node| node.work = Work::Branches { of, open });
        Ok(ids)
    }

    /// No more branches join `id`: its rest is for those who have.
    pub(crate) fn close(&mut self, id: NodeId) {
        self.turn(id, |node| {
            if let Work::Branches { open, .. } = &mut node.work {
                *open = false;
            }
        });
    }

    /// A try begins, the first or another one: the rest is shared out over all of its work. Whether it counts: it does
    /// not where nobody holds the branch any more.
    pub(crate) fn begin(&mut self, id: NodeId, guard: &Arc<Guard>, total: Option<f64>) -> bool {
        if !self.nodes.get(&id).is_some_and(|node| node.held && !node.done) {
            return false;
        }
        let mut before = Work::NotBegun;
        let now = Work::Counted { guard: Arc::clone(guard), total };
        self.turn(id, |node| before = std::mem::replace(&mut node.work, now));
        self.forget(before);
        true
    }

    /// The emitter with `guard` becomes branches.
    pub(crate) fn split(
        &mut self,
        id: NodeId,
        guard: &Arc<Guard>,
        weights: &[f64],
        open: bool,
    ) -> Result<Vec<NodeId>, ProgressError> {
        match self.nodes.get(&id) {
            Some(Node { work: Work::Counted { guard: own, total }, done: false, .. })
                if Arc::ptr_eq(own, guard) && !reached(own, *total) =>
            {
                self.divide(id, weights, open)
            }
            // Another try has begun since, or the branch is done.
            _ => Err(ProgressError::Complete),
        }
    }

    /// The total of the emitter with `guard` grows, or becomes known.
    pub(crate) fn grow(&mut self, id: NodeId, guard: &Arc<Guard>, new: f64) -> Result<(), ProgressError> {
        match self.nodes.get(&id) {
            Some(Node { work: Work::Counted { guard: own, total }, done: false, .. }) if Arc::ptr_eq(own, guard) => {
                let last = own.last().unwrap_or(f64::NEG_INFINITY);
                if total.is_some_and(|total| last >= total) {
                    return Err(ProgressError::Complete);
                }
                let least = total.unwrap_or(0.0).max(last);
                if new <= least {
                    return Err(ProgressError::NotGreater { value: new, last: least });
                }
            }
            _ => return Err(ProgressError::Complete),
        }
        self.turn(id, |node| {
            if let Work::Counted { total, .. } = &mut node.work {
                *total = Some(new);
            }
        });
        Ok(())
    }

    /// Complete by its own word.
    pub(crate) fn done(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.done = true;
            let before = std::mem::replace(&mut node.work, Work::NotBegun);
            self.forget(before);
        }
    }

    /// Nobody holds the branch any more: no other try begins.
    pub(crate) fn let_go(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.held = false;
        }
    }

    /// The work of a branch will not be done, and need not be: the others share its rest.
    pub(crate) fn abandon(&mut self, id: NodeId) {
        let Some(parent) = self.nodes.get(&id).and_then(|node| node.parent) else { return };
        self.turn(parent, |node| {
            if let Work::Branches { of, .. } = &mut node.work {
                of.retain(|child| *child != id);
            }
        });
        self.forget(Work::Branches { of: vec![id], open: false });
    }

    /// Whether a node, or one above it, is done by its own word.
    fn is_over(&self, id: NodeId) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            let Some(node) = self.nodes.get(&id) else { return true };
            if node.done {
                return true;
            }
            at = node.parent;
        }
        false
    }

    /// Forgets what a node was split into. Handles to that do nothing from now on.
    fn forget(&mut self, work: Work) {
        let mut open = vec![work];
        while let Some(work) = open.pop() {
            if let Work::Branches { of, .. } = work {
                open.extend(of.iter().filter_map(|id| self.nodes.remove(id)).map(|node| node.work));
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}

fn reached(guard: &Guard, total: Option<f64>) -> bool {
    total.is_some_and(|total| guard.last().is_some_and(|last| last >= total))
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;

//! Which attempt of a state it is, counted as the engine does.
//!
//! A state that a `repair` gate leads to is tried once more, whosever gate it is; one that is come to for the first time
//! is at its first attempt, and one that is come to otherwise keeps its count. What a view cannot know it does not say:
//! where it began later than the playbook did, after a resume (an older checkpoint has older counts), and in playbooks
//! that are called side by side, whose states cannot be told apart.

use std::collections::BTreeMap;

/// Entries of one playbook: its state names, with room.
const STATES: usize = 4096;
/// Depths that are counted; calls do not go deeper.
const DEPTHS: u32 = 64;

/// The counts of the playbooks that run, by depth.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    frames: BTreeMap<u32, Frame>,
}

#[derive(Debug, Default)]
struct Frame {
    /// By state; none when they cannot be known.
    counts: Option<BTreeMap<String, u64>>,
    /// Where a `repair` gate leads, until that state starts.
    repair: Option<String>,
    /// The state that goes on has branches, or this is one: what it calls runs side by side.
    side_by_side: bool,
}

impl Attempts {
    /// A playbook starts, or goes on.
    pub(super) fn playbook(&mut self, depth: u32, resumed: bool) {
        self.frames.retain(|at, _| *at < depth);
        if depth >= DEPTHS {
            return;
        }
        let above = depth.checked_sub(1).and_then(|above| self.frames.get(&above));
        let side_by_side = above.is_some_and(|frame| frame.side_by_side);
        let known = !resumed && !side_by_side && (depth == 0 || above.is_some());
        self.frames.insert(depth, Frame { counts: known.then(BTreeMap::new), repair: None, side_by_side });
    }

    /// A state starts; which attempt this is.
    pub(super) fn start(&mut self, depth: u32, state: &str) -> Option<u64> {
        let above = depth.checked_sub(1).and_then(|above| self.frames.get(&above));
        let side_by_side = above.is_some_and(|frame| frame.side_by_side);
        let frame = self.frames.get_mut(&depth)?;
        frame.side_by_side = side_by_side;
        let repaired = frame.repair.take().is_some_and(|to| to == state);
        let counts = frame.counts.as_mut()?;
        if counts.len() >= STATES && !counts.contains_key(state) {
            frame.counts = None;
            return None;
        }
        let count = counts.entry(state.to_owned()).or_insert(0);
        *count = if repaired { count.saturating_add(1) } else { (*count).max(1) };
        Some(*count)
    }

    /// The state that goes on at this depth has branches.
    pub(super) fn branches(&mut self, depth: u32) {
        if let Some(frame) = self.frames.get_mut(&depth) {
            frame.side_by_side = true;
        }
    }

    /// A state has ended; `repair` is where a `repair` gate leads.
    pub(super) fn done(&mut self, depth: u32, repair: Option<&str>) {
        if let Some(frame) = self.frames.get_mut(&depth) {
            frame.repair = repair.map(str::to_owned);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_is_the_first_however_it_is_come_to() {
        let mut attempts = Attempts::default();
        attempts.playbook(0, false);
        assert_eq!(attempts.start(0, "check"), Some(1));
        attempts.done(0, Some("clean"));
        assert_eq!(attempts.start(0, "clean"), Some(1));
        attempts.done(0, None);
        assert_eq!(attempts.start(0, "check"), Some(1));
        attempts.done(0, Some("clean"));
        assert_eq!(attempts.start(0, "clean"), Some(2));
        attempts.done(0, None);
        assert_eq!(attempts.start(0, "clean"), Some(2));
    }

    #[test]
    fn each_call_counts_anew() {
        let mut attempts = Attempts::default();
        attempts.playbook(0, false);
        attempts.start(0, "deploy");
        for _ in 0..2 {
            attempts.playbook(1, false);
            assert_eq!(attempts.start(1, "push"), Some(1));
            attempts.done(1, Some("push"));
            assert_eq!(attempts.start(1, "push"), Some(2));
        }
    }

    #[test]
    fn what_cannot_be_known_is_not_said() {
        let mut attempts = Attempts::default();
        assert_eq!(attempts.start(0, "in the middle"), None);
        attempts.playbook(0, true);
        assert_eq!(attempts.start(0, "resumed"), None);
        // A call begins anew, but not those side by side, nor what they call.
        attempts.playbook(1, false);
        assert_eq!(attempts.start(1, "called"), Some(1));
        attempts.branches(0);
        attempts.playbook(1, false);
        assert_eq!(attempts.start(1, "branch"), None);
        attempts.playbook(2, false);
        assert_eq!(attempts.start(2, "deeper"), None);
        assert_eq!(attempts.start(0, "next"), None);
        attempts.playbook(1, false);
        assert_eq!(attempts.start(1, "called"), Some(1));
        attempts.playbook(u32::MAX, false);
        assert_eq!(attempts.start(u32::MAX, "deep"), None);
    }
}

//! When to signal a process and when its state is over: a state machine without clock and processes.

use std::time::{Duration, Instant};

/// After a process has exited, how long its pipes are read while others still hold them.
const AFTER_EXIT: Duration = Duration::from_secs(1);

/// How often to look whether a group that was asked to end has done so: it cannot be awaited.
const LOOK: Duration = Duration::from_millis(20);

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send SIGTERM to the group.
    Term,
    /// Send SIGKILL to the group.
    Kill,
    /// Wait for news, at most until then.
    Wait(Option<Instant>),
    /// The state is over: kill what is left, read what was written by now.
    Over,
}

/// Follows one process from its start to the end of its state.
///
/// Undisturbed, the state is over when the process has exited and its pipes are at their end or 1 s has passed. Once it
/// was asked to end, by its time limit or by a cancel, its whole group has the grace to do so, also when the process
/// itself is quicker.
#[derive(Debug)]
pub(crate) struct Ending {
    time_limit: Option<Instant>,
    grace: Duration,
    timed_out: bool,
    cancelled: bool,
    kill_wanted: bool,
    killed: bool,
    kill_at: Option<Instant>,
    exited_at: Option<Instant>,
    drained: bool,
    group_empty: bool,
}

impl Ending {
    /// A process that started at `now`.
    pub(crate) fn new(now: Instant, timeout: Option<Duration>, grace: Duration) -> Self {
        Self {
            // A limit beyond what the clock can express is none.
            time_limit: timeout.and_then(|timeout| now.checked_add(timeout)),
            grace,
            timed_out: false,
            cancelled: false,
            kill_wanted: false,
            killed: false,
            kill_at: None,
            exited_at: None,
            drained: false,
            group_empty: false,
        }
    }

    /// Someone asked it to end.
    pub(crate) fn cancel(&mut self) {
        self.cancelled |= self.exited_at.is_none();
        self.kill_wanted |= self.exited_at.is_some() && !self.was_asked();
    }

    /// Someone asked it to end at once.
    pub(crate) fn kill(&mut self) {
        self.cancel();
        self.kill_wanted = true;
    }

    /// It exited.
    pub(crate) fn exited(&mut self, now: Instant) {
        self.exited_at = Some(now);
    }

    /// Both its pipes are at their end.
    pub(crate) fn drained(&mut self) {
        self.drained = true;
    }

    /// Nothing is left in its group.
    pub(crate) fn group_empty(&mut self) {
        self.group_empty = true;
    }

    /// Whether it was asked to end, and by whom: its time limit, a cancel.
    pub(crate) const fn asked_by(&self) -> (bool, bool) {
        (self.timed_out, self.cancelled)
    }

    /// Whether it has exited and the rest of its group is given time.
    pub(crate) const fn awaits_group(&self) -> bool {
        self.exited_at.is_some() && self.was_asked() && !self.group_empty
    }

    const fn was_asked(&self) -> bool {
        self.kill_at.is_some()
    }

    /// What to do at `now`; to be asked again after doing it.
    pub(crate) fn step(&mut self, now: Instant) -> Step {
        match self.exited_at {
            None => self.step_running(now),
            Some(at) => self.step_exited(at, now),
        }
    }

    fn step_running(&mut self, now: Instant) -> Step {
        let past = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if !self.was_asked() {
            self.timed_out = past(self.time_limit);
            if self.timed_out || self.cancelled {
                self.kill_at = Some(now.checked_add(self.grace).unwrap_or(now));
                return if self.kill_wanted { self.step_running(now) } else { Step::Term };
            }
            return Step::Wait(self.time_limit);
        }
        if self.killed {
            return Step::Wait(None);
        }
        if self.kill_wanted || past(self.kill_at) {
            self.killed = true;
            return Step::Kill;
        }
        Step::Wait(self.kill_at)
    }

    fn step_exited(&self, at: Instant, now: Instant) -> Step {
        let read_until = at + AFTER_EXIT;
        let read = self.drained || read_until <= now;
        if self.kill_wanted || self.killed || (read && (!self.was_asked() || self.group_empty)) {
            return Step::Over;
        }
        match self.kill_at {
            Some(kill_at) if kill_at <= now => Step::Over,
            Some(kill_at) if !self.group_empty => Step::Wait(Some(kill_at.min(now + LOOK))),
            _ => Step::Wait(Some(read_until)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn undisturbed_it_is_over_with_its_pipes_or_after_a_second() {
        let start = Instant::now();
        let mut ending = Ending::new(start, None, GRACE);
        assert_eq!(ending.step(start), Step::Wait(None));
        ending.drained();
        assert_eq!(ending.step(start), Step::Wait(None), "pipes may be closed early");
        ending.exited(at(start, 100));
        assert_eq!(ending.step(at(start, 100)), Step::Over);

        let mut ending = Ending::new(start, None, GRACE);
        ending.exited(at(start, 100));
        assert_eq!(ending.step(at(start, 100)), Step::Wait(Some(at(start, 1100))));
        assert_eq!(ending.step(at(start, 1100)), Step::Over);
        assert_eq!(ending.asked_by(), (false, false));
    }

    #[test]
    fn a_time_limit_asks_waits_and_kills() {
        let start = Instant::now();
        let mut ending = Ending::new(start, Some(Duration::from_millis(200)), GRACE);
        assert_eq!(ending.step(start), Step::Wait(Some(at(start, 200))));
        assert_eq!(ending.step(at(start, 200)), Step::Term);
        assert_eq!(ending.step(at(start, 201)), Step::Wait(Some(at(start, 5200))));
        assert_eq!(ending.step(at(start, 5200)), Step::Kill);
        assert_eq!(ending.step(at(start, 5200)), Step::Wait(None));
        ending.exited(at(start, 5201));
        assert_eq!(ending.step(at(start, 5201)), Step::Over);
        assert_eq!(ending.asked_by(), (true, false));
    }

    #[test]
    fn the_second_stage_does_not_wait() {
        let start = Instant::now();
        let mut ending = Ending::new(start, None, GRACE);
        ending.cancel();
        assert_eq!(ending.step(start), Step::Term);
        ending.kill();
        assert_eq!(ending.step(at(start, 1)), Step::Kill);

        let mut ending = Ending::new(start, None, GRACE);
        ending.kill();
        assert_eq!(ending.step(start), Step::Kill, "no SIGTERM before it");
        assert_eq!(ending.asked_by(), (false, true));
    }

    #[test]
    fn the_grace_is_for_the_whole_group() {
        let start = Instant::now();
        let mut ending = Ending::new(start, None, GRACE);
        ending.cancel();
        assert_eq!(ending.step(start), Step::Term);
        ending.exited(at(start, 10));
        ending.drained();
        assert!(ending.awaits_group());
        assert_eq!(ending.step(at(start, 10)), Step::Wait(Some(at(start, 30))));
        ending.group_empty();
        assert_eq!(ending.step(at(start, 30)), Step::Over);

        let mut stubborn = Ending::new(start, None, GRACE);
        stubborn.cancel();
        stubborn.step(start);
        stubborn.exited(at(start, 10));
        assert_eq!(stubborn.step(at(start, 4990)), Step::Wait(Some(at(start, 5000))));
        assert_eq!(stubborn.step(at(start, 5000)), Step::Over);
    }

    #[test]
    fn a_cancel_after_the_exit_only_ends_the_reading() {
        let start = Instant::now();
        let mut ending = Ending::new(start, None, GRACE);
        ending.exited(start);
        ending.cancel();
        assert_eq!(ending.step(at(start, 1)), Step::Over);
        assert_eq!(ending.asked_by(), (false, false));
    }
}

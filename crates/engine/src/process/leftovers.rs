//! Ending what a process left behind.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    family::{self, Live},
    guard,
    procfs::{Proc, with_descendants},
    scope::{self, Entry},
};

/// How long to go on killing. Only a process in an uninterruptible wait (a dead network disk) survives SIGKILL, and no
/// run should wait for that.
const LIMIT: Duration = Duration::from_secs(10);

/// Between looks; doubled up to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// What may be left of one started process.
#[derive(Debug)]
pub(crate) struct Leftovers {
    /// Its process group.
    pub(crate) group: Pid,
    /// Its mark; `None` when it was detached.
    pub(crate) entry: Option<Entry>,
    /// Its place among the live states.
    pub(crate) live: Live,
}

impl Leftovers {
    /// Whether there is nothing, as is usual. Costs two system calls and one small file; the leader must have been
    /// waited for.
    pub(crate) fn are_none(&self) -> bool {
        family::is_reaper() && family::reap_group(self.group) && family::adopted().is_empty()
    }

    /// Kills until nothing is left. Blocks for some milliseconds, at most for 10 s.
    ///
    /// The group goes first, as its end hands its orphans to us. Then come all that carry our mark and what descends
    /// from them; and, when they can only be ours, adopted children that carry no mark.
    pub(crate) fn kill(&self) {
        let deadline = Instant::now() + LIMIT;
        let [mut pause, longest] = PAUSES;
        let mut first = true;
        let mut in_group = !family::reap_group(self.group);
        loop {
            // Never again once it was empty: its number may then become someone else's.
            if in_group {
                let _ = kill_process_group(self.group, Signal::KILL);
                in_group = !family::reap_group(self.group);
            }
            let adopted = family::adopted();
            // In the first round the group is only dying, which hardly ever needs a look at every process.
            let look = !adopted.is_empty() || !family::is_reaper() || (in_group && !first);
            let killed = look && self.kill_marked(&adopted);
            if !in_group && !killed {
                return;
            }
            if Instant::now() > deadline {
                tracing::warn!(group = self.group.as_raw_pid(), "processes of a finished state cannot be killed");
                return;
            }
            thread::sleep(pause);
            pause = longest.min(pause * 2);
            first = false;
        }
    }

    fn kill_marked(&self, adopted: &[Proc]) -> bool {
        let Some(entry) = &self.entry else { return false };
        let all = Proc::all();
        let mut roots: Vec<Proc> = all.iter().filter(|p| p.has_scope(|list| entry.is_in(list))).copied().collect();
        if self.live.owns_all_orphans() {
            roots.extend(adopted.iter().filter(|p| !roots.contains(p)).copied().collect::<Vec<_>>());
        }
        signal_all(&with_descendants(&all, roots), Signal::KILL)
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        if self.entry.is_some() {
            guard::note_end(self.group);
        }
    }
}

/// Every process that carries a mark of the process `process` or is in one of `groups`, and their descendants.
pub(crate) fn of_process(process: &str, groups: &[Pid]) -> Vec<Proc> {
    let all = Proc::all();
    let grouped = |p: &Proc| groups.iter().any(|group| group.as_raw_pid() == p.group);
    let marked = |p: &Proc| p.has_scope(|list| scope::is_of_process(list, process));
    let roots: Vec<Proc> = all.iter().filter(|p| !p.zombie && (grouped(p) || marked(p))).copied().collect();
    with_descendants(&all, roots)
}

/// Signals all of them; whether any was there, alive and ours to signal.
pub(crate) fn signal_all(procs: &[Proc], signal: Signal) -> bool {
    let me = rustix::process::getpid();
    let others = procs.iter().filter(|proc| !proc.zombie && proc.pid != me);
    others.fold(false, |any, proc| proc.signal(signal) | any)
}

//! What `/proc` says about processes. Where there is no `/proc`, there are none.

use std::{collections::HashSet, fs, io};

use rustix::process::{Pid, RawPid, Signal, kill_process};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

use super::scope;

/// One process, as `/proc/<pid>/stat` tells (proc(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Proc {
    /// Its id.
    pub(crate) pid: Pid,
    /// Its parent; 0 when that is outside our view.
    pub(crate) parent: RawPid,
    /// Its process group.
    pub(crate) group: RawPid,
    /// Ended, but not yet waited for.
    pub(crate) zombie: bool,
    /// When it started, in clock ticks since boot: with the id, unique.
    pub(crate) started: u64,
}

impl Proc {
    /// Looks at one process.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        parse_stat(&fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?)
    }

    /// All processes in our view. A process that comes or goes meanwhile may be missing.
    pub(crate) fn all() -> Vec<Self> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        pids.filter_map(Self::of).collect()
    }

    /// Whether its environment, as it was when its program began, has a list in `TAFFRAIL_SCOPE` that `wanted` knows.
    ///
    /// False for processes of other users, for zombies, and for programs that overwrote that memory.
    pub(crate) fn has_scope(&self, wanted: impl Fn(&[u8]) -> bool) -> bool {
        let Ok(environ) = fs::read(format!("/proc/{}/environ", self.pid.as_raw_pid())) else { return false };
        environ.split(|&b| b == 0).any(|variable| {
            let list = variable.strip_prefix(scope::VARIABLE.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            list.is_some_and(&wanted)
        })
    }

    /// Sends a signal to this process and to no other that got its id since. Whether it was there and ours to signal.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        #[cfg(target_os = "linux")]
        match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(same) => {
                let unchanged = Self::of(self.pid).is_some_and(|now| now.started == self.started);
                return unchanged && pidfd_send_signal(same, signal).is_ok();
            }
            // Kernels before 5.3, and some sandboxes, have no such descriptors.
            Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
            Err(_) => return false,
        }
        kill_process(self.pid, signal).is_ok()
    }
}

/// `roots`, and all that descend from them by parentage as it is now.
pub(crate) fn with_descendants(all: &[Proc], roots: impl IntoIterator<Item = Proc>) -> Vec<Proc> {
    let mut found: Vec<Proc> = roots.into_iter().collect();
    let mut known: HashSet<RawPid> = found.iter().map(|proc| proc.pid.as_raw_pid()).collect();
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|proc| proc.pid.as_raw_pid()) {
        found.extend(all.iter().filter(|proc| proc.parent == parent && known.insert(proc.pid.as_raw_pid())));
        next += 1;
    }
    found
}

/// The children of our main thread, to which the kernel gives the orphans that we adopt.
///
/// Children that other threads started are not among them. Costs one small file, or all of `/proc` where the kernel
/// was built without that file.
pub(crate) fn children_of_main_thread() -> Vec<Pid> {
    let me = rustix::process::getpid().as_raw_pid();
    match fs::read_to_string(format!("/proc/{me}/task/{me}/children")) {
        Ok(list) => list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Proc::all().into_iter().filter(|proc| proc.parent == me).map(|proc| proc.pid).collect()
        }
        Err(_) => Vec::new(),
    }
}

fn parse_stat(stat: &str) -> Option<Proc> {
    // The name may contain anything, parentheses and spaces too; after its last parenthesis come plain fields.
    let (before, after) = stat.rsplit_once(')')?;
    let pid = Pid::from_raw(before.split_once(' ')?.0.parse().ok()?)?;
    let mut fields = after.split_ascii_whitespace();
    let zombie = matches!(fields.next()?, "Z" | "X" | "x");
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    // Fields 6 to 21 lie between.
    let started = fields.nth(16)?.parse().ok()?;
    Some(Proc { pid, parent, group, zombie, started })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proc(pid: RawPid, parent: RawPid) -> Proc {
        Proc { pid: Pid::from_raw(pid).unwrap(), parent, group: pid, zombie: false, started: 7 }
    }

    #[test]
    fn a_name_cannot_forge_fields() {
        let stat = "42 (a) Z 1 1 (b) S 7 40 40 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 123456 0 0";
        let expected = Proc { parent: 7, group: 40, started: 123_456, ..proc(42, 7) };
        assert_eq!(parse_stat(stat), Some(expected));
        assert_eq!(parse_stat("42 (a"), None);
    }

    #[test]
    fn descendants_are_followed_down() {
        let all = [proc(5, 4), proc(3, 2), proc(2, 1), proc(4, 3), proc(9, 1)];
        let mut pids: Vec<RawPid> = with_descendants(&all, [all[2]]).iter().map(|p| p.pid.as_raw_pid()).collect();
        pids.sort_unstable();
        assert_eq!(pids, [2, 3, 4, 5]);
    }

    #[test]
    fn we_are_a_process() {
        let me = Proc::of(rustix::process::getpid()).unwrap();
        assert_eq!((me.group, me.zombie), (rustix::process::getpgrp().as_raw_pid(), false));
        assert!(Proc::all().contains(&me));
    }
}

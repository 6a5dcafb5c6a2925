//! The children of this process: those it started, and orphans it adopted.
//!
//! The kernel gives us the orphans of what we start (we are a *child subreaper*, prctl(2)), so nothing that a state
//! leaves behind gets out of sight. Adopted children are ours to wait for; those we started belong to whoever awaits
//! them, so they are remembered here and never touched.

use std::{
    collections::HashSet,
    io,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use rustix::process::{Pid, WaitOptions, waitpgid, waitpid};

use super::procfs::{Proc, children_of_main_thread};

/// Held shared while a child is started and remembered, exclusively while orphans are told from such children.
static STARTING: RwLock<()> = RwLock::new(());

/// Children that were started and not yet waited for.
static STARTED: Mutex<Option<HashSet<Pid>>> = Mutex::new(None);

/// States whose processes are not yet ended for good.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Whether any process was ever started detached.
static DETACHED: AtomicBool = AtomicBool::new(false);

fn started() -> MutexGuard<'static, Option<HashSet<Pid>>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the reaper of its descendants, once. Whether it is.
pub(crate) fn is_reaper() -> bool {
    static REAPER: OnceLock<bool> = OnceLock::new();
    *REAPER.get_or_init(|| {
        #[cfg(target_os = "linux")]
        let result = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        #[cfg(not(target_os = "linux"))]
        let result: io::Result<()> = Err(io::ErrorKind::Unsupported.into());
        if let Err(error) = &result {
            tracing::warn!(%error, "orphans of started processes go to init; they are looked for by their environment");
        }
        result.is_ok()
    })
}

/// Starts a child and remembers it, so that it is never taken for an orphan.
pub(crate) fn start<T>(spawn: impl FnOnce() -> io::Result<(T, Pid)>) -> io::Result<(T, Pid)> {
    let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    let child = spawn()?;
    started().get_or_insert_default().insert(child.1);
    Ok(child)
}

/// Forgets a child that was waited for: its id is free again.
pub(crate) fn forget(pid: Pid) {
    if let Some(pids) = started().as_mut() {
        pids.remove(&pid);
    }
}

/// Counts a state as live from its start until it is dropped.
#[derive(Debug)]
pub(crate) struct Live(());

impl Live {
    /// One more.
    pub(crate) fn new(detached: bool) -> Self {
        LIVE.fetch_add(1, Ordering::SeqCst);
        DETACHED.fetch_or(detached, Ordering::SeqCst);
        Self(())
    }

    /// Whether every adopted child can only be this one's: no other state is live, none was ever detached, and we are
    /// not the first process of a container, which adopts everybody's.
    pub(crate) fn owns_all_orphans(&self) -> bool {
        is_reaper()
            && LIVE.load(Ordering::SeqCst) == 1
            && !DETACHED.load(Ordering::SeqCst)
            && !rustix::process::getpid().is_init()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Adopted children that left the group they were started in; those that have ended are waited for on the way.
///
/// An adopted child is one that nobody here started and that is in another process group than we are: plain children
/// of the embedding program share our group.
pub(crate) fn adopted() -> Vec<Proc> {
    let children = children_of_main_thread();
    if children.is_empty() {
        return Vec::new();
    }
    let _all_are_known = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    let ours = rustix::process::getpgrp().as_raw_pid();
    let pids = started();
    let unknown = children.into_iter().filter(|pid| !pids.as_ref().is_some_and(|pids| pids.contains(pid)));
    let strangers = unknown.filter_map(Proc::of).filter(|proc| proc.group != ours);
    strangers.filter(|proc| !(proc.zombie && wait_for(proc.pid))).collect()
}

/// Waits for adopted children that have ended, at most once a second over all callers.
pub(crate) fn tidy() {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    static NEXT_MS: AtomicU64 = AtomicU64::new(0);
    let now = u64::try_from(EPOCH.get_or_init(Instant::now).elapsed().as_millis()).unwrap_or(u64::MAX);
    let due = |next: u64| (next <= now).then_some(now.saturating_add(1000));
    if NEXT_MS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, due).is_ok() {
        adopted();
    }
}

/// Waits for adopted children in a group whose leader was waited for already; whether the group is empty then.
pub(crate) fn reap_group(group: Pid) -> bool {
    while let Ok(Some(_)) = waitpgid(group, WaitOptions::NOHANG) {}
    rustix::process::test_kill_process_group(group) == Err(rustix::io::Errno::SRCH)
}

fn wait_for(pid: Pid) -> bool {
    matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)) | Err(rustix::io::Errno::CHILD))
}

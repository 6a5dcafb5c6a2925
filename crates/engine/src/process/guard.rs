//! Nothing survives us, even if we are killed: our side of the guard.
//!
//! The guard is a process of its own, our own binary started again with a hidden argument. It does nothing but hold
//! the other end of a pipe. When that closes, for whatever reason, it ends what we have left (see [`watch`]).

mod watch;

use std::{
    ffi::OsString,
    io::{self, Write},
    path::PathBuf,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use rustix::process::Pid;

pub use watch::guard_main;

use super::{family, scope};

/// How to start the guard: a program that calls [`guard_main`] with the arguments that follow `args`.
///
/// ```no_run
/// use std::process::ExitCode;
/// use taffrail_engine::process::{GuardCommand, guard_main};
///
/// fn main() -> ExitCode {
///     let mut args = std::env::args_os().skip(1);
///     if args.next().is_some_and(|first| first == "process-guard") {
///         return guard_main(args);
///     }
///     if let Ok(program) = std::env::current_exe() {
///         GuardCommand { program, args: vec!["process-guard".into()] }.install();
///     }
///     // …
///     ExitCode::SUCCESS
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardCommand {
    /// The program, usually our own; on Linux `/proc/self/exe` still finds it after an upgrade replaced its file.
    pub program: PathBuf,
    /// Its arguments, usually one word that leads to [`guard_main`]; one more is added.
    pub args: Vec<OsString>,
}

impl GuardCommand {
    /// Makes the first process that is started from now on start the guard, too; `false` when there was a command
    /// already. Without one there is no guard, and what we started outlives a SIGKILL of ours.
    pub fn install(self) -> bool {
        COMMAND.set(self).is_ok()
    }
}

static COMMAND: OnceLock<GuardCommand> = OnceLock::new();

static GUARD: Mutex<Guard> = Mutex::new(Guard { running: None, groups: Vec::new() });

#[derive(Debug)]
struct Guard {
    running: Option<(Child, ChildStdin)>,
    /// What it should know, also when it has to be started again.
    groups: Vec<Pid>,
}

fn guard() -> MutexGuard<'static, Guard> {
    GUARD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the guard if there is a command and none runs, which includes the case that someone killed it.
pub(crate) fn keep_running() {
    let Some(command) = COMMAND.get() else { return };
    let mut guard = guard();
    if let Some((child, _)) = &mut guard.running {
        if matches!(child.try_wait(), Ok(None)) {
            return;
        }
        if let Some(pid) = pid_of(child) {
            family::forget(pid);
        }
    }
    guard.running = match launch(command) {
        Ok(running) => Some(running),
        Err(error) => {
            tracing::warn!(%error, program = %command.program.display(), "no guard: processes will survive a SIGKILL");
            None
        }
    };
    for group in guard.groups.clone() {
        guard.tell('+', group);
    }
}

/// A process group to end with us.
pub(crate) fn note_start(group: Pid) {
    let mut guard = guard();
    guard.groups.push(group);
    guard.tell('+', group);
}

/// The group is gone; its number may come again as someone else's.
pub(crate) fn note_end(group: Pid) {
    let mut guard = guard();
    guard.groups.retain(|other| *other != group);
    guard.tell('-', group);
}

/// Lets the guard go when nothing is left for it to do, before an exit in good order.
///
/// Not needed: without it the guard looks once more and goes by itself, which delays nobody.
pub fn dismiss_guard() {
    let mut guard = guard();
    if guard.groups.is_empty()
        && let Some((_, mut pipe)) = guard.running.take()
    {
        let _ = pipe.write_all(b"bye\n");
    }
}

impl Guard {
    fn tell(&mut self, sign: char, group: Pid) {
        if let Some((_, pipe)) = &mut self.running {
            // Does not block. Should the guard be stuck and the pipe full, it still knows our mark.
            let _ = pipe.write_all(format!("{sign}{}\n", group.as_raw_pid()).as_bytes());
        }
    }
}

fn launch(command: &GuardCommand) -> io::Result<(Child, ChildStdin)> {
    let mut guard = Command::new(&command.program);
    // Neither our terminal nor anyone's pipe must be kept open by it, nor a folder be kept from being unmounted.
    guard.args(&command.args).arg(scope::this_process()).current_dir("/");
    guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let (mut child, _) = family::start(|| {
        let child = guard.spawn()?;
        let pid = pid_of(&child).ok_or(io::ErrorKind::NotFound)?;
        Ok((child, pid))
    })?;
    let pipe = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
    rustix::io::ioctl_fionbio(&pipe, true)?;
    Ok((child, pipe))
}

fn pid_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id().try_into().ok()?)
}

//! Starting a process, and holding it.

use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt, path::Path, process::Stdio, thread};

use rustix::process::{Pid, Signal, kill_process_group};
use taffrail_mcp_core::Exit;
use tokio::{
    net::unix::pipe::{self, Receiver},
    process::Child,
};

use super::{
    Command, Program, Scope, SpawnError, exit, family, guard,
    leftovers::Leftovers,
    scope::{self, VARIABLE},
};

/// A started process, the leader of its group.
///
/// Dropped before [`Process::end`], it and all that it left are killed in the background, unless it is detached.
#[derive(Debug)]
pub(crate) struct Process {
    /// `Some` until the process was waited for.
    child: Option<Child>,
    /// `Some` until everything was ended.
    leftovers: Option<Leftovers>,
    group: Pid,
}

/// A process, its standard output and its standard error.
pub(crate) type Started = (Process, Receiver, Receiver);

/// Starts `command` as one of `scope`.
pub(crate) fn start(command: &Command, scope: &Scope) -> Result<Started, SpawnError> {
    family::is_reaper();
    guard::keep_running();
    let entry = (!command.detach).then(|| scope.entry());
    let mut started = system_command(&command.program);
    started.current_dir(&command.cwd).envs(command.env.iter().map(|(name, value)| (name, value)));
    match (&entry, scope::inherited()) {
        (Some(entry), _) => started.env(VARIABLE, entry.list()),
        (None, Some(list)) => started.env(VARIABLE, list),
        (None, None) => started.env_remove(VARIABLE),
    };
    let live = family::Live::new(command.detach);
    let spawned = (|| {
        let ((out_to, out), (err_to, err)) = (pipe::pipe()?, pipe::pipe()?);
        started.stdin(Stdio::null()).stdout(out_to.into_blocking_fd()?).stderr(err_to.into_blocking_fd()?);
        started.process_group(0);
        let (child, group) = family::start(|| {
            let child = started.spawn()?;
            let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
            Ok((child, id.ok_or(io::ErrorKind::NotFound)?))
        })?;
        Ok((child, group, out, err))
    })();
    let (child, group, out, err) = spawned.map_err(|source| explain(command, source))?;
    if !command.detach {
        guard::note_start(group);
    }
    let leftovers = Some(Leftovers { group, entry, live });
    // `started` is dropped here and with it our copies of the writing ends, without which no pipe would ever end.
    Ok((Process { child: Some(child), leftovers, group }, out, err))
}

impl Process {
    /// Waits for the process itself. Dropping the future loses nothing.
    pub(crate) async fn exited(&mut self) -> Exit {
        let Some(child) = &mut self.child else { return std::future::pending().await };
        let status = child.wait().await;
        self.was_waited_for();
        match status {
            Ok(status) => exit::exit(status),
            Err(error) => {
                // Only if someone else in this program waited for our child.
                tracing::error!(%error, "the exit status of a process was lost");
                Exit::Code(-1)
            }
        }
    }

    /// Signals the group, while anything is in it.
    pub(crate) fn signal(&self, signal: Signal) {
        // Gone is as good as signalled.
        let _ = kill_process_group(self.group, signal);
        if signal == Signal::TERM {
            // Stopped processes cannot react to it before they go on.
            let _ = kill_process_group(self.group, Signal::CONT);
        }
    }

    /// Whether nothing is left in the group; only once the process itself has exited.
    pub(crate) fn group_is_empty(&self) -> bool {
        self.child.is_none() && family::reap_group(self.group)
    }

    /// Kills what is left; of a detached process only its group, and only if it `was_asked` to end. Only once the
    /// process itself has exited.
    pub(crate) async fn end(mut self, was_asked: bool) {
        let Some(leftovers) = &self.leftovers else { return };
        if leftovers.entry.is_none() && was_asked && !self.group_is_empty() {
            self.signal(Signal::KILL);
        }
        if leftovers.entry.is_none() || leftovers.are_none() {
            self.leftovers = None;
            return;
        }
        // Taken only inside, so that a drop while waiting changes nothing: the other thread goes on.
        if let Some(leftovers) = self.leftovers.take()
            && let Err(error) = tokio::task::spawn_blocking(move || leftovers.kill()).await
        {
            tracing::error!(%error, "ending what a process left behind failed");
        }
    }

    fn was_waited_for(&mut self) {
        self.child = None;
        family::forget(self.group);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(leftovers) = self.leftovers.take() else { return };
        let child = self.child.take();
        if leftovers.entry.is_none() {
            if let (Some(child), Ok(runtime)) = (child, tokio::runtime::Handle::try_current()) {
                runtime.spawn(wait_and_forget(child, self.group));
            }
            return;
        }
        if child.is_some() || !family::reap_group(self.group) {
            self.signal(Signal::KILL);
        }
        let group = self.group;
        let rest = move || {
            if let Some(mut child) = child {
                // The pid stays ours until it is waited for, here and by nobody else.
                while matches!(child.try_wait(), Ok(None)) {
                    thread::sleep(std::time::Duration::from_millis(1));
                }
                family::forget(group);
            }
            leftovers.kill();
        };
        // A thread, as the runtime may be shutting down.
        if let Err(error) = thread::Builder::new().name("taffrail-end".to_owned()).spawn(rest) {
            tracing::error!(%error, "what an aborted process left behind may go on");
        }
    }
}

async fn wait_and_forget(mut child: Child, pid: Pid) {
    let _ = child.wait().await;
    family::forget(pid);
}

fn system_command(program: &Program) -> tokio::process::Command {
    match program {
        Program::Shell(text) => {
            let mut shell = tokio::process::Command::new("/bin/sh");
            shell.arg("-c").arg(text);
            shell
        }
        Program::Exec(words) => {
            let (program, args) = words.split_first().map_or((OsStr::new(""), &[][..]), |(p, args)| (p, args));
            let mut exec = tokio::process::Command::new(program);
            exec.args(args);
            exec
        }
    }
}

fn explain(command: &Command, source: io::Error) -> SpawnError {
    let name = match &command.program {
        Program::Shell(_) => OsStr::new("/bin/sh"),
        Program::Exec(words) => words.first().map_or(OsStr::new(""), |word| word),
    };
    let program = name.to_string_lossy().into_owned();
    // The system reports a bad folder with the same errors as a bad program.
    let folder = std::fs::metadata(&command.cwd).and_then(|is| match is.is_dir() {
        true => rustix::fs::access(&command.cwd, rustix::fs::Access::EXEC_OK).map_err(Into::into),
        false => Err(io::ErrorKind::NotADirectory.into()),
    });
    if let Err(source) = folder {
        return SpawnError::BadCwd { cwd: command.cwd.clone(), source };
    }
    let file = command.cwd.join(Path::new(name));
    let hint = match source.kind() {
        io::ErrorKind::NotFound if name.as_bytes().contains(&b'/') && file.exists() => {
            "the interpreter named in its first line is missing: install it or correct that line"
        }
        io::ErrorKind::NotFound => return SpawnError::NotFound { program },
        io::ErrorKind::PermissionDenied if file.is_dir() => "it is a folder: name a file",
        io::ErrorKind::PermissionDenied => "make it executable: chmod +x",
        _ if source.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            "it is not a program for this machine; a script needs a first line such as #!/bin/sh"
        }
        io::ErrorKind::ArgumentListTooLong => {
            let hint = "its arguments and environment are too long: pass them in a file";
            return SpawnError::Other { program, hint, source };
        }
        io::ErrorKind::InvalidInput => {
            let hint = "arguments and environment must not contain NUL bytes";
            return SpawnError::Other { program, hint, source };
        }
        _ => {
            let hint = "raise the limits on processes and open files, or run fewer at a time";
            return SpawnError::Other { program, hint, source };
        }
    };
    SpawnError::NotExecutable { program, hint, source }
}

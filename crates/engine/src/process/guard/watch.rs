//! The guard's own life: wait for the end of its master, then end what the master left.

use std::{
    ffi::OsString,
    io::{self, BufRead},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, RawPid, Signal};
use tokio::signal::unix::{SignalKind, signal};

use super::super::leftovers::{of_process, signal_all};

/// Between SIGTERM and SIGKILL. Shorter than a cancel's grace, as nobody is there any more to whom it would matter.
const GRACE: Duration = Duration::from_secs(1);

/// Between looks at all processes.
const LOOK: Duration = Duration::from_millis(50);

/// Nothing must be found for so many looks: a process that was being started when the master died has no mark yet.
const QUIET_LOOKS: u32 = 4;

/// A process that survives SIGKILL for so long will not end.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the guard; `args` are those after the ones of [`super::GuardCommand`]. Blocks until the master is gone and
/// nothing of it is left.
///
/// It moves into a session of its own, so that signals for the master's terminal or group do not reach it, and does not
/// heed SIGTERM, SIGINT and SIGHUP: whoever ends the master that way ends the guard too, a moment later.
pub fn guard_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some(master) = args.into_iter().last().and_then(|mark| mark.into_string().ok()).filter(|mark| !mark.is_empty())
    else {
        return ExitCode::from(2);
    };
    ignore_requests();
    // Refused to a group leader, which is then apart from the master's group already.
    let _ = rustix::process::setsid();
    let mut groups = Groups::default();
    for line in io::stdin().lock().lines() {
        match line.as_deref() {
            Ok("bye") => return ExitCode::SUCCESS,
            Ok(line) => groups.hear(line),
            Err(_) => break,
        }
    }
    end_all(&master, &groups.0);
    ExitCode::SUCCESS
}

/// Keeps SIGTERM and its kind from ending this process: once somebody has waited for a signal, it does nothing else.
fn ignore_requests() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
    {
        let _inside = runtime.enter();
        let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        kinds.into_iter().for_each(|kind| drop(signal(kind)));
    }
    runtime.shutdown_background();
}

#[derive(Debug, Default)]
struct Groups(Vec<Pid>);

impl Groups {
    fn hear(&mut self, line: &str) {
        let number = |text: &str| Pid::from_raw(text.parse::<RawPid>().ok().filter(|pid| *pid > 1)?);
        if let Some(group) = line.strip_prefix('+').and_then(number) {
            self.0.push(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(number) {
            self.0.retain(|other| *other != group);
        }
    }
}

fn end_all(master: &str, groups: &[Pid]) {
    let start = Instant::now();
    let mut quiet = 0;
    let mut asked = Vec::new();
    while quiet < QUIET_LOOKS && start.elapsed() < LIMIT {
        let left = of_process(master, groups);
        let alive = if start.elapsed() < GRACE {
            // Each is asked once: a second request makes some programs skip their clean-up.
            let new: Vec<_> = left.iter().filter(|proc| !asked.contains(*proc)).copied().collect();
            signal_all(&new, Signal::TERM);
            signal_all(&new, Signal::CONT);
            asked.extend(new);
            left.iter().any(|proc| !proc.zombie)
        } else {
            signal_all(&left, Signal::KILL)
        };
        quiet = if alive { 0 } else { quiet + 1 };
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hears_of_groups() {
        let mut groups = Groups::default();
        for line in ["+10", "+20", "-10", "+0", "+1", "+-5", "nonsense", "+30", "-99"] {
            groups.hear(line);
        }
        assert_eq!(groups.0.iter().map(|pid| pid.as_raw_pid()).collect::<Vec<_>>(), [20, 30]);
    }
}

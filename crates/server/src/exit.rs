//! Exit statuses. The one home of their numbers.

use std::process::ExitCode;

use taffrail_mcp_core::{Exit, RunFold, RunStatus};

/// The command did what it was asked.
pub(crate) const DONE: u8 = 0;
/// The run halted or was interrupted, or the command failed.
pub(crate) const HALT: u8 = 1;
/// The command line is wrong; clap uses the same.
pub(crate) const USAGE: u8 = 2;
/// The run waits for somebody.
pub(crate) const SUSPENDED: u8 = 3;
/// There is no such run or playbook.
pub(crate) const NOT_FOUND: u8 = 4;
/// The run was cancelled: what a shell reports for Ctrl-C.
pub(crate) const CANCELLED: u8 = 130;

/// The status of a command that ran a playbook.
pub(crate) fn of_run(status: RunStatus) -> u8 {
    match status {
        RunStatus::Done | RunStatus::Running => DONE,
        RunStatus::Halt | RunStatus::Interrupted => HALT,
        RunStatus::Suspended => SUSPENDED,
        RunStatus::Cancelled => CANCELLED,
    }
}

/// The status of `exec`: its command's own, 128 + n for a signal.
pub(crate) fn of_exec(fold: &RunFold) -> u8 {
    match (&fold.status, &fold.exit) {
        (RunStatus::Cancelled, _) => CANCELLED,
        (_, Some(Exit::Code(code))) => u8::try_from(*code).unwrap_or(HALT),
        (_, Some(Exit::Signal(name))) => 128 + signal_number(name),
        (status, _) => of_run(*status),
    }
}

/// Signal numbers of Linux on all but its rarest architectures (signal(7)).
fn signal_number(name: &str) -> u8 {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let short = name.strip_prefix("SIG").unwrap_or(name);
    (1u8..).zip(NAMES).find(|(_, known)| *known == short).map_or(0, |(number, _)| number)
}

/// A status as the process reports it.
pub(crate) fn code(status: u8) -> ExitCode {
    ExitCode::from(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_their_numbers() {
        for (name, number) in
            [("SIGHUP", 1), ("SIGKILL", 9), ("SIGSEGV", 11), ("SIGTERM", 15), ("SIGSYS", 31), ("?", 0)]
        {
            assert_eq!(signal_number(name), number, "{name}");
        }
    }
}

//! Exit statuses as the wire tells them.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

use rustix::process::Signal;
use taffrail_mcp_core::Exit;

/// Names of signal(7). Numbers differ between architectures.
const NAMES: [(Signal, &str); 28] = [
    (Signal::HUP, "SIGHUP"),
    (Signal::INT, "SIGINT"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::ILL, "SIGILL"),
    (Signal::TRAP, "SIGTRAP"),
    (Signal::ABORT, "SIGABRT"),
    (Signal::BUS, "SIGBUS"),
    (Signal::FPE, "SIGFPE"),
    (Signal::KILL, "SIGKILL"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::USR2, "SIGUSR2"),
    (Signal::PIPE, "SIGPIPE"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::TERM, "SIGTERM"),
    (Signal::CHILD, "SIGCHLD"),
    (Signal::CONT, "SIGCONT"),
    (Signal::STOP, "SIGSTOP"),
    (Signal::TSTP, "SIGTSTP"),
    (Signal::TTIN, "SIGTTIN"),
    (Signal::TTOU, "SIGTTOU"),
    (Signal::URG, "SIGURG"),
    (Signal::XCPU, "SIGXCPU"),
    (Signal::XFSZ, "SIGXFSZ"),
    (Signal::VTALARM, "SIGVTALRM"),
    (Signal::PROF, "SIGPROF"),
    (Signal::IO, "SIGIO"),
    (Signal::SYS, "SIGSYS"),
];

/// A code, or the name of the signal; signals without a name are `SIG` and their number.
pub(crate) fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(number)) => {
            let name = NAMES.iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| *name);
            Exit::Signal(name.map_or_else(|| format!("SIG{number}"), str::to_owned))
        }
        // A wait without WUNTRACED tells only of ends, so one of the two is there.
        (None, None) => Exit::Code(-1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_signals() {
        assert_eq!(exit(ExitStatus::from_raw(3 << 8)), Exit::Code(3));
        assert_eq!(exit(ExitStatus::from_raw(9)), Exit::Signal("SIGKILL".into()));
        assert_eq!(exit(ExitStatus::from_raw(11 | 0x80)), Exit::Signal("SIGSEGV".into()));
        assert_eq!(exit(ExitStatus::from_raw(40)), Exit::Signal("SIG40".into()));
    }
}

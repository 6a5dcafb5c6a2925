//! Processes of a server, as Linux tells of them.

use std::{fs, process::Command};

/// Children of a process.
pub(super) fn children(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("a system with /proc").filter_map(Result::ok);
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(_, of)| of == parent)).collect()
}

/// Whether a process is there and not only waits for its parent to hear of its end.
pub(super) fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != 'Z')
}

/// State and parent.
fn stat(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Sends a signal to processes; those that are gone need none.
pub(super) fn send(signal: &str, pids: &[u32]) {
    let pids = pids.iter().map(u32::to_string);
    let _ = Command::new("kill").arg(format!("-{signal}")).args(pids).stderr(std::process::Stdio::null()).status();
}

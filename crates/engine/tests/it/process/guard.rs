//! Nothing survives a SIGKILL of the program that started it.
//!
//! The test binary plays all parts: it starts itself as the program, which starts itself as the guard.

use std::{
    io::{BufRead, BufReader},
    process::{Command as Program, Stdio},
};

use rustix::process::Signal;
use taffrail_engine::process::{Cancel, Command, GuardCommand, guard_main};

use super::harness::{Kept, finish, gone, is_alive, shell, signal, start};

/// Tells a helper below that it is one and not a test.
const PART: &str = "TAFFRAIL_TEST_PART";

#[tokio::test]
async fn nothing_survives_a_sigkill() {
    let mut program = Program::new(std::env::current_exe().unwrap());
    program.args(["--exact", "process::guard::plays_the_program", "--nocapture"]).env(PART, "program");
    let mut program = program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let mut pids = std::collections::HashMap::new();
    while pids.len() < 6 {
        let line = lines.next().unwrap().unwrap();
        if let Some((name, pid)) = line.strip_prefix("pid ").and_then(|rest| rest.split_once(' ')) {
            pids.insert(name.to_owned(), pid.to_owned());
        }
    }
    assert!(pids.values().all(|pid| is_alive(pid)), "{pids:?}");
    // As an operator would who ends everything of that name; one of ours must stay deaf.
    signal(&pids["guard"], Signal::TERM);
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(lines.next().is_none(), "somebody keeps the standard output of a dead program open");
    let detached = pids.remove("detached").unwrap();
    for pid in pids.values() {
        gone(pid).await;
    }
    assert!(is_alive(&detached));
    signal(&detached, Signal::KILL);
}

/// Starts a stubborn group, one that left it, one without environment, and one that is detached; then waits.
#[tokio::test]
async fn plays_the_program() {
    if std::env::var(PART).as_deref() != Ok("program") {
        return;
    }
    let args = ["--exact", "process::guard::plays_the_guard", "--nocapture"].map(Into::into).to_vec();
    assert!(GuardCommand { program: std::env::current_exe().unwrap(), args }.install());
    let kept = Kept::new();
    let text = "trap '' TERM; echo leader $$; setsid sleep 600 & echo left $!; env -i sleep 600 & echo bare $!; \
                (trap '' TERM; while :; do sleep 1; done) & echo stubborn $!; wait; while :; do sleep 1; done";
    let commands = [shell(text), Command { detach: true, ..shell("sleep 600 & echo detached $!; wait") }];
    for command in commands {
        let kept = kept.clone();
        tokio::spawn(async move { start(&command, &kept, &Cancel::new()).await });
    }
    for name in ["leader", "left", "bare", "stubborn", "detached"] {
        println!("\npid {name} {}", kept.line(&format!("{name} ")).await);
    }
    // The guard is our child and in a session of its own.
    let guard = guard_of_this_process().await;
    println!("\npid guard {guard}");
    std::future::pending::<()>().await;
}

#[test]
fn plays_the_guard() {
    if std::env::var(PART).as_deref() == Ok("program") {
        guard_main(std::env::args_os());
    }
}

/// An orphan without session, group and environment of its state can be known only by having no other owner, so this
/// needs a program in which nothing else runs.
#[test]
fn a_nameless_orphan_is_found_when_it_can_only_be_ours() {
    let mut program = Program::new(std::env::current_exe().unwrap());
    program.args(["--exact", "process::guard::plays_alone", "--nocapture"]).env(PART, "alone");
    let output = String::from_utf8(program.stderr(Stdio::null()).output().unwrap().stdout).unwrap();
    let pid = output.lines().find_map(|line| line.strip_prefix("pid orphan ")).unwrap();
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn plays_alone() {
    if std::env::var(PART).as_deref() == Ok("alone") {
        let text = "(setsid env -i sh -c 'sleep 600 >/dev/null 2>&1 & echo orphan $!'); sleep 0.1";
        let (_, kept) = finish(&shell(text)).await;
        println!("\npid orphan {}", kept.line("orphan ").await);
    }
}

async fn guard_of_this_process() -> String {
    let me = std::process::id().to_string();
    loop {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let pid = entry.file_name().to_string_lossy().into_owned();
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let stat = read("stat");
            let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
            let ours = fields.get(1) == Some(&me.as_str()) && fields.get(3) == Some(&pid.as_str());
            if ours && read("cmdline").contains("plays_the_guard") {
                return pid;
            }
        }
        tokio::task::yield_now().await;
    }
}

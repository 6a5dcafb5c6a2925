//! How processes end, and that nothing is left of them.

use std::{
    os::unix::fs::PermissionsExt,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use taffrail_engine::process::{Cancel, Command, Outcome, Program, SpawnError};
use taffrail_mcp_core::Exit;

use super::harness::{Kept, case, command, finish, folder, gone, is_alive, shell, signal, start};

const SHORT: Duration = Duration::from_millis(200);

fn spawn(command: Command, cancel: &Cancel) -> (Arc<Kept>, tokio::task::JoinHandle<Result<Outcome, SpawnError>>) {
    let (kept, cancel) = (Kept::new(), cancel.clone());
    let sink = kept.clone();
    (kept, tokio::spawn(async move { start(&command, &sink, &cancel).await }))
}

#[tokio::test]
async fn exits_are_told() {
    for (text, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("kill -KILL $$", Exit::Signal("SIGKILL".into())),
        ("kill -SEGV $$", Exit::Signal("SIGSEGV".into())),
        ("definitely-not-a-program", Exit::Code(127)),
    ] {
        let (outcome, _) = finish(&shell(text)).await;
        assert_eq!((outcome.exit, outcome.cancelled), (exit, false), "{text}");
    }
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    async fn check(command: &Command, expected: &str) {
        let error = start(command, &Kept::new(), &Cancel::new()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let exec = |words: &[&str]| command(Program::Exec(words.iter().map(Into::into).collect()));
    check(&exec(&["definitely-not-a-program"]), "was not found").await;
    check(&exec(&["./definitely-not-a-program"]), "was not found").await;
    check(&exec(&[]), "was not found").await;
    check(&exec(&["/tmp"]), "it is a folder").await;
    check(&exec(&["true", &"x".repeat(3_000_000)]), "too long").await;
    check(&exec(&["true", "a\0b"]), "NUL").await;

    let (_keep, path) = folder();
    std::fs::write(path.join("plain"), "text").unwrap();
    std::fs::write(path.join("lost"), "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(path.join("lost"), PermissionsExt::from_mode(0o755)).unwrap();
    check(&Command { cwd: path.clone(), ..exec(&["./plain"]) }, "chmod +x").await;
    check(&Command { cwd: path.clone(), ..exec(&["./lost"]) }, "interpreter").await;
    check(&Command { cwd: path.join("missing"), ..exec(&["true"]) }, "working directory").await;
    check(&Command { cwd: path.join("plain"), ..exec(&["true"]) }, "working directory").await;
}

#[tokio::test]
async fn a_grandchild_does_not_keep_the_state_open() {
    let started = Instant::now();
    let (outcome, kept) = finish(&case("grandchild.sh", &[])).await;
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(outcome.exit, Exit::Code(0));
    kept.line("parent: done").await;
    assert!(!is_alive(&kept.line("grandchild: started ").await));
    assert_eq!(kept.texts("stdout").len(), 2);
}

#[tokio::test]
async fn a_stubborn_group_is_killed_after_the_grace() {
    let cancel = Cancel::new().with_grace(SHORT);
    let (kept, run) = spawn(case("stubborn.sh", &[]), &cancel);
    let pids = kept.line("stubborn: ready ").await;
    let asked = Instant::now();
    cancel.cancel();
    let outcome = run.await.unwrap().unwrap();
    assert!(asked.elapsed() >= SHORT);
    assert_eq!((outcome.exit, outcome.cancelled), (Exit::Signal("SIGKILL".into()), true));
    assert!(pids.split(' ').count() == 2 && !pids.split(' ').any(is_alive));
}

#[tokio::test]
async fn the_second_stage_kills_at_once() {
    let cancel = Cancel::new().with_grace(Duration::from_secs(3600));
    let (kept, run) = spawn(case("stubborn.sh", &[]), &cancel);
    let pids = kept.line("stubborn: ready ").await;
    cancel.cancel();
    assert!(tokio::time::timeout(SHORT, cancel.killed()).await.is_err());
    cancel.kill();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!((outcome.exit, outcome.cancelled), (Exit::Signal("SIGKILL".into()), true));
    assert!(!pids.split(' ').any(is_alive));
}

#[tokio::test]
async fn a_time_limit_lets_the_process_say_goodbye() {
    let text = "trap 'echo goodbye; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let command = Command { timeout: Some(SHORT), ..shell(text) };
    let (outcome, kept) = finish(&command).await;
    assert_eq!((outcome.exit, outcome.cancelled), (Exit::Timeout(true), false));
    assert_eq!(kept.texts("stdout"), ["ready", "goodbye"]);
}

#[tokio::test]
async fn the_whole_group_has_the_grace() {
    let cancel = Cancel::new();
    let text = "(trap 'sleep 0.3; echo tidied; exit' TERM; echo ready; while :; do sleep 0.05; done) & wait";
    let (kept, run) = spawn(shell(text), &cancel);
    kept.line("ready").await;
    cancel.cancel();
    assert!(run.await.unwrap().unwrap().cancelled);
    kept.line("tidied").await;
}

#[tokio::test]
async fn a_request_before_the_start_starts_nothing() {
    let cancel = Cancel::new();
    let child = cancel.child();
    cancel.cancel();
    let kept = Kept::new();
    assert!(start(&shell("echo no"), &kept, &child).await.unwrap().cancelled);
    assert!(kept.events().is_empty());
}

#[tokio::test]
async fn who_left_the_group_is_found() {
    // One in a session of its own, below it one that dropped its environment; and a whole daemon.
    let text = "setsid sh -c 'echo a $$; env -i sleep 600 & echo b $!; wait' & \
                (setsid sh -c 'sleep 600 >/dev/null 2>&1 & echo c $!' &) ; \
                while [ ! -e go ]; do sleep 0.01; done";
    let (_keep, path) = folder();
    let (kept, run) = spawn(Command { cwd: path.clone(), ..shell(text) }, &Cancel::new());
    let mut pids = Vec::new();
    for name in ["a ", "b ", "c "] {
        pids.push(kept.line(name).await);
    }
    assert!(pids.iter().all(|pid| is_alive(pid)));
    std::fs::write(path.join("go"), "").unwrap();
    assert_eq!(run.await.unwrap().unwrap().exit, Exit::Code(0));
    assert!(!pids.iter().any(|pid| is_alive(pid)));
}

#[tokio::test]
async fn one_state_does_not_end_another() {
    let cancel = Cancel::new().with_grace(SHORT);
    let (kept, long) = spawn(shell("setsid sleep 600 & echo ready $!; wait"), &cancel);
    let pid = kept.line("ready ").await;
    let (_, other) = finish(&shell("setsid sleep 600 >/dev/null 2>&1 & echo other $!")).await;
    assert!(!is_alive(&other.line("other ").await));
    assert!(is_alive(&pid));
    cancel.cancel();
    long.await.unwrap().unwrap();
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn a_dropped_run_leaves_nothing() {
    let (kept, run) = spawn(case("stubborn.sh", &[]), &Cancel::new());
    let pids = kept.line("stubborn: ready ").await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    for pid in pids.split(' ') {
        gone(pid).await;
    }
}

#[tokio::test]
async fn a_detached_child_goes_on() {
    let text = "(echo ready; while :; do sleep 0.05; echo chatter; done) & echo pid $!; echo [$TAFFRAIL_SCOPE]";
    let (outcome, kept) = finish(&Command { detach: true, ..shell(text) }).await;
    assert_eq!(outcome.exit, Exit::Code(0));
    let pid = kept.line("pid ").await;
    kept.line("[]").await;
    let count = kept.texts("stdout").len();
    // Long enough for a write to a closed pipe, which would end it.
    assert!(tokio::time::timeout(SHORT, std::future::pending::<()>()).await.is_err());
    assert!(is_alive(&pid));
    assert_eq!(kept.texts("stdout").len(), count, "its state is over");
    signal(&pid, Signal::KILL);
}

#[tokio::test]
async fn orphans_that_end_are_waited_for() {
    let (_, kept) = finish(&shell("(setsid sh -c 'echo pid $$' &); sleep 0.2")).await;
    let pid = kept.line("pid ").await;
    assert!(!std::path::Path::new("/proc").join(pid).exists(), "a zombie is left");
}

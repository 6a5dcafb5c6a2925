//! `taffrail exec`: one command as a run.

use std::sync::Arc;

use taffrail_engine::for_command;
use taffrail_mcp_core::{Exit, RunStatus};

use super::harness::World;

async fn exec(argv: &[&str]) -> (taffrail_engine::Ended, World) {
    let world = World::new(&[]);
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    let playbook = Arc::new(for_command("My job: \"x\"", &argv).unwrap());
    let ended = world.engine().start(&playbook, world.job()).await;
    (ended, world)
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_arrive_as_they_are() {
    let words = [
        "{{ inputs.x }}",
        "{% if %}",
        "{#",
        "a}} {{ \"b\" }}",
        "'\"\\$HOME",
        "tab\tand\u{7f}\u{85}\u{feff}\u{2028}",
        "é🚢",
        " ",
        "- : #",
        "{{ 'üñ\u{1}\u{85}' }}",
        "null",
        "12",
    ];
    let (ended, world) = exec(&[&["printf", "%s\n"], &words[..]].concat()).await;
    assert_eq!((ended.status, ended.exit), (RunStatus::Done, Some(Exit::Code(0))));
    assert_eq!(world.log.texts(), words);
    let start = &world.log.of_type("run-start")[0];
    assert_eq!((start["machine"].as_str(), start["entry"].as_str()), (Some("My job: \"x\""), Some("exec")));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exit_is_the_commands() {
    let (ended, _) = exec(&["sh", "-c", "exit 42"]).await;
    assert_eq!((ended.status, ended.exit), (RunStatus::Halt, Some(Exit::Code(42))));
    assert_eq!(ended.error.unwrap().as_str(), "gate-failed");
    let (ended, _) = exec(&["sh", "-c", "kill -TERM $$"]).await;
    assert_eq!(ended.exit, Some(Exit::Signal("SIGTERM".to_owned())));
    let (ended, _) = exec(&["no-such-program-here"]).await;
    assert_eq!((ended.exit, ended.error.unwrap().as_str()), (Some(Exit::Code(127)), "spawn-failed"));
    let (ended, _) = exec(&["/"]).await;
    assert_eq!(ended.exit, Some(Exit::Code(126)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_can_be_resumed() {
    let (_, world) = exec(&["sh", "-c", "echo {{ x }}"]).await;
    let ended = world.engine().resume(world.resume_data(), None, world.job()).await.unwrap();
    assert_eq!(ended.status, RunStatus::Done);
    assert_eq!(world.log.texts(), ["{{ x }}", "{{ x }}"]);
    assert_eq!(world.log.of_type("run-start")[1]["machine"], "My job: \"x\"");
}

#[test]
fn nothing_to_run_is_an_error() {
    assert!(for_command("x", &[]).is_err());
}

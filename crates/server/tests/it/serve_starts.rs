//! How a server begins: the token, the store, what it says, and what it refuses.

use std::{fs, os::unix::fs::PermissionsExt as _, time::Duration};

use rustix::process::Signal;
use serde_json::json;
use taffrail_mcp_core::{RunStatus, ThreadId};
use taffrail_transport::client::{StartRun, StartWork};

use crate::{
    asked::Server,
    deployed::Deployed,
    world::{PATIENCE, World, until},
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn runs_are_started_and_read_over_http_and_seen_by_every_other_command() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let run = server.run("small");
    let page = server.get(&format!("/api/v1/runs/{run}?wait_ms=30000&after=0"));
    assert_eq!(page.status, 200);
    until("the run ends", Duration::from_secs(30), || {
        let snapshot = server.get(&format!("/api/v1/runs/{run}")).json();
        (snapshot["status"] == "done").then_some(())
    });
    let records = server.get(&format!("/api/v1/runs/{run}/events?limit=2000")).json();
    let here = world.expect(0, &["logs", &run, "--json"]).records();
    assert_eq!(records["records"].as_array().unwrap(), &here);
    assert_eq!(server.get("/readyz").json()["status"], "ok");
}

#[test]
fn the_token_is_private_and_the_same_for_all_who_start_at_once() {
    let world = World::new();
    let args = ["serve", "--json", "--listen", "127.0.0.1:0"];
    let started: Vec<_> = (0..4).map(|_| world.start(&args)).collect();
    let servers: Vec<_> = started.into_iter().map(Server::of).collect();
    let file = world.data().join("operator-token");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = servers[0].token();
    assert_eq!(token.len(), 64);
    let run = servers[0].run("small");
    for server in &servers {
        assert_eq!(server.said["token_file"], file.display().to_string());
        let answer =
            server.ask("GET", &format!("/api/v1/runs/{run}"), &[&format!("authorization: bearer {token}")], "");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(server.ask("GET", "/api/v1/runs", &[], "").status, 401);
    }
    // One that is started later has it, too.
    assert_eq!(Server::start(&world, &[]).token(), token);
}

#[test]
fn a_token_of_ones_own_comes_from_a_file_or_the_environment() {
    let world = World::new();
    let file = world.write("token", &format!("{TOKEN}\n"));
    let server = Server::start(&world, &["--token-file", file.to_str().unwrap()]);
    assert_eq!(server.token(), TOKEN);
    assert_eq!(server.get("/api/v1/runs").status, 200);
    let mut command = world.command(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    command.env("TAFFRAIL_TOKEN", TOKEN);
    let server = Server::of(crate::proc::Proc::start(command));
    assert!(server.said.get("token_file").is_none());
    let bearer = format!("authorization: Bearer {TOKEN}");
    assert_eq!(server.ask("GET", "/api/v1/runs", &[&bearer], "").status, 200);
    assert!(!world.data().join("operator-token").exists());
    let short = world.write("short", "short");
    let refused = world.expect(1, &["serve", "--listen", "127.0.0.1:0", "--token-file", short.to_str().unwrap()]);
    assert!(refused.stderr.contains("operator token has 16 to 512 characters"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("thread"), "{}", refused.stderr);
}

#[test]
fn without_a_token_only_this_machine_is_served() {
    let world = World::new();
    let refused = world.expect(2, &["serve", "--no-auth", "--listen", "0.0.0.0:0"]);
    assert!(refused.stderr.contains("can be reached from other machines"), "{}", refused.stderr);
    let server = Server::start(&world, &["--no-auth"]);
    assert_eq!(server.ask("GET", "/api/v1/runs", &[], "").status, 200);
    assert!(!server.said["sign_in"].as_str().unwrap().contains("code"));
}

#[test]
fn a_port_in_use_says_so() {
    let world = World::new();
    let server = Server::start(&world, &[]);
    let addr = server.addr.to_string();
    let refused = world.expect(1, &["serve", "--listen", &addr]);
    assert!(refused.stderr.contains(&format!("{addr} is in use")), "{}", refused.stderr);
    for (args, said) in [
        (&["serve", "--listen", "nowhere"][..], "invalid socket address"),
        (&["serve", "--store", "mysql://x"], "expected sqlite:PATH, postgres://"),
        (&["serve", "--public-url", "example.com"], "expected http:// or https://"),
        (&["serve", "--public-url", "https://example.com/x"], "a path cannot be part of it"),
        (&["serve", "--rate", "many"], "--rate"),
    ] {
        let refused = world.expect(2, args);
        assert!(refused.stderr.contains(said), "{args:?}: {}", refused.stderr);
    }
}

#[test]
fn people_are_told_where_to_go_and_the_link_works_once() {
    let world = World::new();
    let server = Server::start(&world, &["--public-url", "https://log.example"]);
    let sign_in = server.said["sign_in"].as_str().unwrap().to_owned();
    let path = sign_in.strip_prefix("https://log.example").unwrap();
    let code = path.split_once("code=").unwrap().1.to_owned();
    let first = server.ask("GET", path, &[], "");
    assert_eq!((first.status, first.header("location")), (303, "/"));
    assert!(first.header("set-cookie").ends_with("; HttpOnly; SameSite=Strict; Secure"), "{first:?}");
    let cookie = first.header("set-cookie").split(';').next().unwrap().to_owned();
    assert_eq!(server.ask("GET", path, &[], "").status, 401);
    assert_eq!(server.ask("GET", "/api/v1/runs", &[&format!("cookie: {cookie}")], "").status, 200);
    let token = server.token();
    // What is told to nobody: not in the access log either.
    server.proc.signal(Signal::TERM);
    let done = server.proc.end();
    assert_eq!(done.code, Some(0));
    let log = done.stderr;
    assert!(log.contains("route=\"/login\" status=303") && log.contains("principal=\"cookie\""), "{log}");
    for secret in [token.as_str(), &code, cookie.split_once('=').unwrap().1] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn each_store_is_served() {
    let world = World::new();
    let memory = Server::start(&world, &["--store", "memory:"]);
    let run = memory.run("small");
    assert_eq!(memory.get(&format!("/api/v1/runs/{run}")).status, 200);
    assert!(!world.data().join("taffrail.db").exists());
    let file = world.file("other.db");
    let store = format!("sqlite:{}", file.display());
    let sqlite = Server::start(&world, &["--store", &store]);
    let run = sqlite.run("small");
    assert!(file.exists());
    // Another process on the same store and data directory.
    let other = Server::start(&world, &["--store", &store]);
    assert_eq!(other.get(&format!("/api/v1/runs/{run}")).status, 200);
    assert_eq!((&memory.said["store"], &sqlite.said["store"]), (&json!("memory"), &json!("sqlite")));
}

#[test]
fn two_servers_share_one_store_and_each_sees_the_others_runs_live() {
    let world = World::new();
    let (one, other) = (Server::start(&world, &[]), Server::start(&world, &[]));
    let file = world.file("release");
    let body = json!({"playbook": "hold", "inputs": {"file": file}});
    let run = one.post("/api/v1/threads/t/runs", &body).json()["run"].as_str().unwrap().to_owned();
    for (line, next) in [("holding", Some(&file)), ("released", None)] {
        let path = format!("/api/v1/runs/{run}/events?grep=%5E{line}&wait_ms=30000");
        assert_eq!(other.get(&path).json()["matched"], 1, "{line}");
        if let Some(file) = next {
            fs::write(file, "").unwrap();
        }
    }
    until("the run ends", Duration::from_secs(30), || {
        (other.get(&format!("/api/v1/runs/{run}")).json()["status"] == "done").then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_on_one_file_know_who_is_alive_whatever_their_data_directories() {
    let world = World::new();
    let store = format!("sqlite:{}", world.file("shared.db").display());
    let mut one = Deployed::start(&world, "one", &["--store", &store]);
    let other = Deployed::start(&world, "other", &["--store", &store]);
    let (thread, file) = (ThreadId::new("t").unwrap(), world.file("never"));
    let inputs = [("file".to_owned(), json!(file))].into_iter().collect();
    let work = StartWork::Playbook { name: "hold".into(), inputs };
    let run = one.client().start(&thread, &StartRun { work, idempotency_key: None, run: None }).await.unwrap().run;
    // Who asks for a run makes sure that it has a host.
    assert_eq!(other.client().snapshot(&run).await.unwrap().status, RunStatus::Running);
    one.kill();
    let ended = async {
        while other.client().snapshot(&run).await.unwrap().status != RunStatus::Interrupted {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
}

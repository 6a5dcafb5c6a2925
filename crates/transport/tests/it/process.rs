//! The server as a process: the standard streams, and the parent.

use std::{
    env,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::Value;
use taffrail_transport::{McpConfig, serve_stdio};

use crate::fake::Fake;

const SERVE: &str = "TAFFRAIL_TEST_SERVE_STDIO";

/// Not a test of its own: what the others start as a process.
#[test]
fn server() {
    if env::var_os(SERVE).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let config = McpConfig { shared_fs: true, ..McpConfig::default() };
        let served = tokio::spawn(async move { serve_stdio(Arc::new(Fake::default()), &config).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        println!("a stray line");
        served.await.unwrap().unwrap();
    });
    runtime.shutdown_background();
}

/// Starts a shell that starts the server and stays its parent.
fn start() -> Child {
    Command::new("sh")
        .args(["-c", r#""$0" --exact process::server --nocapture; true"#])
        .arg(env::current_exe().unwrap())
        .env(SERVE, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

#[test]
fn only_the_protocol_is_on_standard_output() {
    let mut child = start();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    stdin.write_all(PING).unwrap();
    // The test harness says something before the server begins.
    let answer = lines.find(|line| line.starts_with('{')).unwrap();
    assert_eq!(answer, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    std::thread::sleep(Duration::from_millis(200));
    drop(stdin);
    let rest: Vec<_> = lines.collect();
    assert!(rest.iter().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{rest:?}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_server_ends_within_two_seconds_of_its_parent() {
    let mut shell = start();
    let mut stdin = shell.stdin.take().unwrap();
    let mut stdout = BufReader::new(shell.stdout.take().unwrap());
    stdin.write_all(PING).unwrap();
    let mut line = String::new();
    while !line.starts_with('{') {
        line.clear();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0);
    }
    shell.kill().unwrap();
    shell.wait().unwrap();
    let start = Instant::now();
    // Its input stays open; that its output ends says that it is gone.
    stdout.read_to_end(&mut Vec::new()).unwrap();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    drop(stdin);
}

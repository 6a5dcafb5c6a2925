//! A server started on a free port, and plain requests to it.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
};

use serde_json::Value;

use crate::{
    proc::Proc,
    world::{PATIENCE, World},
};

/// A server of a world's data directory.
pub(crate) struct Server {
    pub(crate) proc: Proc,
    pub(crate) addr: SocketAddr,
    pub(crate) said: Value,
}

impl Server {
    /// Starts one.
    #[track_caller]
    pub(crate) fn start(world: &World, args: &[&str]) -> Self {
        let mut all = vec!["serve", "--json", "--listen", "127.0.0.1:0"];
        all.extend(args);
        Self::of(world.start(&all))
    }

    /// One that was started with `--json`.
    #[track_caller]
    pub(crate) fn of(mut proc: Proc) -> Self {
        let Some(line) = proc.line() else { panic!("it does not begin: {:?}", proc.end()) };
        let said: Value = serde_json::from_str(&line).unwrap();
        let addr = said["listen"].as_str().unwrap().parse().unwrap();
        Self { proc, addr, said }
    }

    /// The token of its file.
    pub(crate) fn token(&self) -> String {
        fs::read_to_string(Path::new(self.said["token_file"].as_str().unwrap())).unwrap().trim().to_owned()
    }

    /// A request with headers of one's own.
    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.addr).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}",
            self.addr
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// A request with the token.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[&format!("authorization: Bearer {}", self.token())], "")
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let token = format!("authorization: Bearer {}", self.token());
        self.ask("POST", path, &[&token, "content-type: application/json"], &body.to_string())
    }

    /// Starts a playbook, and gives its run.
    #[track_caller]
    pub(crate) fn run(&self, playbook: &str) -> String {
        let answer = self.post("/api/v1/threads/t/runs", &serde_json::json!({ "playbook": playbook }));
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.json()["run"].as_str().unwrap().to_owned()
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The value of a header.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        found.unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

//! A client that writes and reads raw lines, with `taffrail mcp` at the other end.

use std::{
    io::Write as _,
    process::{ChildStdin, Command},
};

use serde_json::{Value, json};

use crate::{proc::Proc, world::World};

pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
pub(crate) const MODERN: &str = "2026-07-28";

/// Every revision.
pub(crate) fn revisions() -> impl Iterator<Item = &'static str> {
    LEGACY.into_iter().chain([MODERN])
}

pub(crate) struct Client {
    pub(crate) proc: Proc,
    stdin: Option<ChildStdin>,
    next_id: u64,
    /// Sent with each request, when modern.
    meta: Option<Value>,
}

impl Client {
    /// A connection on which nothing was said yet.
    pub(crate) fn raw(world: &World, flags: &[&str]) -> Self {
        Self::over(world.command(&[&["mcp"], flags].concat()))
    }

    pub(crate) fn over(command: Command) -> Self {
        let mut proc = Proc::start(command);
        let stdin = Some(proc.stdin());
        Self { proc, stdin, next_id: 1, meta: None }
    }

    /// A session of `revision`, begun the way that revision begins.
    #[track_caller]
    pub(crate) fn of(world: &World, revision: &str) -> Self {
        Self::able(world, revision, &json!({}))
    }

    /// The same, of a client with capabilities.
    #[track_caller]
    pub(crate) fn able(world: &World, revision: &str, capabilities: &Value) -> Self {
        let mut client = Self::raw(world, &[]);
        client.begin_able(revision, capabilities);
        client
    }

    pub(crate) fn legacy(world: &World) -> Self {
        Self::of(world, LEGACY[3])
    }

    pub(crate) fn modern(world: &World) -> Self {
        Self::of(world, MODERN)
    }

    /// Begins a session; the result of its first request.
    #[track_caller]
    pub(crate) fn begin(&mut self, revision: &str) -> Value {
        self.begin_able(revision, &json!({}))
    }

    #[track_caller]
    fn begin_able(&mut self, revision: &str, capabilities: &Value) -> Value {
        if revision >= MODERN {
            self.meta = Some(json!({
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            }));
            return self.request("server/discover", json!({}))["result"].clone();
        }
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": info});
        let answer = self.request("initialize", params)["result"].clone();
        self.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        answer
    }

    /// Asks for events of `level` and above, in the way of the revision.
    #[track_caller]
    pub(crate) fn ask_for_events(&mut self, level: &str) {
        match &mut self.meta {
            Some(meta) => meta["io.modelcontextprotocol/logLevel"] = json!(level),
            None => drop(self.request("logging/setLevel", json!({"level": level}))),
        }
    }

    /// Asks for progress of every request, with `token`.
    pub(crate) fn ask_for_progress(&mut self, token: &str) {
        self.meta.get_or_insert_with(|| json!({}))["progressToken"] = json!(token);
    }

    pub(crate) fn write(&mut self, line: &str) {
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Ends the input.
    pub(crate) fn hang_up(&mut self) {
        drop(self.stdin.take());
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        self.proc.line().expect("the server went away")
    }

    #[track_caller]
    pub(crate) fn read(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Reads up to the answer to `id`: what came before it, and the answer.
    #[track_caller]
    pub(crate) fn read_until(&mut self, id: u64) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.read();
            if message["id"] == id {
                return (before, message);
            }
            before.push(message);
        }
    }

    /// Sends a request and returns the next message, which must be its answer.
    #[track_caller]
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and returns its result, which is not an error and has one text that stands alone.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert!(result.is_object() && result["isError"] != true, "{tool} {arguments}: {answer}");
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
        assert!(result["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()), "{result}");
        result.clone()
    }

    /// The structured part of a result.
    #[track_caller]
    pub(crate) fn structured(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert!(result["structuredContent"].is_object(), "{result}");
        result["structuredContent"].clone()
    }

    /// The text of a result.
    #[track_caller]
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        self.call(tool, arguments)["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Calls a tool that must refuse, and returns what it says.
    #[track_caller]
    pub(crate) fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer["result"]["isError"], true, "{tool} {arguments}: {answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Nothing was sent that has not been read.
    #[track_caller]
    pub(crate) fn assert_silent(&mut self) {
        let id = self.send("no/such/method", json!({}));
        let (before, _) = self.read_until(id);
        assert_eq!(before, Vec::<Value>::new());
    }
}

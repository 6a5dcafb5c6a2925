//! A client that writes lines and reads lines, and a server in this process at the other end.

use std::{
    io::{BufRead as _, BufReader, PipeWriter, Write as _, pipe},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use taffrail_progress::Config;
use taffrail_transport::{McpConfig, ServeError, serve, stdio::StdioTransport};

use crate::fake::Fake;

/// No answer takes longer on a machine that works.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Client {
    pub(crate) fake: Fake,
    to: Option<PipeWriter>,
    from: mpsc::Receiver<String>,
    server: Option<JoinHandle<Result<(), ServeError>>>,
    next_id: u64,
    /// Sent with each request, when modern.
    meta: Option<Value>,
}

/// Starts a server over `transport` in its own thread and runtime.
pub(crate) fn serve_in_thread(fake: &Fake, transport: StdioTransport) -> JoinHandle<Result<(), ServeError>> {
    let backend = Arc::new(fake.clone());
    // Beats that a test can wait for.
    let progress = Config::default().heartbeat(Some(Duration::from_secs(1)));
    let config = McpConfig { shared_fs: true, progress, ..McpConfig::default() };
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let served = runtime.block_on(serve(backend, &config, transport));
        runtime.shutdown_background();
        served
    })
}

impl Client {
    /// A connection on which nothing was said yet.
    pub(crate) fn raw() -> Self {
        let fake = Fake::default();
        let (server_in, to) = pipe().unwrap();
        let (from, server_out) = pipe().unwrap();
        let server = serve_in_thread(&fake, StdioTransport::new(server_in, server_out).unwrap());
        let (lines, received) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(from).lines() {
                if lines.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { fake, to: Some(to), from: received, server: Some(server), next_id: 1, meta: None }
    }

    /// A session of `revision`, begun the way that revision begins.
    pub(crate) fn of(revision: &str) -> Self {
        Self::able(revision, &json!({}))
    }

    /// The same, of a client with capabilities.
    pub(crate) fn able(revision: &str, capabilities: &Value) -> Self {
        let mut client = Self::raw();
        if revision >= "2026-07-28" {
            client.meta = Some(json!({
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            }));
            client.request("server/discover", json!({}));
        } else {
            client.request(
                "initialize",
                json!({
                    "protocolVersion": revision, "capabilities": capabilities,
                    "clientInfo": {"name": "t", "version": "1"},
                }),
            );
            client.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        client
    }

    pub(crate) fn legacy() -> Self {
        Self::of("2025-11-25")
    }

    pub(crate) fn modern() -> Self {
        Self::of("2026-07-28")
    }

    /// Asks for events of `level` and above, in the way of the revision.
    pub(crate) fn ask_for_events(&mut self, level: &str) {
        match &mut self.meta {
            Some(meta) => meta["io.modelcontextprotocol/logLevel"] = json!(level),
            None => drop(self.request("logging/setLevel", json!({"level": level}))),
        }
    }

    /// Declares other capabilities from now on, when modern.
    pub(crate) fn able_to(&mut self, capabilities: &Value) {
        if let Some(meta) = &mut self.meta {
            meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
        }
    }

    /// Asks for progress of every request, with `token`.
    pub(crate) fn ask_for_progress(&mut self, token: &str) {
        self.meta.get_or_insert_with(|| json!({}))["progressToken"] = json!(token);
    }

    pub(crate) fn write(&mut self, line: &str) {
        let to = self.to.as_mut().expect("not hung up");
        to.write_all(format!("{line}\n").as_bytes()).unwrap();
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

    pub(crate) fn line(&mut self) -> String {
        self.from.recv_timeout(PATIENCE).expect("an answer")
    }

    pub(crate) fn read(&mut self) -> Value {
        serde_json::from_str(&self.line()).expect("JSON")
    }

    /// Sends a request and returns the next message, which must be its answer.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.read();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool and returns its result; any other outcome fails the test.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// The one text block of a call's result.
    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
        result["content"][0]["text"].as_str().expect("text").to_owned()
    }

    /// Reads up to the answer to `id`: what came before it, and the answer.
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

    /// Nothing was sent that has not been read.
    pub(crate) fn assert_silent(&mut self) {
        let id = self.send("ping/unknown", json!({}));
        let (before, _) = self.read_until(id);
        assert_eq!(before, Vec::<Value>::new());
    }

    /// Ends the input and returns how long the server took to return, and what it still said.
    pub(crate) fn hang_up(mut self) -> (Duration, Vec<String>) {
        let start = Instant::now();
        drop(self.to.take());
        let served = self.server.take().expect("a server").join();
        let took = start.elapsed();
        served.expect("no panic").expect("a clean end");
        (took, self.from.iter().collect())
    }
}

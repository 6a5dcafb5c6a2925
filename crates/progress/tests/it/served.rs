//! Behind rmcp: what a client reads, line by line.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams, GetPromptResponse,
        GetPromptResult, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use taffrail_progress::{Branch, Config, CountingProgress, ProgressSource as _, rmcp::WithProgress};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    sync::{Mutex, Notify},
    task::spawn_blocking,
};

#[derive(Clone, Default)]
pub(crate) struct Server {
    /// The emitter of the last call, kept beyond its response.
    kept: Arc<Mutex<Option<CountingProgress>>>,
    going: Arc<Notify>,
    cancelled: Arc<AtomicBool>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_prompts().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*request.name {
            "count" => {
                let p = cx.counting_progress(Some(100));
                (0..100).for_each(|step| p.emit_with(format_args!("step {step}")).unwrap());
                *self.kept.lock().await = Some(p);
            }
            "flood" => {
                // As fast as it can, on eight threads, sent without any interval.
                let mut branches = cx.percent_progress().split(&[1.0; 64]).unwrap();
                let shares: Vec<Vec<Branch>> = (0..8).map(|_| branches.split_off(branches.len() - 8)).collect();
                let threads = shares.into_iter().map(|share| spawn_blocking(move || share.iter().for_each(flood)));
                for thread in threads.collect::<Vec<_>>() {
                    thread.await.unwrap();
                }
            }
            "until-cancelled" => {
                let p = cx.counting_progress(None);
                p.emit().unwrap();
                self.going.notify_one();
                cx.ct.cancelled().await;
                p.emit_with("too late").unwrap();
                self.cancelled.store(true, Ordering::SeqCst);
                self.going.notify_one();
            }
            name => return Err(ErrorData::invalid_params(name.to_owned(), None)),
        }
        Ok(CallToolResult::success(vec![]).into())
    }

    async fn get_prompt(
        &self,
        _: GetPromptRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        cx.percent_progress().emit_with(0.25, "a quarter").unwrap();
        Ok(GetPromptResult::new(vec![]).into())
    }
}

fn flood(branch: &Branch) {
    let p = branch.long_progress(Some(2000));
    for step in 1..=2000 {
        p.emit_with(step, step).unwrap();
    }
}

pub(crate) struct Client {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Client {
    /// `room`: bytes that the server can write before the client reads.
    pub(crate) fn open(server: impl ServerHandler, room: usize) -> Self {
        let (ours, theirs) = tokio::io::duplex(room);
        tokio::spawn(async move { server.serve(tokio::io::split(theirs)).await.unwrap().waiting().await });
        let (output, input) = tokio::io::split(ours);
        Self { input, output: BufReader::new(output).lines() }
    }

    /// A client of an old revision, with a session.
    pub(crate) async fn connect(server: impl ServerHandler, room: usize) -> Self {
        let mut client = Self::open(server, room);
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info});
        client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
        assert_eq!(client.receive().await["id"], 0);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.output.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn call(&mut self, id: u64, tool: &str, token: &Value) {
        let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": token}});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
    }

    /// The progress of request `id`, up to its response, which must be a result.
    async fn until_answered(&mut self, id: u64, token: &Value) -> Vec<Value> {
        let mut seen: Vec<Value> = Vec::new();
        loop {
            let mut message = self.receive().await;
            if message["id"] == id {
                assert!(message["result"].is_object(), "{message}");
                increasing(&seen, token.clone());
                return seen;
            }
            assert_eq!(message["method"], "notifications/progress", "{message}");
            seen.push(message["params"].take());
        }
    }

    /// Asks for something else, and checks that nothing comes before its answer.
    async fn assert_silent(&mut self) {
        self.send(&json!({"jsonrpc": "2.0", "id": 99, "method": "ping"})).await;
        let message = self.receive().await;
        assert_eq!(message["id"], 99, "{message}");
    }
}

/// All under this token, and strictly increasing, pair by pair.
#[track_caller]
pub(crate) fn increasing(seen: &[Value], token: impl Into<Value>) {
    let token = token.into();
    assert!(seen.iter().all(|params| params["progressToken"] == token));
    for pair in seen.windows(2) {
        assert!(pair[0]["progress"].as_f64().unwrap() < pair[1]["progress"].as_f64().unwrap(), "{pair:?}");
    }
}

#[tokio::test]
async fn the_last_progress_comes_before_the_response_and_none_after() {
    let server = Server::default();
    let mut client = Client::connect(WithProgress::new(server.clone()), 1 << 20).await;
    for (id, token) in [(1, json!("text")), (2, json!(7))] {
        client.call(id, "count", &token).await;
        let seen = client.until_answered(id, &token).await;
        let last = seen.last().unwrap();
        assert_eq!((&last["progress"], &last["total"]), (&json!(100.0), &json!(100.0)));
        assert_eq!(last["message"], "step 99");
        assert!(seen.len() <= 2, "the first may go at once");
        let kept = server.kept.lock().await.take().unwrap();
        kept.emit_with("after the response").unwrap();
    }
    client.assert_silent().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_branches_on_eight_threads_without_an_interval_to_a_client_that_stalls() {
    let config = Config::default().min_interval(Duration::ZERO).flush_limit(Duration::from_secs(60));
    // Room for some ten notifications.
    let mut client = Client::connect(WithProgress::new(Server::default()).config(config), 1024).await;
    client.call(1, "flood", &json!("f")).await;
    // Meanwhile it stalls: branches report, and nothing is read.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let seen = client.until_answered(1, &json!("f")).await;
    assert_eq!(seen.last().unwrap()["progress"], 1.0);
    let before = seen.len() - 1;
    assert!(seen[..before].iter().all(|one| one["progress"].as_f64().unwrap() < 1.0));
    client.assert_silent().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_gets_its_response_all_the_same() {
    // Room for less than the two notifications and the response.
    let mut client = Client::connect(WithProgress::new(Server::default()), 200).await;
    client.call(1, "count", &json!("c")).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let seen = client.until_answered(1, &json!("c")).await;
    assert!(seen.len() <= 2);
    client.assert_silent().await;
}

#[tokio::test]
async fn a_cancelled_request_sends_no_more() {
    let server = Server::default();
    let mut client = Client::connect(WithProgress::new(server.clone()), 1 << 20).await;
    client.call(1, "until-cancelled", &json!("c")).await;
    server.going.notified().await;
    assert_eq!(client.receive().await["params"]["progress"], 1.0);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    server.going.notified().await;
    assert!(server.cancelled.load(Ordering::SeqCst), "the handler runs to its end");
    client.assert_silent().await;
}

#[tokio::test]
async fn prompts_report_too_and_a_server_that_is_wrapped_twice_reports_once() {
    let mut client = Client::connect(WithProgress::new(WithProgress::new(Server::default())), 1 << 20).await;
    let params = json!({"name": "p", "_meta": {"progressToken": "p"}});
    client.send(&json!({"jsonrpc": "2.0", "id": 5, "method": "prompts/get", "params": params})).await;
    let seen = client.until_answered(5, &json!("p")).await;
    assert_eq!(seen, [json!({"progressToken": "p", "progress": 0.25, "total": 1.0, "message": "a quarter"})]);
    client.call(6, "count", &json!("c")).await;
    assert!(client.until_answered(6, &json!("c")).await.len() <= 2);
}

#[tokio::test]
async fn without_a_token_or_without_the_wrapper_there_is_only_the_response() {
    let mut client = Client::connect(WithProgress::new(Server::default()), 1 << 20).await;
    let params = json!({"name": "count", "arguments": {}});
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
    assert!(client.until_answered(1, &Value::Null).await.is_empty());

    let mut client = Client::connect(Server::default(), 1 << 20).await;
    client.call(1, "count", &json!("c")).await;
    assert!(client.until_answered(1, &json!("c")).await.is_empty());
}

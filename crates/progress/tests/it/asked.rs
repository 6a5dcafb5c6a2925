//! Asking by replay, as a client of 2026-07-28 sees it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
        GetPromptResponse, GetPromptResult, JsonObject, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use taffrail_progress::{
    MrtrContext, ProgressSource as _, Question, Reply, SpentStates, StateKey, ToolContext,
    rmcp::{Mrtr, WithProgress},
};

use crate::served::Client;

#[derive(Clone)]
struct Server {
    mrtr: Mrtr,
    /// How often a handler began.
    begun: Arc<AtomicUsize>,
    /// What the tool asks first; another deployment may ask something else.
    first: &'static str,
}

impl Server {
    fn new(mrtr: Mrtr) -> Self {
        Self { mrtr, begun: Arc::default(), first: "Which colour?" }
    }
}

fn question(message: &str) -> Question {
    let schema =
        json!({"type": "object", "properties": {"x": {"type": "string", "enum": ["red", "blue"]}}, "required": ["x"]});
    Question { message: message.to_owned(), schema: schema.as_object().cloned().unwrap() }
}

async fn ask(cx: &impl MrtrContext, message: &str) -> String {
    match cx.elicit(question(message)).await {
        Reply::Accepted(answer) => answer["x"].as_str().unwrap().to_owned(),
        Reply::Declined => "declined".to_owned(),
        Reply::Dismissed => "dismissed".to_owned(),
    }
}

impl Server {
    async fn paint(&self, cx: ToolContext, arguments: Option<JsonObject>) -> Result<CallToolResult, ErrorData> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let p = cx.counting_progress(Some(3));
        p.emit_with("begun").unwrap();
        let first = ask(&cx, self.first).await;
        p.emit_with("one answer").unwrap();
        let second = ask(&cx, "And the other?").await;
        p.emit_with("two answers").unwrap();
        let what = arguments.unwrap_or_default().remove("what").unwrap_or_default();
        let text = format!("{}: {what} in {first} and {second}", cx.handler_name());
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.mrtr.tool(request, cx, |cx, arguments| self.paint(cx, arguments)).await
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let handler = async |cx| Ok(GetPromptResult::new(vec![]).with_description(ask(&cx, "Which colour?").await));
        self.mrtr.prompt(request, cx, |cx, _| handler(cx)).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let handler = async |cx| {
            ask(&cx, "Which colour?").await;
            Ok(ReadResourceResult::new(vec![]))
        };
        self.mrtr.resource(request, cx, handler).await
    }
}

fn key() -> StateKey {
    StateKey::new(&[3; 32]).unwrap()
}

struct Asking {
    client: Client,
    id: u64,
    declared: Value,
}

impl Asking {
    async fn connect(server: Server) -> Self {
        let client = Client::open(WithProgress::new(server), 1 << 20);
        Self { client, id: 0, declared: json!({"elicitation": {"form": {}}}) }
    }

    /// Sends a request with what a retry carries, and returns its result or error, and the messages of its progress.
    async fn ask(&mut self, method: &str, params: Value, retry: Option<(&Value, Value)>) -> (Value, Vec<Value>) {
        self.id += 1;
        let mut params = params;
        params["_meta"] = json!({
            "progressToken": self.id,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": self.declared,
        });
        if let Some((state, answers)) = retry {
            params["requestState"] = state.clone();
            params["inputResponses"] = answers;
        }
        self.client.send(&json!({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})).await;
        let mut seen = Vec::new();
        loop {
            let mut message = self.client.receive().await;
            if message["id"] == self.id {
                let result = message["result"].take();
                return (if result.is_null() { message["error"].take() } else { result }, seen);
            }
            assert_eq!(message["params"]["progressToken"], self.id);
            seen.push(message["params"]["message"].take());
        }
    }

    async fn tool(&mut self, what: &str, retry: Option<(&Value, Value)>) -> Value {
        self.ask("tools/call", json!({"name": "paint", "arguments": {"what": what}}), retry).await.0
    }
}

fn accept(number: usize, x: &str) -> Value {
    json!({format!("q{number}"): {"action": "accept", "content": {"x": x}}})
}

#[track_caller]
fn asks(result: &Value, number: usize, message: &str) -> Value {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let requests = result["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1);
    let request = &requests[&format!("q{number}")];
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], message);
    assert_eq!(request["params"]["requestedSchema"]["properties"]["x"]["enum"], json!(["red", "blue"]));
    result["requestState"].clone()
}

#[track_caller]
fn refused(result: &Value, what: &str) {
    assert_eq!(result["code"], -32602, "{result}");
    assert!(result["message"].as_str().unwrap().contains(what), "{result}");
}

const NOT_GOOD: &str = "requestState is not good for this request";

#[tokio::test]
async fn each_question_gets_its_own_answer_and_progress_starts_afresh() {
    let server = Server::new(Mrtr::new(key()));
    let mut client = Asking::connect(server.clone()).await;
    let params = json!({"name": "paint", "arguments": {"what": "it"}});
    let (result, seen) = client.ask("tools/call", params.clone(), None).await;
    assert_eq!(seen, ["begun"]);
    let state = asks(&result, 1, "Which colour?");
    let (result, _) = client.ask("tools/call", params.clone(), Some((&state, accept(1, "red")))).await;
    let state = asks(&result, 2, "And the other?");
    let (result, seen) = client.ask("tools/call", params, Some((&state, accept(2, "blue")))).await;
    assert_eq!(result["content"][0]["text"], "paint: \"it\" in red and blue");
    assert_eq!(seen.last().unwrap(), "two answers");
    assert_eq!(server.begun.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn any_server_with_the_key_goes_on() {
    let mut one = Asking::connect(Server::new(Mrtr::new(key()))).await;
    let mut other = Asking::connect(Server::new(Mrtr::new(key()))).await;
    let mut stranger = Asking::connect(Server::new(Mrtr::new(StateKey::random().unwrap()))).await;
    let state = asks(&one.tool("it", None).await, 1, "Which colour?");
    asks(&other.tool("it", Some((&state, accept(1, "red")))).await, 2, "And the other?");
    refused(&stranger.tool("it", Some((&state, accept(1, "red")))).await, NOT_GOOD);
}

#[tokio::test]
async fn a_state_is_good_for_its_request_only() {
    let mut client = Asking::connect(Server::new(Mrtr::new(key()))).await;
    let state = asks(&client.tool("it", None).await, 1, "Which colour?");
    refused(&client.tool("something else", Some((&state, accept(1, "red")))).await, NOT_GOOD);
    refused(&client.tool("it", Some((&json!("forged"), accept(1, "red")))).await, NOT_GOOD);
    let (result, _) = client.ask("prompts/get", json!({"name": "paint"}), Some((&state, accept(1, "red")))).await;
    refused(&result, NOT_GOOD);
    // And it still is good for that one.
    asks(&client.tool("it", Some((&state, accept(1, "red")))).await, 2, "And the other?");
}

#[tokio::test]
async fn a_state_is_good_for_its_caller_only() {
    let of = |name: &'static str| Server::new(Mrtr::new(key()).principal(move |_| name.to_owned()));
    let mut alice = Asking::connect(of("alice")).await;
    let mut bob = Asking::connect(of("bob")).await;
    let state = asks(&alice.tool("it", None).await, 1, "Which colour?");
    refused(&bob.tool("it", Some((&state, accept(1, "red")))).await, NOT_GOOD);
}

#[tokio::test]
async fn a_state_expires() {
    let mut client = Asking::connect(Server::new(Mrtr::new(key()).ttl(Duration::ZERO))).await;
    let state = asks(&client.tool("it", None).await, 1, "Which colour?");
    refused(&client.tool("it", Some((&state, accept(1, "red")))).await, NOT_GOOD);
}

#[tokio::test]
async fn where_asked_for_a_state_is_taken_once() {
    let mut client = Asking::connect(Server::new(Mrtr::new(key()).single_use(Arc::new(SpentStates::default())))).await;
    let state = asks(&client.tool("it", None).await, 1, "Which colour?");
    let mistake = json!({"q1": {"action": "perhaps"}});
    refused(&client.tool("it", Some((&state, mistake))).await, "inputResponses.q1");
    asks(&client.tool("it", Some((&state, accept(1, "red")))).await, 2, "And the other?");
    refused(&client.tool("it", Some((&state, accept(1, "blue")))).await, NOT_GOOD);
}

#[tokio::test]
async fn a_changed_question_is_an_error_and_not_a_wrong_answer() {
    let mut client = Asking::connect(Server::new(Mrtr::new(key()))).await;
    let state = asks(&client.tool("it", None).await, 1, "Which colour?");
    let changed = Server { first: "Which colour not?", ..Server::new(Mrtr::new(key())) };
    let mut client = Asking::connect(changed).await;
    refused(&client.tool("it", Some((&state, accept(1, "red")))).await, "question 1 of `paint` is not the one");
}

#[tokio::test]
async fn answers_that_do_not_fit_are_refused_and_missing_ones_asked_for_again() {
    let mut client = Asking::connect(Server::new(Mrtr::new(key()))).await;
    let state = asks(&client.tool("it", None).await, 1, "Which colour?");
    refused(&client.tool("it", Some((&state, accept(1, "green")))).await, "`x` is none of the choices");
    asks(&client.tool("it", Some((&state, json!({})))).await, 1, "Which colour?");
    let declined = json!({"q1": {"action": "decline"}});
    let state = asks(&client.tool("it", Some((&state, declined))).await, 2, "And the other?");
    let cancelled = json!({"q2": {"action": "cancel"}});
    let result = client.tool("it", Some((&state, cancelled))).await;
    assert_eq!(result["content"][0]["text"], "paint: \"it\" in declined and dismissed");
    let params = json!({"name": "paint", "inputResponses": accept(1, "red")});
    refused(&client.ask("tools/call", params, None).await.0, "inputResponses without requestState");
}

#[tokio::test]
async fn prompts_and_resources_ask_too() {
    let mut client = Asking::connect(Server::new(Mrtr::new(key()))).await;
    for (method, params) in [("prompts/get", json!({"name": "p"})), ("resources/read", json!({"uri": "r:x"}))] {
        let (result, _) = client.ask(method, params.clone(), None).await;
        let state = asks(&result, 1, "Which colour?");
        let (result, _) = client.ask(method, params, Some((&state, accept(1, "red")))).await;
        assert_eq!(result["resultType"], "complete", "{result}");
    }
}

#[tokio::test]
async fn who_cannot_be_asked_dismisses() {
    let mut client = Asking::connect(Server::new(Mrtr::new(key()))).await;
    client.declared = json!({});
    let text = "paint: \"it\" in dismissed and dismissed";
    assert_eq!(client.tool("it", None).await["content"][0]["text"], text);
    // Before 2026-07-28 no result can ask, whatever is declared.
    let mut legacy = Client::connect(WithProgress::new(Server::new(Mrtr::new(key()))), 1 << 20).await;
    let params = json!({"name": "paint", "arguments": {"what": "it"}});
    legacy.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})).await;
    assert_eq!(legacy.receive().await["result"]["content"][0]["text"], text);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_asked_at_once_and_a_question_that_nobody_answers_is_withdrawn() {
    let mrtr = Mrtr::new(StateKey::random().unwrap()).sessions().ttl(Duration::from_secs(5));
    let mut client = Client::connect(Server::new(mrtr), 1 << 16).await;
    let call = json!({"name": "paint", "arguments": {"what": "it"}});
    client.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call})).await;
    let first = client.receive().await;
    assert_eq!(
        (&first["method"], &first["params"]["message"]),
        (&json!("elicitation/create"), &json!("Which colour?"))
    );
    let answer = json!({"action": "accept", "content": {"x": "red"}});
    client.send(&json!({"jsonrpc": "2.0", "id": first["id"], "result": answer})).await;
    let second = client.receive().await;
    assert_eq!(second["params"]["message"], "And the other?");
    // Nobody answers this one.
    let mut after = [client.receive().await, client.receive().await];
    after.sort_by_key(|message| message["id"].is_null());
    let [answer, withdrawn] = after;
    assert_eq!(answer["result"]["content"][0]["text"], "paint: \"it\" in red and dismissed");
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], second["id"]);
}

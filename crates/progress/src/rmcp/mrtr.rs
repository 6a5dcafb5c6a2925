//! Contexts for the handlers of an rmcp server: asking a person by replay.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
        InputRequest, InputRequiredResult, InputResponses, JsonObject, ProtocolVersion, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use taffrail_mcp_core::Question;

use super::direct;
use crate::{
    ProgressSource as _, PromptContext, ResourceContext, SingleUse, StateKey, ToolContext,
    mrtr::{Binding, Call, Outcome, Past, Stop, Way, digest, read_answer, read_past, run, write_past},
};

/// A person thinks, fetches a coffee, and answers.
const DEFAULT_TTL: Duration = Duration::from_secs(15 * 60);

/// What a state may be long. It holds the answers so far, and answers are words of people.
const STATE_BYTES: usize = 1 << 20;

type Principal = dyn Fn(&RequestContext<RoleServer>) -> String + Send + Sync;

/// Runs the handlers of `tools/call`, `prompts/get` and `resources/read` with contexts in which they may ask.
///
/// The answers travel in the client's hands, in a `requestState` that only the holder of the [`StateKey`] can make and that
/// is good for one caller, method, handler and digest of the arguments, for a time, and, where asked for, once. So any
/// server with the same key can go on, and none keeps anything.
///
/// Clients can be asked from revision 2026-07-28 on, if the request declares elicitation; those of older revisions only
/// in sessions ([`Mrtr::sessions`]). For all others a question is dismissed.
///
/// ```
/// use rmcp::{ErrorData, RoleServer, ServerHandler, model::*, service::RequestContext};
/// use taffrail_progress::{Elicitor as _, ProgressSource as _, Question, Reply, ToolContext, rmcp::Mrtr};
///
/// struct Server {
///     mrtr: Mrtr,
/// }
///
/// async fn deploy(cx: ToolContext) -> Result<CallToolResult, ErrorData> {
///     let schema = serde_json::json!({"type": "object", "properties": {"sure": {"type": "boolean"}}});
///     let question = Question { message: "Deploy?".into(), schema: schema.as_object().cloned().unwrap_or_default() };
///     match cx.elicit(question).await {
///         Reply::Accepted(answer) if answer.get("sure") == Some(&true.into()) => {
///             let _ = cx.percent_progress().emit_with(0.5, "half of it");
///             Ok(CallToolResult::success(vec![ContentBlock::text("deployed")]))
///         }
///         _ => Ok(CallToolResult::success(vec![ContentBlock::text("left as it is")])),
///     }
/// }
///
/// impl ServerHandler for Server {
///     async fn call_tool(
///         &self,
///         request: CallToolRequestParams,
///         cx: RequestContext<RoleServer>,
///     ) -> Result<CallToolResponse, ErrorData> {
///         self.mrtr.tool(request, cx, |cx, _arguments| deploy(cx)).await
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Mrtr {
    key: StateKey,
    ttl: Duration,
    single_use: Option<Arc<dyn SingleUse>>,
    principal: Arc<Principal>,
    sessions: bool,
}

impl fmt::Debug for Mrtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mrtr").field("ttl", &self.ttl).finish_non_exhaustive()
    }
}

/// What a request is, whatever its method.
struct Request {
    method: &'static str,
    name: String,
    arguments: Option<JsonObject>,
    input_responses: Option<InputResponses>,
    request_state: Option<String>,
}

impl Mrtr {
    /// States are sealed with `key`, last 15 minutes, may be used until then, and are bound to no principal.
    ///
    /// That is for stdio, where there is one caller. Where there are several, set [`Mrtr::principal`].
    pub fn new(key: StateKey) -> Self {
        Self { key, ttl: DEFAULT_TTL, single_use: None, principal: Arc::new(|_| String::new()), sessions: false }
    }

    /// How long a person has to answer.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Takes each state once: for handlers whose answers must not count twice.
    #[must_use]
    pub fn single_use(mut self, spent: Arc<dyn SingleUse>) -> Self {
        self.single_use = Some(spent);
        self
    }

    /// Who calls, as the server has authenticated them. Nobody else can use their states.
    #[must_use]
    pub fn principal(
        mut self,
        principal: impl Fn(&RequestContext<RoleServer>) -> String + Send + Sync + 'static,
    ) -> Self {
        self.principal = Arc::new(principal);
        self
    }

    /// Asks clients of revisions up to 2025-11-25 too, by a request of the server's own (`elicitation/create`), if they
    /// declared elicitation when their session began.
    ///
    /// Only where the transport carries such requests, as stdio does. Over Streamable HTTP without sessions they get lost,
    /// and the handler would wait until the time for an answer is over.
    #[must_use]
    pub fn sessions(mut self) -> Self {
        self.sessions = true;
        self
    }

    /// Runs the handler of a `tools/call` with its context and arguments. It gives a `CallToolResult`, or a
    /// `CallToolResponse` where that may also be a task.
    ///
    /// The future resolves when the handler has returned or has a question; in the second case the handler is dropped.
    /// Dropping the future drops the handler.
    ///
    /// # Errors
    ///
    /// The handler's; -32602 for a state that is not this request's, has expired or was used, for an answer that does not
    /// fit, and when the handler asks something else than what was answered.
    pub async fn tool<F, T>(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
        handler: impl FnOnce(ToolContext, Option<JsonObject>) -> F + Send,
    ) -> Result<CallToolResponse, ErrorData>
    where
        F: Future<Output = Result<T, ErrorData>> + Send,
        CallToolResponse: From<T>,
    {
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        let name = name.into_owned();
        let request = Request { method: "tools/call", name, arguments, input_responses, request_state };
        self.run(request, &cx, |call, arguments| handler(ToolContext::new(call, cx.progress_source()), arguments)).await
    }

    /// Runs the handler of a `prompts/get`, as [`Mrtr::tool`] does.
    ///
    /// # Errors
    ///
    /// As [`Mrtr::tool`].
    pub async fn prompt<F>(
        &self,
        request: GetPromptRequestParams,
        cx: RequestContext<RoleServer>,
        handler: impl FnOnce(PromptContext, Option<JsonObject>) -> F + Send,
    ) -> Result<GetPromptResponse, ErrorData>
    where
        F: Future<Output = Result<GetPromptResult, ErrorData>> + Send,
    {
        let GetPromptRequestParams { name, arguments, input_responses, request_state, .. } = request;
        let request = Request { method: "prompts/get", name, arguments, input_responses, request_state };
        self.run(request, &cx, |call, arguments| handler(PromptContext::new(call, cx.progress_source()), arguments))
            .await
    }

    /// Runs the handler of a `resources/read`, as [`Mrtr::tool`] does. The URI is the context's `handler_name`.
    ///
    /// # Errors
    ///
    /// As [`Mrtr::tool`].
    pub async fn resource<F>(
        &self,
        request: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
        handler: impl FnOnce(ResourceContext) -> F + Send,
    ) -> Result<ReadResourceResponse, ErrorData>
    where
        F: Future<Output = Result<ReadResourceResult, ErrorData>> + Send,
    {
        let ReadResourceRequestParams { uri, input_responses, request_state, .. } = request;
        let request = Request { method: "resources/read", name: uri, arguments: None, input_responses, request_state };
        self.run(request, &cx, |call, _| handler(ResourceContext::new(call, cx.progress_source()))).await
    }

    async fn run<F, T, R>(
        &self,
        request: Request,
        cx: &RequestContext<RoleServer>,
        handler: impl FnOnce(Arc<Call>, Option<JsonObject>) -> F,
    ) -> Result<R, ErrorData>
    where
        F: Future<Output = Result<T, ErrorData>>,
        R: From<T> + From<InputRequiredResult>,
    {
        let Request { method, name, arguments, input_responses, request_state } = request;
        let principal = (self.principal)(cx);
        let arguments_digest = digest(&arguments.clone().map_or(Value::Null, Value::Object));
        let binding = Binding { principal: &principal, method, name: &name, arguments: arguments_digest };
        let past = self.open(&binding, request_state.as_deref(), input_responses)?;
        let call = Call::new(name.clone(), self.way(cx), past);
        let handler = handler(Arc::clone(&call), arguments);
        match run(&call, handler).await {
            Outcome::Done(result) => result.map(R::from),
            Outcome::Stopped(Stop::Asks(questions), past) => {
                let payload = write_past(&past).map_err(internal)?;
                let expires_ms = now_ms().saturating_add(u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX));
                let state = self.key.seal(&payload, &binding, expires_ms).map_err(internal)?;
                let requests =
                    questions.into_iter().map(|(number, question)| Ok((key(number), input_request(&question)?)));
                let requests = requests.collect::<Result<BTreeMap<_, _>, ErrorData>>()?;
                Ok(InputRequiredResult::new(Some(requests), Some(state)).into())
            }
            Outcome::Stopped(Stop::Changed(number), _) => Err(invalid(format!(
                "question {} of `{name}` is not the one that was answered; call again without requestState",
                number + 1
            ))),
            Outcome::Stopped(Stop::Unfit(number, what), _) => {
                Err(invalid(format!("the answer to question {} of `{name}` does not fit: {what}", number + 1)))
            }
            Outcome::Stopped(Stop::OtherAct(_), _) => {
                Err(invalid(format!("`{name}` does not go on where it asked; call again without requestState")))
            }
        }
    }

    /// Since 2026-07-28 there is a result that asks; before that there were requests of the server's own.
    fn way(&self, cx: &RequestContext<RoleServer>) -> Way {
        if !takes_forms(cx) {
            return Way::None;
        }
        match cx.protocol_version() {
            Some(version) if !version.has_initialize() => Way::Replay,
            Some(version) if self.sessions && version >= ProtocolVersion::V_2025_06_18 => {
                Way::Direct(Arc::new(direct::Person::new(cx.peer.clone(), version, self.ttl)))
            }
            _ => Way::None,
        }
    }

    /// What the client brings back, if it does.
    fn open(
        &self,
        binding: &Binding<'_>,
        state: Option<&str>,
        responses: Option<InputResponses>,
    ) -> Result<Past, ErrorData> {
        let Some(state) = state else {
            return match responses {
                None => Ok(Past::default()),
                Some(_) => Err(invalid("inputResponses without requestState; send both, or neither to begin anew")),
            };
        };
        let now = now_ms();
        let opened = Some(state)
            .filter(|state| state.len() <= STATE_BYTES)
            .and_then(|state| self.key.open(state, binding, now))
            .and_then(|sealed| Some((read_past(&sealed.payload)?, sealed)));
        // One message for whatever is wrong, so that nobody learns how to forge one.
        let refused = || {
            invalid("requestState is not good for this request, or not any more; call again without it to begin anew")
        };
        let (mut past, sealed) = opened.ok_or_else(refused)?;
        let mut responses = responses.unwrap_or_default();
        for (number, round) in past.rounds.iter_mut().enumerate().filter(|(_, round)| round.reply.is_none()) {
            if let Some(response) = responses.remove(&key(number)) {
                let reply = read_answer(&response);
                round.reply = Some(reply.map_err(|error| invalid(format!("inputResponses.{}: {error}", key(number))))?);
            }
        }
        // Last, so that a mistake in the answers does not use it up.
        if let Some(spent) = &self.single_use
            && !spent.spend(sealed.nonce, sealed.expires_ms, now)
        {
            return Err(refused());
        }
        Ok(past)
    }
}

/// The name of a question on the wire.
fn key(number: usize) -> String {
    format!("q{}", number + 1)
}

/// A question as a request to a client: `elicitation/create`, by a form.
///
/// # Errors
///
/// -32603 where the schema is none that MCP has for forms.
pub fn input_request(question: &Question) -> Result<InputRequest, ErrorData> {
    let params = form(question);
    serde_json::from_value(json!({"method": "elicitation/create", "params": params})).map_err(|error| {
        ErrorData::internal_error(format!("the schema of a question is not one of MCP: {error}"), None)
    })
}

/// Whether the client of a request says that it can ask its person by a form. Who names no way of asking means that one;
/// who names only URLs does not. (MCP 2025-11-25, "Elicitation", capabilities.)
pub fn takes_forms(cx: &RequestContext<RoleServer>) -> bool {
    let elicitation = cx.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// The parameters of `elicitation/create`.
pub(super) fn form(question: &Question) -> Value {
    let Question { message, schema } = question;
    json!({"mode": "form", "message": message, "requestedSchema": schema})
}

fn invalid(what: impl Into<std::borrow::Cow<'static, str>>) -> ErrorData {
    ErrorData::invalid_params(what, None)
}

fn internal(error: impl std::error::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// The one place that looks at the calendar.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

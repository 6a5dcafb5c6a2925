//! The rmcp handler: routes requests.

use std::{panic::AssertUnwindSafe, sync::PoisonError};

use futures_util::FutureExt as _;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskMethod, CancelTaskParams, CompleteRequestParams,
        CompleteResult, ConstString, CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse,
        GetTaskMethod, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
        SubscriptionFilter, Tool, UpdateTaskMethod, UpdateTaskParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::{Map, Value};
use taffrail_progress::rmcp::report;

use super::{
    super::{
        answer::{OF_THE_PROGRAM, answered, cursor, fresh, no_pages},
        call::{bad_level, is_modern, requested_level},
        completion,
        level::Level,
        prompts, resources,
        subscriptions::{self, needs_a_session},
        tools,
    },
    McpServer,
};
use crate::forward::Destination;

/// Methods that this server has; a request of one that ends up among the unknown had unreadable parameters.
const METHODS: [&str; 18] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "logging/setLevel",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    SUBSCRIBE,
    UNSUBSCRIBE,
    LISTEN,
    "prompts/list",
    "prompts/get",
    "completion/complete",
];
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";
const LISTEN: &str = "subscriptions/listen";

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tasks()
            .enable_prompts()
            .enable_completions()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        // Not by the builder's method, which is marked deprecated: revisions up to 2025-11-25 need it.
        capabilities.logging = Some(Map::new());
        let mut me = Implementation::new("taffrail", env!("CARGO_PKG_VERSION"));
        me.title = Some("Taffrail".to_owned());
        ServerConfig::new(capabilities).with_server_info(me).with_instructions(tools::INSTRUCTIONS)
    }

    /// As rmcp does it, but without a promise that only sessions keep.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        if let (None, Some(resources)) = (&self.subscriptions, &mut result.capabilities.resources) {
            resources.subscribe = None;
        }
        // Whoever begins with a handshake is of a revision whose tasks are others.
        result.capabilities.extensions = None;
        Ok(result)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        no_pages("tools/list", request)?;
        let mut result = ListToolsResult::with_all_items(self.tools.to_vec());
        (result.ttl_ms, result.cache_scope) = fresh(&context, OF_THE_PROGRAM);
        Ok(result)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = cursor(request);
        let listing = resources::list(&*self.backend, cursor.as_deref());
        let mut result = answered("resources/list", listing).await?;
        (result.ttl_ms, result.cache_scope) = fresh(&context, resources::LIST_FRESH);
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        no_pages("resources/templates/list", request)?;
        let mut result = ListResourceTemplatesResult::with_all_items(resources::templates());
        (result.ttl_ms, result.cache_scope) = fresh(&context, OF_THE_PROGRAM);
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let reading = resources::read(&*self.backend, self.shared_fs, &request.uri);
        let (mut result, time) = answered("resources/read", reading).await?;
        (result.ttl_ms, result.cache_scope) = fresh(&context, time);
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        no_pages("prompts/list", request)?;
        let mut result = ListPromptsResult::with_all_items(prompts::list());
        (result.ttl_ms, result.cache_scope) = fresh(&context, OF_THE_PROGRAM);
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let GetPromptRequestParams { name, arguments, .. } = request;
        let getting = prompts::get(&*self.backend, self.shared_fs, &name, arguments);
        Ok(answered("prompts/get", getting).await?.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        answered("completion/complete", completion::complete(&*self.backend, request)).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(subscriptions::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        answered(LISTEN, subscriptions::listen(&*self.backend, context, &self.hung_up)).await
    }

    async fn subscribe(
        &self,
        request: rmcp::model::SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let Some(subscriptions) = &self.subscriptions else { return Err(needs_a_session(SUBSCRIBE)) };
        let destination = self.destination.clone().unwrap_or(Destination::Peer(context.peer));
        let beginning = subscriptions.begin(&self.backend, request.uri, destination, self.hung_up.clone());
        answered(SUBSCRIBE, beginning).await
    }

    async fn unsubscribe(
        &self,
        request: rmcp::model::UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let Some(subscriptions) = &self.subscriptions else { return Err(needs_a_session(UNSUBSCRIBE)) };
        answered(UNSUBSCRIBE, subscriptions.end(&request.uri)).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let level = requested_level(&context, self.session_level())?;
        let (name, brings_answers) = (request.name.clone(), request.request_state.is_some());
        // rmcp never answers a request whose handler panics. Nothing of ours is left half done: what a tool
        // changes is changed by the backend.
        let done = AssertUnwindSafe(report(context, self.progress, |context| {
            self.mrtr.tool(request, context.clone(), |cx, arguments| {
                self.answer(cx, context, level, brings_answers, arguments)
            })
        }));
        done.catch_unwind().await.unwrap_or_else(|_panic| {
            tracing::error!(tool = %name, "a tool call panicked");
            Err(ErrorData::internal_error(
                format!("internal error in `{name}`; runs are not harmed, `list_runs` shows them"),
                None,
            ))
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        only_modern::<GetTaskMethod>(&context)?;
        self.tasks.get(&request.task_id, &context).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        only_modern::<UpdateTaskMethod>(&context)?;
        self.tasks.update(&request.task_id, request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        only_modern::<CancelTaskMethod>(&context)?;
        self.tasks.cancel(&request.task_id).await
    }

    #[expect(deprecated, reason = "revisions up to 2025-11-25 have it")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_modern(&context) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        let value = serde_json::to_value(request.level).unwrap_or_default();
        let level = Level::from_value(&value).ok_or_else(|| bad_level(&value))?;
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
        Ok(())
    }

    /// Requests of unknown methods, and, since rmcp reads what its types refuse as custom, those of
    /// known methods with bad parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let of_the_other_era = match is_modern(&context) {
            true => matches!(method.as_str(), SetLevelRequestMethod::VALUE | SUBSCRIBE | UNSUBSCRIBE),
            false => method == LISTEN,
        };
        if !METHODS.contains(&method.as_str()) || of_the_other_era {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        }
        if method == SetLevelRequestMethod::VALUE {
            let level = params.as_ref().and_then(|params| params.get("level"));
            return Err(bad_level(level.unwrap_or(&Value::Null)));
        }
        let text = format!("the parameters of {method} are not those of the protocol");
        Err(ErrorData::invalid_params(text, None))
    }
}

/// Refuses a method that older revisions do not have.
fn only_modern<M: ConstString>(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    if is_modern(context) { Ok(()) } else { Err(ErrorData::method_not_found::<M>()) }
}

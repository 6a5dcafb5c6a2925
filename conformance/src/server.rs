//! The server: who answers what.

use anyhow::Result;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestMethod,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use taffrail_progress::{StateKey, rmcp::Mrtr};
use tokio_util::sync::CancellationToken;

use crate::{changes::Changes, completions, jobs::Jobs, prompts, resources, tools};

/// What requests share.
pub(crate) struct Fixture {
    pub(crate) mrtr: Mrtr,
    pub(crate) changes: Changes,
    pub(crate) jobs: Jobs,
}

/// The context of a request.
pub(crate) type Context = RequestContext<RoleServer>;

impl Fixture {
    /// Subscriptions end in good order when `closing` fires.
    pub(crate) fn new(closing: CancellationToken) -> Result<Self> {
        Ok(Self { mrtr: Mrtr::new(StateKey::random()?), changes: Changes::new(closing), jobs: Jobs::open()? })
    }
}

/// Whether the request is of a revision without handshake.
pub(crate) fn is_modern(cx: &Context) -> bool {
    cx.protocol_version().is_some_and(|version| !version.has_initialize())
}

#[expect(deprecated, reason = "revisions up to 2025-11-25 have levels and subscriptions by resource")]
impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_tasks()
            .build();
        // Not by the builder's method, which is marked deprecated: revisions up to 2025-11-25 need it.
        capabilities.logging = Some(Default::default());
        let me = Implementation::new("taffrail-conformance", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(me)
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: Context) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list(self)))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list(self).into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(&self, request: CallToolRequestParams, cx: Context) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, cx).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list(self)))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, cx: Context) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(self, request, cx).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(Into::into)
    }

    async fn complete(&self, request: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        completions::complete(&request)
    }

    async fn set_level(&self, _: rmcp::model::SetLevelRequestParams, cx: Context) -> Result<(), ErrorData> {
        match is_modern(&cx) {
            true => Err(ErrorData::method_not_found::<SetLevelRequestMethod>()),
            // There is no session to remember it in: what is logged goes to every request of these revisions.
            false => Ok(()),
        }
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        resources::known(&request.uri)
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        resources::known(&request.uri)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.changes.listen(&context).await;
        Ok(())
    }

    async fn get_task(&self, request: GetTaskParams, cx: Context) -> Result<GetTaskResult, ErrorData> {
        self.jobs.get(&request.task_id, &cx).await
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.jobs.update(&request.task_id, request.input_responses).await
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.jobs.cancel(&request.task_id).await
    }
}

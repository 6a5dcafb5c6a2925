//! `WithProgress` as an rmcp handler: every request goes to the wrapped server with progress around it.
//!
//! Method by method, because rmcp's HTTP transport takes handlers only, and a handler has no single door. A method that a
//! later rmcp 3 adds has to be added here too; until then it answers as rmcp does for servers that lack it.

use std::borrow::Cow;

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam, CompleteRequestParams,
        CompleteResult, CustomNotification, CustomRequest, CustomResult, DiscoverResult, GetPromptRequestParams,
        GetPromptResponse, GetSkillRequestParams, GetSkillResult, GetTaskParams, GetTaskResult,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListSkillsResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
        ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, ReadResourceRequestParams,
        ReadResourceResponse, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
        UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};

use super::{WithProgress, report};

type Context = RequestContext<RoleServer>;

/// Requests with progress around them.
macro_rules! requests {
    ($($name:ident($request:ty) -> $result:ty;)*) => {$(
        async fn $name(&self, request: $request, context: Context) -> Result<$result, ErrorData> {
            report(context, self.config, |context| self.server.$name(request, context)).await
        }
    )*};
}

#[expect(deprecated, reason = "revisions up to 2025-11-25 have levels")]
impl<S: ServerHandler> ServerHandler for WithProgress<S> {
    requests! {
        call_tool(CallToolRequestParams) -> CallToolResponse;
        get_prompt(GetPromptRequestParams) -> GetPromptResponse;
        read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
        complete(CompleteRequestParams) -> CompleteResult;
        list_tools(Option<PaginatedRequestParams>) -> ListToolsResult;
        list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult;
        list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult;
        list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult;
        read_resource_directory(ReadResourceDirectoryRequestParams) -> ReadResourceDirectoryResult;
        list_skills(Option<PaginatedRequestParams>) -> ListSkillsResult;
        get_skill(GetSkillRequestParams) -> GetSkillResult;
        get_task(GetTaskParams) -> GetTaskResult;
        update_task(UpdateTaskParams) -> ();
        cancel_task(CancelTaskParams) -> ();
        subscribe(SubscribeRequestParams) -> ();
        unsubscribe(UnsubscribeRequestParams) -> ();
        set_level(rmcp::model::SetLevelRequestParams) -> ();
        on_custom_request(CustomRequest) -> CustomResult;
    }

    async fn ping(&self, context: Context) -> Result<(), ErrorData> {
        self.server.ping(context).await
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        self.server.initialize(request, context).await
    }

    fn negotiate_initialize(&self, request: &InitializeRequestParams) -> Result<InitializeResult, ErrorData> {
        self.server.negotiate_initialize(request)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.server.supported_protocol_versions()
    }

    async fn discover(&self, context: Context) -> Result<DiscoverResult, ErrorData> {
        self.server.discover(context).await
    }

    fn get_info(&self) -> ServerConfig {
        self.server.get_info()
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.get_tool(name)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.server.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.server.listen(context).await
    }

    async fn on_cancelled(&self, notification: CancelledNotificationParam, context: NotificationContext<RoleServer>) {
        self.server.on_cancelled(notification, context).await;
    }

    async fn on_progress(&self, notification: ProgressNotificationParam, context: NotificationContext<RoleServer>) {
        self.server.on_progress(notification, context).await;
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.server.on_initialized(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.server.on_roots_list_changed(context).await;
    }

    async fn on_custom_notification(&self, notification: CustomNotification, context: NotificationContext<RoleServer>) {
        self.server.on_custom_notification(notification, context).await;
    }
}

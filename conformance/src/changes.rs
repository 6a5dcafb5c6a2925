//! Lists that change while somebody listens: each has one more entry every other time.

use rmcp::service::SubscriptionContext;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) struct Changes {
    tools: watch::Sender<bool>,
    prompts: watch::Sender<bool>,
    closing: CancellationToken,
}

impl Changes {
    pub(crate) fn new(closing: CancellationToken) -> Self {
        Self { tools: watch::Sender::new(false), prompts: watch::Sender::new(false), closing }
    }

    pub(crate) fn change_tools(&self) {
        self.tools.send_modify(|more| *more = !*more);
    }

    pub(crate) fn change_prompts(&self) {
        self.prompts.send_modify(|more| *more = !*more);
    }

    /// Whether the list of tools has its extra one.
    pub(crate) fn more_tools(&self) -> bool {
        *self.tools.borrow()
    }

    /// Whether the list of prompts has its extra one.
    pub(crate) fn more_prompts(&self) -> bool {
        *self.prompts.borrow()
    }

    /// Tells of changes that the client asked for, until it hangs up or this server ends.
    pub(crate) async fn listen(&self, context: &SubscriptionContext) {
        let (mut tools, mut prompts) = (self.tools.subscribe(), self.prompts.subscribe());
        let (sink, accepted) = (context.sink(), context.accepted());
        let wants_tools = accepted.tools_list_changed == Some(true);
        let wants_prompts = accepted.prompts_list_changed == Some(true);
        loop {
            let sent = tokio::select! {
                () = context.cancelled() => return,
                () = self.closing.cancelled() => return,
                Ok(()) = tools.changed(), if wants_tools => sink.notify_tool_list_changed().await,
                Ok(()) = prompts.changed(), if wants_prompts => sink.notify_prompt_list_changed().await,
            };
            if sent.is_err() {
                return;
            }
        }
    }
}

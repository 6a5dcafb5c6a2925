//! Asking while the request goes on: `elicitation/create`, as revisions up to 2025-11-25 have it.

use std::time::Duration;

use rmcp::{
    Peer, RoleServer,
    model::{CancelledNotificationParam, ClientResult, ElicitRequest, ProtocolVersion, RequestId, ServerRequest},
    service::PeerRequestOptions,
};
use serde_json::{Map, Value};
use taffrail_mcp_core::{BoxFuture, Elicitor, Question, Reply};

use super::mrtr::form;
use crate::mrtr::read_answer;

/// The person behind a session's client.
pub(super) struct Person {
    peer: Peer<RoleServer>,
    revision: ProtocolVersion,
    /// After this, the question is withdrawn.
    patience: Duration,
}

impl Person {
    pub(super) const fn new(peer: Peer<RoleServer>, revision: ProtocolVersion, patience: Duration) -> Self {
        Self { peer, revision, patience }
    }

    /// The form as the session's revision has it: before 2025-11-25 choices had their titles in a list beside them.
    fn form(&self, question: &Question) -> Value {
        let mut form = form(question);
        if self.revision >= ProtocolVersion::V_2025_11_25 {
            return form;
        }
        let fields = form.get_mut("requestedSchema").and_then(|schema| schema.get_mut("properties"));
        for field in fields.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            let Some(field) = field.as_object_mut() else { continue };
            let Some(Value::Array(choices)) = field.remove("oneOf") else { continue };
            let of = |key: &str| choices.iter().filter_map(|choice| choice.get(key).cloned()).collect::<Vec<_>>();
            field.insert("enum".to_owned(), of("const").into());
            field.insert("enumNames".to_owned(), of("title").into());
        }
        form
    }

    /// `None` where nothing was decided: no answer, or none of this protocol.
    async fn ask(&self, question: &Question) -> Option<Reply> {
        let params = serde_json::from_value(self.form(question)).ok()?;
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        let asked = self.peer.send_cancellable_request(request, PeerRequestOptions::default()).await.ok()?;
        let mut withdrawn = Withdrawn { peer: &self.peer, id: Some(asked.id.clone()) };
        let answer = tokio::time::timeout(self.patience, asked.rx).await.ok()?;
        withdrawn.id = None;
        let ClientResult::ElicitResult(result) = answer.ok()?.ok()? else { return None };
        read_answer(&serde_json::to_value(result).ok()?).ok()
    }
}

impl Elicitor for Person {
    fn elicit(&self, question: Question) -> BoxFuture<'_, Reply> {
        Box::pin(async move { self.ask(&question).await.unwrap_or(Reply::Dismissed) })
    }
}

/// Tells the client that nobody waits for its answer any more, when dropped.
struct Withdrawn<'a> {
    peer: &'a Peer<RoleServer>,
    id: Option<RequestId>,
}

impl Drop for Withdrawn<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        let reason = Some("the question is withdrawn".to_owned());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // Where it cannot be sent nobody is there to be told.
                let _ = peer.notify_cancelled(CancelledNotificationParam::new(Some(id), reason)).await;
            });
        }
    }
}

//! `resources/subscribe` and `resources/unsubscribe`: news of runs for as long as a session lives.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::{
    ErrorData,
    model::{ErrorCode, ResourceUpdatedNotificationParam},
};
use serde_json::json;
use taffrail_mcp_core::RunId;
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use super::{
    super::{
        answer::invalid,
        backend::Backend,
        changes::{self, Place},
        resources,
    },
    MOST_RUNS,
};
use crate::forward::Destination;

/// The subscriptions of one session. They end with it.
#[derive(Debug, Default)]
pub(in super::super) struct Subscriptions(Mutex<BTreeMap<RunId, AbortOnDropHandle<()>>>);

impl Subscriptions {
    /// Tells of each change of the run of `uri` from now on. Again for the same run changes nothing.
    ///
    /// # Errors
    ///
    /// Resource not found; -32602 when the session has [`MOST_RUNS`] subscriptions to runs that are not over.
    pub(in super::super) async fn begin(
        &self,
        backend: &Arc<dyn Backend>,
        uri: String,
        destination: Destination,
        hung_up: CancellationToken,
    ) -> Result<(), ErrorData> {
        // Before the answer: what the client reads once it has that is no older.
        let (run, snapshot) = resources::named(&**backend, &uri).await?;
        let place = Place::of(&snapshot);
        let mut tasks = self.tasks();
        tasks.retain(|_, task| !task.is_finished());
        if tasks.contains_key(&run) {
            return Ok(());
        }
        if tasks.len() >= MOST_RUNS {
            return Err(invalid(format!(
                "this session has {MOST_RUNS} subscriptions already; end one with resources/unsubscribe"
            )));
        }
        let (backend, of) = (Arc::clone(backend), run.clone());
        let task = tokio::spawn(async move {
            tokio::select! {
                () = hung_up.cancelled() => {}
                () = changes::follow(&*backend, &of, place, || updated(&destination, &uri)) => {}
            }
        });
        tasks.insert(run, AbortOnDropHandle::new(task));
        Ok(())
    }

    /// Tells of no more changes of the run of `uri`, once this has returned. Without a subscription there is nothing to
    /// end, and that is no error.
    ///
    /// # Errors
    ///
    /// Resource not found for a URI that is no run's.
    pub(in super::super) async fn end(&self, uri: &str) -> Result<(), ErrorData> {
        let run = resources::run_of(uri).ok_or_else(|| resources::no_such(uri))?;
        let task = self.tasks().remove(&run);
        if let Some(task) = task {
            task.abort();
            // It was cancelled, or had ended.
            let _ = task.await;
        }
        Ok(())
    }

    fn tasks(&self) -> MutexGuard<'_, BTreeMap<RunId, AbortOnDropHandle<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer where requests belong to no session.
pub(in super::super) fn needs_a_session(method: &str) -> ErrorData {
    let text = format!(
        "{method} needs a session, and over HTTP this server has none: wait for a change with the tool run_status \
         (after, wait_s), or use subscriptions/listen of revision 2026-07-28"
    );
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, text, None)
}

/// Sends a notification, as soon as the client takes it. `false`: there is nobody any more.
async fn updated(destination: &Destination, uri: &str) -> bool {
    match destination {
        Destination::Outbox(outbox) => {
            let notification = json!({
                "jsonrpc": "2.0", "method": "notifications/resources/updated", "params": { "uri": uri },
            });
            outbox.queue(format!("{notification}\n").as_bytes()).await.is_ok()
        }
        Destination::Peer(peer) => {
            peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
        }
    }
}

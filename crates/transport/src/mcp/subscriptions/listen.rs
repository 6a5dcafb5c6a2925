//! `subscriptions/listen`: news of runs for as long as the request lives.

use std::collections::BTreeMap;

use futures_util::{
    StreamExt as _,
    future::{self, BoxFuture},
    stream::FuturesUnordered,
};
use rmcp::{
    ErrorData,
    model::SubscriptionFilter,
    service::{SubscriptionContext, SubscriptionSink},
};
use taffrail_mcp_core::RunId;
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        answer::{invalid, shown},
        backend::Backend,
        changes::{self, Place},
        resources,
    },
    MOST_RUNS,
};

/// What of a request to listen can be served, as far as its form tells: URIs of runs. Lists are not told of: what the
/// program defines does not change, and the list of runs always does.
pub(in super::super) fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.as_deref().unwrap_or_default();
    if uris.len() > MOST_RUNS {
        // `listen` refuses it.
        return SubscriptionFilter::new();
    }
    let uris = uris.iter().filter(|uri| resources::run_of(uri).is_some());
    SubscriptionFilter::builder().resource_subscriptions(uris).build()
}

/// Tells of each change of the runs that were accepted, until the request is cancelled or `ending` fires.
///
/// One notification comes for each run at once: what is read after it is the state from which on every change is told,
/// whatever happened between a reading before and the beginning of this. A run that there is not, or not any more, is
/// told the same way, once: who reads it learns so.
///
/// # Errors
///
/// -32602 for more than [`MOST_RUNS`] URIs; resource not found when there is none of the runs.
pub(in super::super) async fn listen(
    backend: &dyn Backend,
    context: SubscriptionContext,
    ending: &CancellationToken,
) -> Result<(), ErrorData> {
    let count = context.requested().resource_subscriptions.as_ref().map_or(0, Vec::len);
    if count > MOST_RUNS {
        return Err(invalid(format!("{count} URIs are too many; listen to at most {MOST_RUNS} in one request")));
    }
    let uris = context.accepted().resource_subscriptions.iter().flatten();
    if count > 0 && context.accepted().resource_subscriptions.is_none() {
        return Err(invalid(
            "none of the URIs is that of a run: taffrail://runs/{run}; resources/list shows them".to_owned(),
        ));
    }
    let runs = uris.filter_map(|uri| Some((uri.clone(), resources::run_of(uri)?))).collect();
    tokio::select! {
        // Who is gone is told nothing more.
        biased;
        () = context.cancelled() => Ok(()),
        () = ending.cancelled() => Ok(()),
        refused = tell(backend, context.sink(), runs) => Err(refused),
    }
}

/// Ends only when there is none of the runs.
async fn tell(backend: &dyn Backend, sink: &SubscriptionSink, runs: BTreeMap<String, RunId>) -> ErrorData {
    let places = runs.iter().map(|(uri, run)| async move { (uri, run, Place::now(backend, run).await) });
    let mut beginning: FuturesUnordered<_> = places.collect();
    // Each goes on by itself: one whose store is slow holds up no other.
    let mut going: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
    let mut missing = Vec::new();
    let mut known = false;
    loop {
        tokio::select! {
            Some((uri, run, place)) = beginning.next() => match place {
                Some(place) => {
                    known = true;
                    going.push(Box::pin(one(backend, sink, uri, run, place)));
                }
                None => missing.push(uri),
            },
            Some(()) = going.next() => {}
            else => break,
        }
        if beginning.is_empty() && known {
            for uri in missing.drain(..) {
                going.push(Box::pin(async { _ = updated(sink, uri).await }));
            }
        }
    }
    match missing.first() {
        Some(uri) => {
            let text = format!(
                "there is no run of those listened to, {:?} for one; resources/list shows the runs",
                shown(uri)
            );
            ErrorData::resource_not_found(text, None)
        }
        // There is nothing more to tell; to end the request is up to the client.
        None => future::pending().await,
    }
}

/// Tells of one run.
async fn one(backend: &dyn Backend, sink: &SubscriptionSink, uri: &str, run: &RunId, place: Place) {
    if updated(sink, uri).await {
        changes::follow(backend, run, place, || updated(sink, uri)).await;
    }
}

/// Sends a notification, as soon as the client takes it. `false`: there is nobody any more.
async fn updated(sink: &SubscriptionSink, uri: &str) -> bool {
    sink.notify_resource_updated(uri).await.is_ok()
}

//! Tells of a run's changes of state, for as long as there can be any.

use std::time::Duration;

use serde_json::Value;
use taffrail_mcp_core::RunId;

use super::{
    backend::{Backend, BackendError, BackendErrorKind, WaitUntil},
    snapshot,
};

/// How long a store that cannot be read is left alone.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Up to where changes of a run have been told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    head: u64,
    prospect: Prospect,
}

/// What may still come of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prospect {
    /// It runs or waits.
    GoesOn,
    /// It is over, but can be resumed.
    MayGoOn,
    /// It is over for good.
    Over,
}

impl Place {
    /// Where a run is now. `None`: there is no such run. Asks again while the store cannot be read.
    pub(super) async fn now(backend: &dyn Backend, run: &RunId) -> Option<Self> {
        Some(Self::of(&patiently(|| backend.snapshot(run.as_str())).await?))
    }

    /// Where a snapshot was made.
    pub(super) fn of(snapshot: &Value) -> Self {
        let prospect = match snapshot.get("status").and_then(Value::as_str) {
            Some("done" | "halt" | "cancelled") => Prospect::Over,
            Some("interrupted") => Prospect::MayGoOn,
            _ => Prospect::GoesOn,
        };
        Self { head: snapshot::head(snapshot), prospect }
    }

    /// Waits for the next change, and gives the place after it. `None`: there is no such run any more.
    ///
    /// Changes that come faster than this is called are one. None falls between two calls: the place is older than any
    /// snapshot that is read once this has returned.
    async fn next(self, backend: &dyn Backend, run: &RunId) -> Option<Self> {
        let until = match self.prospect {
            Prospect::GoesOn => WaitUntil::StateAfter(self.head),
            Prospect::MayGoOn | Prospect::Over => WaitUntil::GoesOnAfter(self.head),
        };
        patiently(|| backend.wait(run.as_str(), until)).await?;
        Self::now(backend, run).await
    }
}

/// Calls `tell` after each change of state past `place`, the last time when the run is over for good or is gone. Ends
/// early when `tell` says that nobody listens any more. One is told before the next is waited for, so who takes them
/// slowly gets fewer, and the last one always.
pub(super) async fn follow<F>(backend: &dyn Backend, run: &RunId, mut place: Place, tell: impl Fn() -> F)
where
    F: Future<Output = bool>,
{
    while place.prospect != Prospect::Over {
        let next = place.next(backend, run).await;
        if !tell().await {
            return;
        }
        let Some(next) = next else { return };
        place = next;
    }
}

/// Asks until the store answers. `None`: there is no such run.
async fn patiently<T, F>(ask: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<T, BackendError>>,
{
    loop {
        match ask().await {
            Ok(answer) => return Some(answer),
            Err(error) if error.kind == BackendErrorKind::NotFound => return None,
            Err(error) => {
                tracing::debug!(%error, "a run that is listened to cannot be read now");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }
}

//! Reading a run's log.

use std::time::Duration;

use taffrail_mcp_core::{RunId, RunStatus, Start};
use taffrail_relay::{Filter, Follower, Page, PageQuery, Pattern};

use crate::{RunsError, Service};

/// A window of a run's log.
#[derive(Debug, Clone)]
pub struct LogQuery {
    /// Where it begins.
    pub start: Start,
    /// At most this many matching records.
    pub limit: usize,
    /// At most this many bytes of matching lines, but at least one line.
    pub max_bytes: usize,
    /// The last so many that match, instead of the first.
    pub tail: Option<usize>,
    /// Regular expression.
    pub grep: Option<String>,
    /// Event types; empty means all.
    pub types: Vec<String>,
    /// Only this state.
    pub state: Option<String>,
    /// Only `stdout` or `stderr`.
    pub stream: Option<String>,
    /// How long to wait for a first match.
    pub wait: Duration,
}

impl Default for LogQuery {
    fn default() -> Self {
        Self {
            start: Start::Beginning,
            limit: PageQuery::LIMIT,
            max_bytes: PageQuery::MAX_BYTES,
            tail: None,
            grep: None,
            types: Vec::new(),
            state: None,
            stream: None,
            wait: Duration::ZERO,
        }
    }
}

impl Service {
    /// Reads a window.
    ///
    /// # Errors
    ///
    /// [`RunsError::NoRun`]; [`RunsError::Relay`] for a bad pattern, a cursor past the end, or a store that fails.
    pub async fn logs(&self, run: &RunId, query: LogQuery) -> Result<Page, RunsError> {
        let LogQuery { start, limit, max_bytes, tail, grep, types, state, stream, wait } = query;
        let grep = grep.as_deref().map(Pattern::new).transpose()?;
        let filter = Filter { run: Some(run.clone()), types, state, stream, grep };
        let query = PageQuery { start, filter, limit, max_bytes, tail, wait };
        if wait > Duration::ZERO {
            // A run whose host is gone ends now, and not when the wait is over.
            self.fold(run).await?;
        }
        let unknown = || RunsError::NoRun { run: run.to_string() };
        let (fold, page) = self.inner.relay.run_page(run, &query).await?.ok_or_else(unknown)?;
        // Who reads to the end of a run that goes on looks whether it does: its host may be gone, and that is its end.
        if page.meta.next < page.meta.head || fold.status != RunStatus::Running {
            return Ok(page);
        }
        match self.settled(fold).await? {
            fold if fold.status == RunStatus::Running => Ok(page),
            _ => Ok(self.inner.relay.run_page(run, &query).await?.ok_or_else(unknown)?.1),
        }
    }

    /// Follows a run's records from a position on.
    ///
    /// # Errors
    ///
    /// [`RunsError::NoRun`]; [`RunsError::Relay`] for a cursor past the end.
    pub async fn follow(&self, run: &RunId, start: Start) -> Result<Follower, RunsError> {
        let fold = self.fold(run).await?;
        Ok(self.inner.relay.follow(&fold.thread, Some(run.clone()), start).await?)
    }
}

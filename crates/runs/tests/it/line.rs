//! The line between a process and what it shares with others, which can be cut.

use std::{io, sync::Arc};

use taffrail_mcp_core::{BoxFuture, RunFold, RunId, Seq, ThreadId};
use taffrail_relay::{
    Append, Appended, Block, Extent, Leases, ListRuns, ReadBlocks, Store, StoreError, ThreadUsage, Trimmed,
};
use tokio::sync::watch;

/// A line. A clone is the same line.
#[derive(Clone)]
pub(crate) struct Line {
    state: Arc<watch::Sender<State>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    /// What is asked is answered when the line is up again.
    Stalled,
    /// What is asked fails.
    Down,
    /// Nothing can be appended.
    Full,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { state: Arc::new(watch::Sender::new(State::Up)) }
    }

    pub(crate) fn up(&self) {
        self.state.send_replace(State::Up);
    }

    pub(crate) fn stall(&self) {
        self.state.send_replace(State::Stalled);
    }

    pub(crate) fn down(&self) {
        self.state.send_replace(State::Down);
    }

    pub(crate) fn full(&self) {
        self.state.send_replace(State::Full);
    }
}

/// A store, or leases, at the other end of a line.
pub(crate) struct OnLine<T: ?Sized> {
    inner: Arc<T>,
    line: Line,
}

impl OnLine<dyn Store> {
    pub(crate) fn store(inner: Arc<dyn Store>, line: &Line) -> Arc<dyn Store> {
        Arc::new(Self { inner, line: line.clone() })
    }
}

impl OnLine<dyn Leases> {
    pub(crate) fn leases(inner: Arc<dyn Leases>, line: &Line) -> Arc<dyn Leases> {
        Arc::new(Self { inner, line: line.clone() })
    }
}

impl<T: ?Sized + Send + Sync + 'static> OnLine<T> {
    fn over<A: Send + 'static>(
        &self,
        call: impl FnOnce(&T) -> BoxFuture<'static, Result<A, StoreError>> + Send + 'static,
    ) -> BoxFuture<'static, Result<A, StoreError>> {
        let (inner, mut state) = (Arc::clone(&self.inner), self.line.state.subscribe());
        Box::pin(async move {
            // The sender is gone with the test.
            let state = state.wait_for(|state| *state != State::Stalled).await.map_or(State::Down, |state| *state);
            if state == State::Down {
                let source = Arc::new(io::Error::other("the line is down"));
                return Err(StoreError::Unavailable { what: "could not reach the other end".into(), source });
            }
            call(&inner).await
        })
    }
}

impl Store for OnLine<dyn Store> {
    fn append(&self, group: Vec<Append>) -> BoxFuture<'static, Result<Vec<Appended>, StoreError>> {
        if *self.line.state.borrow() == State::Full {
            return Box::pin(std::future::ready(Err(StoreError::Full { path: "full".into() })));
        }
        self.over(|store| store.append(group))
    }
    fn read(&self, query: ReadBlocks) -> BoxFuture<'static, Result<Vec<Block>, StoreError>> {
        self.over(|store| store.read(query))
    }
    fn extent(&self, thread: ThreadId) -> BoxFuture<'static, Result<Extent, StoreError>> {
        self.over(|store| store.extent(thread))
    }
    fn run(&self, run: RunId) -> BoxFuture<'static, Result<Option<RunFold>, StoreError>> {
        self.over(|store| store.run(run))
    }
    fn runs(&self, query: ListRuns) -> BoxFuture<'static, Result<Vec<RunFold>, StoreError>> {
        self.over(|store| store.runs(query))
    }
    fn claim(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        self.over(|store| store.claim(key))
    }
    fn threads(&self) -> BoxFuture<'static, Result<Vec<ThreadUsage>, StoreError>> {
        self.over(|store| store.threads())
    }
    fn trim(&self, thread: ThreadId, through: Seq) -> BoxFuture<'static, Result<Trimmed, StoreError>> {
        self.over(move |store| store.trim(thread, through))
    }
    fn forget(&self, run: RunId) -> BoxFuture<'static, Result<(), StoreError>> {
        self.over(|store| store.forget(run))
    }
    fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes()
    }
}

impl Leases for OnLine<dyn Leases> {
    fn take(&self, key: String, holder: String) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.over(|leases| leases.take(key, holder))
    }
    fn release(&self, key: String, holder: String) -> BoxFuture<'static, Result<(), StoreError>> {
        self.over(|leases| leases.release(key, holder))
    }
    fn holder(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        self.over(|leases| leases.holder(key))
    }
    fn beat(&self, holder: String) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.over(|leases| leases.beat(holder))
    }
    fn holders(&self) -> BoxFuture<'static, Result<Vec<(String, u64)>, StoreError>> {
        self.over(|leases| leases.holders())
    }
    fn revoke(&self, holder: String, beats: u64) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.over(move |leases| leases.revoke(holder, beats))
    }
    fn leave(&self, holder: String) -> BoxFuture<'static, Result<(), StoreError>> {
        self.over(|leases| leases.leave(holder))
    }
}

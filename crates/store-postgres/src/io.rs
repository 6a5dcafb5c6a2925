//! The thread that talks to the server.
//!
//! The store has a runtime of its own: its connections do not end with the runtime that opened it, and do not wait for
//! a busy one.

use std::{
    future::Future,
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, channel},
    },
    thread::Builder,
    time::Duration,
};

use taffrail_relay::StoreError;
use tokio::{
    runtime::{self, Handle},
    sync::oneshot,
    task::JoinHandle,
};

/// How long dropping a store waits for what was handed over. A server that hangs gets no longer than this.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// A runtime on a thread of its own, until dropped.
#[derive(Debug)]
pub(crate) struct Io {
    handle: Handle,
    /// Takes the last task, whose end is the thread's end.
    last: Option<oneshot::Sender<JoinHandle<()>>>,
    /// In a lock only to be shared between threads: nobody but the last owner looks.
    ended: Mutex<Receiver<()>>,
}

impl Io {
    /// Starts the thread.
    pub(crate) fn start() -> std::io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (last, wait) = oneshot::channel::<JoinHandle<()>>();
        let (end, ended) = channel::<()>();
        Builder::new().name("postgres-store".into()).spawn(move || {
            runtime.block_on(async {
                // Without a last task the store was not opened.
                if let Ok(task) = wait.await {
                    let _ = task.await;
                }
            });
            drop(runtime);
            drop(end);
        })?;
        Ok(Self { handle, last: Some(last), ended: Mutex::new(ended) })
    }

    /// Runs something there, also when nobody waits for it.
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.handle.spawn(work)
    }

    /// For work that keeps a thread busy.
    pub(crate) fn blocking(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits for something that runs there.
    pub(crate) async fn joined<T>(task: JoinHandle<Result<T, StoreError>>) -> Result<T, StoreError> {
        // Fails only when the store was closed meanwhile, or the task panicked.
        task.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Ends the thread after this task, and waits for it, but not for ever.
    pub(crate) fn end_after(&mut self, task: JoinHandle<()>) {
        if let Some(last) = self.last.take()
            && last.send(task).is_ok()
        {
            // Disconnected when the thread ends; a timeout leaves it to itself.
            let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
            let _ = ended.recv_timeout(LAST_WAIT);
        }
    }
}

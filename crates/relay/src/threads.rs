//! The hot threads of a relay, and who tells their readers of what other processes write.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use taffrail_mcp_core::{Seq, ThreadId};
use tokio::{sync::Notify, time::sleep};

use crate::{
    Config, Store, StoreError,
    hot::{Hot, lock},
    readers::Pacer,
};

/// Looks are this far apart at least: a store that changes all the time costs no more than so many.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Looks that found nothing come to be this far apart, when the store changes all the time: it is this process that writes.
const LOOK_SELDOM: Duration = Duration::from_millis(16);
/// After a look that failed, the next one.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Threads that somebody here writes or reads.
#[derive(Debug)]
pub(crate) struct Threads {
    config: Config,
    hot: Mutex<Hots>,
    /// A reader has come.
    reader: Notify,
    pacer: Pacer,
}

#[derive(Debug, Default)]
struct Hots {
    by_name: HashMap<ThreadId, Weak<Hot>>,
    /// The relay has ended.
    closed: bool,
}

impl Threads {
    pub(crate) fn new(config: Config, pacer: Pacer) -> Self {
        Self { config, hot: Mutex::default(), reader: Notify::new(), pacer }
    }

    /// A thread, when it is hot.
    pub(crate) fn get(&self, thread: &ThreadId) -> Option<Arc<Hot>> {
        lock(&self.hot).by_name.get(thread).and_then(Weak::upgrade)
    }

    /// A thread that goes at least as far as `head`.
    pub(crate) fn at(&self, thread: &ThreadId, head: Seq) -> Arc<Hot> {
        let mut hots = lock(&self.hot);
        let Hots { by_name: all, closed } = &mut *hots;
        if let Some(hot) = all.get(thread).and_then(Weak::upgrade) {
            hot.is_stored_up_to(head);
            return hot;
        }
        // Those that are not hot any more go when they are half of all, so that looking for them costs little.
        if all.len() >= 2 * all.values().filter(|hot| hot.strong_count() > 0).count().max(8) {
            all.retain(|_, hot| hot.strong_count() > 0);
        }
        let hot = Arc::new(Hot::new(thread.clone(), self.config, head, self.pacer.clone()));
        if *closed {
            hot.readers.close();
        }
        all.insert(thread.clone(), Arc::downgrade(&hot));
        hot
    }

    /// Somebody waits for a thread to grow.
    pub(crate) fn reader_came(&self) {
        self.reader.notify_one();
    }

    /// The relay has ended: tells everybody who waits for a thread.
    pub(crate) fn close(&self) {
        let mut hots = lock(&self.hot);
        hots.closed = true;
        hots.by_name.values().filter_map(Weak::upgrade).for_each(|hot| hot.readers.close());
    }

    fn read(&self) -> Vec<Arc<Hot>> {
        lock(&self.hot).by_name.values().filter_map(Weak::upgrade).filter(|hot| hot.readers.are_there()).collect()
    }
}

/// Looks, whenever the store has changed, how far each thread goes that somebody reads. One look serves all readers of
/// all threads. The store is not watched while there are none.
pub(crate) async fn watch(store: Arc<dyn Store>, threads: Arc<Threads>) {
    loop {
        threads.reader.notified().await;
        let mut changes = store.changes();
        let mut rest = LOOK_EVERY;
        loop {
            changes.borrow_and_update();
            let read = threads.read();
            if read.is_empty() {
                break;
            }
            match look(&*store, &read).await {
                Ok(news) => {
                    sleep(rest).await;
                    rest = if news || !changes.has_changed().unwrap_or(true) {
                        LOOK_EVERY
                    } else {
                        (rest * 2).min(LOOK_SELDOM)
                    };
                    if changes.changed().await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot look for what other processes have written");
                    sleep(LOOK_AGAIN).await;
                }
            }
        }
    }
}

/// Whether another process has written.
async fn look(store: &dyn Store, read: &[Arc<Hot>]) -> Result<bool, StoreError> {
    let extents = store.extents(read.iter().map(|hot| hot.thread.clone()).collect()).await?;
    let mut news = false;
    for (hot, extent) in read.iter().zip(extents) {
        news |= hot.is_stored_up_to(extent.head);
    }
    Ok(news)
}

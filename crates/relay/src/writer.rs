//! The one writer of a relay: takes what is pending, stores it in groups, then wakes readers.
//!
//! Failure policy: while the store fails in a way that may pass, the group is kept and tried again for ever, with
//! pauses up to [`Config::retry_max`]; `send` waits meanwhile, `emit` is accepted up to its cap. A failure that cannot
//! pass (a damaged or newer store) ends the writer: what is pending stays unwritten and [`crate::Relay::health`] says
//! why.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use taffrail_mcp_core::{Event, Note};

use crate::{
    Append, Appended, Block, Config, Store, StoreError, clock,
    hot::{Hot, Queue, changed_folds},
    sequencer::{Handover, Pending, compose},
};

const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// What the writer took of one thread, until it is durable.
struct Taken {
    hot: Arc<Hot>,
    pending: Pending,
    blocks: Vec<Block>,
}

/// Runs until the queue is closed and empty.
pub(crate) async fn write(store: Arc<dyn Store>, queue: Arc<Queue>, config: Config) {
    while !queue.finished() {
        let mut group = take_group(&queue, &config);
        if group.is_empty() {
            queue.wake.notified().await;
            continue;
        }
        while !group.is_empty() {
            match store_group(&*store, &queue, &config, group).await {
                Ok(conflicted) => group = conflicted,
                Err(error) => {
                    tracing::error!(%error, "the store has failed for good; nothing more is written");
                    queue.health.send_replace(Some(error));
                    return;
                }
            }
        }
    }
}

fn take_group(queue: &Queue, config: &Config) -> Vec<Taken> {
    let mut group: Vec<Taken> = Vec::new();
    let mut bytes = 0;
    while bytes < config.group_bytes
        && let Some(hot) = queue.pop()
    {
        let (pending, more) = hot.take(config.group_bytes - bytes);
        bytes += pending.bytes();
        if more {
            queue.push(Arc::clone(&hot));
        }
        match group.iter().any(|taken| Arc::ptr_eq(&taken.hot, &hot)) {
            // A thread that filled up again while the group was being taken waits for the next.
            true if pending.count() == 0 => {}
            _ => group.push(Taken { hot, pending, blocks: Vec::new() }),
        }
    }
    group
}

/// Stores a group; gives back what another writer was faster at, numbering moved on.
async fn store_group(
    store: &dyn Store,
    queue: &Queue,
    config: &Config,
    mut group: Vec<Taken>,
) -> Result<Vec<Taken>, StoreError> {
    let appends: Vec<Append> = group
        .iter_mut()
        .map(|taken| {
            let mut numbering = taken.hot.numbering();
            let expected = numbering.head;
            taken.blocks = compose(&taken.pending, &mut numbering, config.block_bytes);
            let runs = changed_folds(&numbering, taken.pending.runs());
            Append { thread: taken.hot.thread.clone(), expected, blocks: taken.blocks.clone(), runs, claim: None }
        })
        .collect();
    // Usually there is one attempt; the copy for another shares the blocks.
    let mut attempts = 0;
    let answers = attempt(queue, config, || {
        attempts += 1;
        store.append(appends.clone())
    })
    .await?;
    let mut conflicted = Vec::new();
    for (taken, answer) in group.into_iter().zip(answers) {
        if answer == Appended::Stored {
            taken.hot.written(&taken.pending, &taken.blocks);
            if attempts > 1 {
                note_retries(queue, &taken, attempts);
            }
        } else {
            catch_up(store, queue, config, &taken).await?;
            conflicted.push(taken);
        }
    }
    Ok(conflicted)
}

/// Tells each log that had to wait for the store how long it did.
fn note_retries(queue: &Queue, taken: &Taken, attempts: u32) {
    let Some(run) = taken.pending.runs().first() else { return };
    let note = Note::warning(format!("store-retry: the store failed and took this after {attempts} attempts"));
    let mut body = Vec::new();
    Event::from(note).encode_body(&mut body);
    let note = Handover { run, ts: clock::now(), bodies: &body, count: 1, lines: 0, line_bytes: 0, folding: &[] };
    if let Ok(true) = taken.hot.accept(note) {
        queue.push(Arc::clone(&taken.hot));
    }
}

/// Another writer has moved the thread on: takes over where it left the log and the runs that we write to.
async fn catch_up(store: &dyn Store, queue: &Queue, config: &Config, taken: &Taken) -> Result<(), StoreError> {
    let thread = &taken.hot.thread;
    let runs: Vec<_> = taken.hot.numbering().folds.keys().cloned().collect();
    loop {
        let before = attempt(queue, config, || store.extent(thread.clone())).await?.head;
        let mut folds = BTreeMap::new();
        for run in &runs {
            if let Some(fold) = attempt(queue, config, || store.run(run.clone())).await? {
                folds.insert(run.clone(), fold);
            }
        }
        // The index belongs to the head only if nothing was written between the two reads.
        if attempt(queue, config, || store.extent(thread.clone())).await?.head == before {
            let mut numbering = taken.hot.numbering();
            numbering.head = before;
            numbering.folds = folds;
            drop(numbering);
            taken.hot.advance(before);
            return Ok(());
        }
    }
}

/// Tries until it works or cannot.
async fn attempt<T, F>(queue: &Queue, config: &Config, mut operation: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut pause = FIRST_PAUSE;
    loop {
        match operation().await {
            Ok(value) => {
                if queue.health.borrow().is_some() {
                    tracing::info!("the store works again");
                    queue.health.send_replace(None);
                }
                return Ok(value);
            }
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, retry_in = ?pause, "the store failed");
                queue.health.send_replace(Some(error));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(config.retry_max);
            }
            Err(error) => return Err(error),
        }
    }
}

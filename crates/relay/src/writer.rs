//! The one writer of a relay: takes what is pending, stores it in groups, then wakes readers.
//!
//! It is a thread, so that no busy runtime keeps events from being stored. While that has nothing to do, who waits for an
//! arrival writes it at once, in its own runtime ([`write_at_once`]): two changes of threads cost more than a commit
//! to memory. Whoever has the [`Queue::turn`] is the writer.
//!
//! Failure policy: while the store fails in a way that may pass, the group is kept and tried again for ever, with
//! pauses up to [`Config::retry_max`]; `send` waits meanwhile, `emit` is accepted up to its cap. A failure that cannot
//! pass (a damaged or newer store) ends the writer: what is pending stays unwritten and [`crate::Relay::health`] says
//! why.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use taffrail_mcp_core::{EventBatch, Note, Seq};
use tokio::{runtime::Handle, sync::OwnedMutexGuard, time::Instant};

use crate::{
    Append, Appended, Block, Config, ReadBlocks, Store, StoreError, clock,
    hot::{Hot, Queue, changed_folds, lock},
    sequencer::{Answered, Handover, Pending, compose},
};

const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// Groups that are written at once before the thread goes on with what is pending.
const AT_ONCE: usize = 4;

/// What the writer took of one thread, until it is durable.
#[derive(Debug)]
pub(crate) struct Taken {
    hot: Arc<Hot>,
    pending: Pending,
    /// Composed after this position.
    expected: Seq,
    blocks: Vec<Block>,
    /// For those who wait for their arrivals, once the blocks are durable.
    answers: Vec<Answered>,
    /// Events of those whose runs go on without them.
    fenced: u64,
    /// Somebody may have stored these very blocks and not have heard so.
    tried: bool,
}

/// Tells those who wait that nothing more is written, also when the writer panics.
struct End<'a>(&'a Queue);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.health.send_if_modified(|health| {
            let news = health.as_ref().is_none_or(StoreError::is_transient);
            if news {
                *health = Some(StoreError::Closed);
            }
            news
        });
    }
}

/// Runs until the queue is closed and empty.
pub(crate) async fn write(store: Arc<dyn Store>, queue: Arc<Queue>, config: Config) {
    let _end = End(&queue);
    loop {
        let turn = queue.turn.lock().await;
        let mut group = std::mem::take(&mut *lock(&queue.left));
        if group.is_empty() && !queue.is_empty() {
            queue.gathering.gather().await;
            group = take_group(&queue, &config);
        }
        if group.is_empty() {
            drop(turn);
            if queue.finished() {
                return;
            }
            queue.wake.notified().await;
            continue;
        }
        while !group.is_empty() {
            if let Err(error) = store_group(&*store, &queue, &config, &mut group).await {
                tracing::error!(%error, "the store has failed for good; nothing more is written");
                queue.health.send_replace(Some(error));
                return;
            }
        }
        // A store that never waits would keep those who share this thread, and wake readers, from ever coming to it.
        tokio::task::yield_now().await;
    }
}

/// Writes what is pending of a thread, and whatever else is, in a task of the caller's runtime, unless somebody writes just
/// now: then the writer's thread is told.
pub(crate) fn write_at_once(store: &Weak<dyn Store>, queue: &Arc<Queue>, config: Config, hot: Arc<Hot>) {
    let (Some(store), Ok(runtime)) = (store.upgrade(), Handle::try_current()) else { return queue.push(hot) };
    let Ok(turn) = Arc::clone(&queue.turn).try_lock_owned() else { return queue.push(hot) };
    if !lock(&queue.left).is_empty() {
        return queue.push(hot);
    }
    queue.push_quietly(hot);
    let mut written = AtOnce { queue: Arc::clone(queue), group: Vec::new(), turn: Some(turn) };
    runtime.spawn(async move {
        for _ in 0..AT_ONCE {
            written.queue.gathering.gather().await;
            written.group = take_group(&written.queue, &config);
            while !written.group.is_empty() {
                let AtOnce { queue, group, .. } = &mut written;
                if store_group(&*store, queue, &config, group).await.is_err() {
                    // The thread tries what is left, and tells of the error.
                    return;
                }
            }
            if written.queue.is_empty() {
                return;
            }
        }
    });
}

/// A turn of somebody who is not the writer's thread. Dropped with a group that is not stored, it leaves that to the thread.
struct AtOnce {
    queue: Arc<Queue>,
    group: Vec<Taken>,
    turn: Option<OwnedMutexGuard<()>>,
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        let left = !self.group.is_empty();
        if left {
            self.group.iter_mut().for_each(|taken| taken.tried = true);
            lock(&self.queue.left).append(&mut self.group);
        }
        self.turn = None;
        // Looked at without the turn: who came meanwhile and did not get it has told the thread.
        if left || !self.queue.is_empty() {
            self.queue.wake.notify_one();
        }
    }
}

fn take_group(queue: &Queue, config: &Config) -> Vec<Taken> {
    let mut group: Vec<Taken> = Vec::new();
    let mut later = Vec::new();
    let mut bytes = 0;
    while bytes < config.group_bytes
        && let Some(hot) = queue.pop()
    {
        if group.iter().any(|taken| Arc::ptr_eq(&taken.hot, &hot)) {
            // It filled up again meanwhile, and waits for the next group. In this one, a conflict could hit its first
            // append and not its second, which would then stand before it.
            later.push(hot);
            continue;
        }
        let (pending, more) = hot.take(config.group_bytes - bytes);
        bytes += pending.bytes();
        if more {
            later.push(Arc::clone(&hot));
        }
        let (expected, blocks, answers) = (Seq::START, Vec::new(), Vec::new());
        group.push(Taken { hot, pending, expected, blocks, answers, fenced: 0, tried: false });
    }
    later.into_iter().for_each(|hot| queue.push(hot));
    queue.gathering.taken(arrivals(&group));
    group
}

fn arrivals(group: &[Taken]) -> usize {
    group.iter().map(|taken| taken.pending.arrivals()).sum()
}

/// Stores a group. What stays in it is what another writer was faster at, numbering moved on.
///
/// Dropped, or failed, it leaves what is not known to be stored in the group.
async fn store_group(
    store: &dyn Store,
    queue: &Queue,
    config: &Config,
    group: &mut Vec<Taken>,
) -> Result<(), StoreError> {
    for taken in group.iter_mut().filter(|taken| !taken.tried || taken.blocks.is_empty()) {
        number(store, queue, config, taken).await?;
    }
    // An arrival of which everything was known leaves nothing to store.
    group.extract_if(.., |taken| taken.blocks.is_empty()).for_each(finish);
    if group.is_empty() {
        return Ok(());
    }
    let appends: Vec<Append> = group
        .iter()
        .map(|taken| {
            let runs = changed_folds(&taken.hot.numbering(), taken.pending.runs());
            let (thread, expected) = (taken.hot.thread.clone(), taken.expected);
            Append { thread, expected, blocks: taken.blocks.clone(), runs, claim: None }
        })
        .collect();
    // Usually there is one attempt; the copy for another shares the blocks.
    let (mut attempts, begun, arrivals) = (0, Instant::now(), arrivals(group));
    let answers = attempt(queue, config, || {
        attempts += 1;
        store.append(appends.clone())
    })
    .await?;
    queue.gathering.written(arrivals, begun.elapsed());
    let mut conflicts = Vec::with_capacity(group.len());
    for (taken, answer) in group.iter().zip(answers) {
        let first = attempts == 1 && !taken.tried;
        conflicts.push(match answer {
            Appended::Conflict { head } if first || !is_stored(store, queue, config, taken).await? => Some(head),
            _ => None,
        });
    }
    for (mut taken, conflict) in std::mem::take(group).into_iter().zip(conflicts) {
        match conflict {
            Some(head) => {
                catch_up(&taken.hot, head);
                taken.tried = false;
                group.push(taken);
            }
            None => {
                if attempts > 1 {
                    note_retries(queue, &taken, attempts);
                }
                finish(taken);
            }
        }
    }
    Ok(())
}

/// Shows readers what is durable, and tells those who wait.
fn finish(mut taken: Taken) {
    if taken.fenced > 0 {
        let (thread, events) = (&taken.hot.thread, taken.fenced);
        tracing::warn!(%thread, events, "events of a run were dropped, because the run was ended or goes on elsewhere");
    }
    // The index has the others; a run that goes on is learned again.
    taken.hot.numbering().folds.retain(|_, fold| !fold.status.rests());
    taken.hot.written(&mut taken.pending, &taken.blocks, taken.answers);
}

/// Gives numbers to what was taken.
async fn number(store: &dyn Store, queue: &Queue, config: &Config, taken: &mut Taken) -> Result<(), StoreError> {
    learn(store, queue, config, taken).await?;
    if !compose_taken(config, taken) {
        return Ok(());
    }
    // Not all can be stored by what is known here; others may have changed that.
    let extent = attempt(queue, config, || store.extent(taken.hot.thread.clone())).await?;
    catch_up(&taken.hot, extent.head);
    learn(store, queue, config, taken).await?;
    compose_taken(config, taken);
    Ok(())
}

/// Composes after what is known; tells whether events are missing, or were dropped, by that.
fn compose_taken(config: &Config, taken: &mut Taken) -> bool {
    let mut numbering = taken.hot.numbering();
    taken.expected = numbering.head;
    let composed = compose(&taken.pending, &mut numbering, config.block_bytes);
    let doubtful = composed.misses_events() || composed.fenced > 0;
    (taken.blocks, taken.answers, taken.fenced) = (composed.blocks, composed.answers, composed.fenced);
    doubtful
}

/// Gets the state of the runs that are written to and not known yet.
///
/// What is read here is never older than the head that the numbering has. Should it be newer, or be changed by somebody
/// else before the append, then the head has moved too, and the append is a conflict.
async fn learn(store: &dyn Store, queue: &Queue, config: &Config, taken: &Taken) -> Result<(), StoreError> {
    for run in taken.pending.runs() {
        if taken.hot.numbering().folds.contains_key(run) {
            continue;
        }
        if let Some(fold) = attempt(queue, config, || store.run(run.clone())).await? {
            taken.hot.numbering().folds.insert(run.clone(), fold);
        }
    }
    Ok(())
}

/// Whether an append was stored by an attempt that was answered with an error.
async fn is_stored(store: &dyn Store, queue: &Queue, config: &Config, taken: &Taken) -> Result<bool, StoreError> {
    let Some(last) = taken.blocks.last() else { return Ok(false) };
    let query = ReadBlocks {
        thread: taken.hot.thread.clone(),
        after: taken.expected,
        until: last.last(),
        run: None,
        max_bytes: usize::MAX,
        backwards: false,
    };
    Ok(attempt(queue, config, || store.read(query.clone())).await? == taken.blocks)
}

/// Tells each log that had to wait for the store how long it did, unless its run has just ended.
fn note_retries(queue: &Queue, taken: &Taken, attempts: u32) {
    let going_on = |run: &&_| taken.hot.numbering().folds.get(*run).is_some_and(|fold| !fold.status.rests());
    let Some(run) = taken.pending.runs().iter().find(going_on) else { return };
    let note = Note::warning(format!("store-retry: the store failed and took this after {attempts} attempts"));
    let mut batch = EventBatch::new();
    batch.push(note.into());
    if taken.hot.remark(Handover::of(run, clock::now(), &batch)) {
        queue.push(Arc::clone(&taken.hot));
    }
}

/// Another writer has moved the thread on, and perhaps changed runs that we write to.
fn catch_up(hot: &Hot, head: Seq) {
    let mut numbering = hot.numbering();
    numbering.head = head;
    numbering.folds.clear();
    drop(numbering);
    hot.advance(head);
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
                let known = queue.health.borrow().as_ref().is_some_and(|known| known.to_string() == error.to_string());
                if !known {
                    tracing::warn!(%error, "the store failed; trying again until it works");
                }
                queue.health.send_replace(Some(error));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(config.retry_max);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;

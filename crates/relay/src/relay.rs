//! The relay: opens publishers, followers and pages on one store.

use std::{
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::Duration,
};

use taffrail_mcp_core::{BoxFuture, Event, EventBatch, Gap, PageMeta, RunFold, RunId, Seq, Start, ThreadId};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use crate::{
    Append, Appended, Claim, Config, Delivery, Extent, Filter, Follower, ListRuns, Page, PageQuery, Publisher,
    ReadBlocks, ReadWindow, RelayError, Store, StoreError, Window, clock,
    follower::ArcStore,
    hot::{Hot, Queue, changed_folds, lock},
    page::Filling,
    readers,
    sequencer::{Handover, Numbering, Pending, compose},
    threads::{self, Threads},
    writer,
};

/// What a record takes, generously: some 250 bytes are usual.
const RECORD_BYTES: usize = 512;

/// What a page holds at most, about.
fn page_bytes(query: &PageQuery) -> usize {
    query.max_bytes.min(query.limit.saturating_mul(RECORD_BYTES)).max(1)
}

type Look = BoxFuture<'static, Result<Option<Window>, StoreError>>;

/// A store with one writer, and any number of publishers and readers.
///
/// A clone is the same relay. When the last clone is dropped, the writer stores what was accepted and ends;
/// [`Relay::close`] waits for that.
#[derive(Debug, Clone)]
pub struct Relay {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: ArcStore,
    config: Config,
    queue: Arc<Queue>,
    threads: Arc<Threads>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// Tells the readers when the writer ends, even by a panic.
struct Closing(Arc<Threads>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Relay {
    /// Starts a relay. The writer is a thread of its own, so that no busy runtime keeps events from being stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] when the system gives no thread.
    pub fn start(store: Arc<dyn Store>, config: Config) -> Result<Self, StoreError> {
        let queue = Arc::new(Queue::new());
        let unavailable = |what: &str, source: std::io::Error| StoreError::Unavailable {
            what: what.to_owned(),
            source: Arc::new(source),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| unavailable("the writer's timer could not be made", error))?;
        let (pacer, due) = mpsc::unbounded_channel();
        let threads = Arc::new(Threads::new(config, pacer));
        let write = writer::write(Arc::clone(&store), Arc::clone(&queue), config);
        let watch = threads::watch(Arc::clone(&store), Arc::clone(&threads));
        let pace = readers::pace(due);
        let closing = Closing(Arc::clone(&threads));
        let writer = std::thread::Builder::new()
            .name("taffrail-writer".into())
            .spawn(move || {
                let _closing = closing;
                runtime.block_on(async {
                    tokio::select! {
                        biased;
                        () = write => {}
                        () = async { tokio::join!(watch, pace); std::future::pending().await } => {}
                    }
                });
            })
            .map_err(|error| unavailable("the writer's thread could not be started", error))?;
        let inner = Inner { store: ArcStore(store), config, queue, threads, writer: Mutex::new(Some(writer)) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Stores what was accepted and ends the writer. Publishers must not be used after.
    pub async fn close(&self) {
        self.inner.queue.close();
        let writer = lock(&self.inner.writer).take();
        if let Some(writer) = writer {
            // Joining blocks, so it happens where blocking is allowed; a writer that panicked has said so itself.
            let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store.0
    }

    /// Why nothing is being stored at the moment; `None` while all is well.
    pub fn health(&self) -> watch::Receiver<Option<StoreError>> {
        self.inner.queue.health.subscribe()
    }

    async fn hot(&self, thread: &ThreadId) -> Result<Arc<Hot>, RelayError> {
        if let Some(hot) = self.inner.threads.get(thread) {
            return Ok(hot);
        }
        let head = self.store().extent(thread.clone()).await?.head;
        Ok(self.inner.threads.at(thread, head))
    }

    /// Opens a thread for writing events of a run; neither needs to exist before.
    ///
    /// # Errors
    ///
    /// [`RelayError::Store`] when the store cannot be read.
    pub async fn publisher(&self, thread: &ThreadId, run: &RunId) -> Result<Publisher, RelayError> {
        let hot = self.hot(thread).await?;
        let store = (Arc::downgrade(self.store()), self.inner.config);
        Ok(Publisher::new(run.clone(), hot, Arc::clone(&self.inner.queue), store))
    }

    /// Appends a few events of a run at once, durable on return; with a claim, only if that is not taken yet.
    ///
    /// For what happens outside a run's own process: starting it, deciding an approval, asking for its end. Dropping
    /// the future leaves either all or none of it stored.
    ///
    /// # Errors
    ///
    /// [`RelayError::Claimed`] with the value of the claim that came first; nothing was stored then.
    pub async fn commit(
        &self,
        thread: &ThreadId,
        run: &RunId,
        events: &[Event],
        claim: Option<Claim>,
    ) -> Result<RunFold, RelayError> {
        let fold = self.commit_if(thread, run, events, claim, |_| true).await?;
        Ok(fold.unwrap_or_else(|| RunFold::new(run.clone(), thread.clone())))
    }

    /// As [`Relay::commit`], but only if the run's state right before the events is as wanted; `None` when it is not, and
    /// nothing was stored. A run without records has no state.
    ///
    /// # Errors
    ///
    /// As [`Relay::commit`].
    pub async fn commit_if(
        &self,
        thread: &ThreadId,
        run: &RunId,
        events: &[Event],
        claim: Option<Claim>,
        wanted: impl Fn(Option<&RunFold>) -> bool + Send,
    ) -> Result<Option<RunFold>, RelayError> {
        let mut batch = EventBatch::new();
        events.iter().cloned().for_each(|event| batch.push(event));
        let mut pending = Pending::default();
        pending.push(Handover::of(run, clock::now(), &batch));
        let hot = self.inner.threads.get(thread);
        // Not in turn with the writer of this process: beside a flood, trying again takes a millisecond, and a turn as
        // long as the writer's group, some hundred.
        loop {
            // The head first: if the run's state is newer than it, the numbers below conflict.
            let head = self.store().extent(thread.clone()).await?.head;
            let fold = self.store().run(run.clone()).await?;
            if !wanted(fold.as_ref()) {
                return Ok(None);
            }
            let folds = fold.into_iter().map(|fold| (run.clone(), fold)).collect();
            let ts = hot.as_ref().map(|hot| hot.numbering().ts).unwrap_or_default();
            let mut numbering = Numbering { thread: thread.clone(), head, ts, folds };
            let blocks = compose(&pending, &mut numbering, self.inner.config.block_bytes).blocks;
            let runs = changed_folds(&numbering, pending.runs());
            let fold = runs.first().cloned().unwrap_or_else(|| RunFold::new(run.clone(), thread.clone()));
            let append =
                Append { thread: thread.clone(), expected: head, blocks: blocks.clone(), runs, claim: claim.clone() };
            match self.store().append(vec![append]).await?.pop() {
                Some(Appended::Claimed { value }) => return Err(RelayError::Claimed { value }),
                Some(Appended::Conflict { .. }) => {}
                Some(Appended::Stored) | None => {
                    // One that came into being meanwhile has readers too.
                    if let Some(hot) = self.inner.threads.get(thread) {
                        hot.committed(numbering.ts, &blocks);
                    }
                    return Ok(Some(fold));
                }
            }
        }
    }

    /// A run's state as of its last durable record.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn run(&self, run: &RunId) -> Result<Option<RunFold>, RelayError> {
        Ok(self.store().run(run.clone()).await?)
    }

    /// Runs, newest first.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn runs(&self, query: ListRuns) -> Result<Vec<RunFold>, RelayError> {
        Ok(self.store().runs(query).await?)
    }

    /// How far a thread goes.
    ///
    /// # Errors
    ///
    /// When the store cannot be read.
    pub async fn extent(&self, thread: &ThreadId) -> Result<Extent, RelayError> {
        Ok(self.store().extent(thread.clone()).await?)
    }

    /// Follows a thread, or one run of it.
    ///
    /// # Errors
    ///
    /// [`RelayError::CursorAhead`] when `start` is past the end, and when the store cannot be read.
    pub async fn follow(&self, thread: &ThreadId, run: Option<RunId>, start: Start) -> Result<Follower, RelayError> {
        Ok(self.open(thread, run, start).await?.0)
    }

    async fn open(
        &self,
        thread: &ThreadId,
        run: Option<RunId>,
        start: Start,
    ) -> Result<(Follower, Extent), RelayError> {
        let hot = self.hot(thread).await?;
        let mut follower = Follower::new(Arc::clone(&hot), self.inner.store.clone(), Seq::START, run);
        self.inner.threads.reader_came();
        // Read once somebody waits for the thread, so that what another process writes in between is looked for.
        let extent = self.store().extent(thread.clone()).await?;
        hot.is_stored_up_to(extent.head);
        let after = match start {
            Start::Beginning => Seq::START,
            Start::After(after) if after > extent.head => {
                return Err(RelayError::CursorAhead { thread: thread.clone(), after, head: extent.head });
            }
            Start::After(after) => after,
            Start::Live => extent.head,
        };
        follower.begin_after(after);
        Ok((follower, extent))
    }

    /// Reads a window of a thread, waiting up to [`PageQuery::wait`] for a first match.
    ///
    /// # Errors
    ///
    /// [`RelayError::CursorAhead`] when the start is past the end, and when the store cannot be read.
    pub async fn page(&self, thread: &ThreadId, query: &PageQuery) -> Result<Page, RelayError> {
        if let Some(tail) = query.tail {
            return self.tail(thread, query, tail).await;
        }
        let run = query.filter.run.clone();
        let (mut follower, extent) = self.open(thread, run, query.start).await?;
        if !query.filter.looks_inside() {
            // A page that takes what comes needs no more than it holds; the rest of a delivery would be thrown away.
            follower.take_about(page_bytes(query));
        }
        let deadline = Instant::now() + query.wait;
        let mut filling = Filling::new(query, follower.position(), self.inner.config.scan_bytes);
        let mut gap: Option<Gap> = None;
        while !filling.full() {
            let delivery = match follower.try_next().await? {
                Some(delivery) => delivery,
                None if !filling.lines.is_empty() || gap.is_some() || query.wait == Duration::ZERO => break,
                None if self.at_end(query).await? => break,
                None => match tokio::time::timeout_at(deadline, follower.next()).await {
                    Ok(delivery) => delivery?,
                    Err(_) => break,
                },
            };
            match delivery {
                Delivery::Gap(told) => {
                    filling.next = told.to;
                    gap = Some(told);
                }
                Delivery::Blocks(blocks) => blocks.iter().for_each(|block| filling.take(block)),
            }
        }
        if !filling.full() {
            // The end was reached, over blocks of other runs perhaps.
            filling.next = filling.next.max(follower.position());
        }
        let head = follower.head();
        let done = self.done(query, filling.next).await?;
        let meta = PageMeta {
            next: filling.next,
            head,
            first: extent.first,
            done,
            matched: filling.lines.len() as u64,
            scanned: filling.scanned,
        };
        Ok(Page { gap, lines: filling.lines, meta })
    }

    /// Reads a window of a run's log as [`Relay::page`] does, with the run's state as of that moment; `None` for an
    /// unknown run. One question to a store that answers so ([`Store::window`]).
    ///
    /// # Errors
    ///
    /// As [`Relay::page`].
    pub async fn run_page(&self, run: &RunId, query: &PageQuery) -> Result<Option<(RunFold, Page)>, RelayError> {
        let query = &PageQuery { filter: Filter { run: Some(run.clone()), ..query.filter.clone() }, ..query.clone() };
        if let Some(look) = self.look(run, query) {
            match look.await? {
                None => return Ok(None),
                Some(window) => {
                    if let Some(page) = self.page_of(&window, query)? {
                        return Ok(Some((window.fold, page)));
                    }
                }
            }
        }
        let Some(fold) = self.run(run).await? else { return Ok(None) };
        let page = self.page(&fold.thread, query).await?;
        Ok(Some((fold, page)))
    }

    /// One look at all that a page needs, where that can be had and suffices.
    fn look(&self, run: &RunId, query: &PageQuery) -> Option<Look> {
        let after = match query.start {
            Start::Beginning => Seq::START,
            Start::After(after) => after,
            Start::Live => return None,
        };
        if query.tail.is_some() || query.filter.looks_inside() {
            return None;
        }
        self.store().window(ReadWindow { run: run.clone(), after, max_bytes: page_bytes(query) })
    }

    /// The page of a window; `None` when there is more to look at or to wait for.
    fn page_of(&self, window: &Window, query: &PageQuery) -> Result<Option<Page>, RelayError> {
        let Window { fold, extent, blocks } = window;
        let after = if let Start::After(after) = query.start { after } else { Seq::START };
        // The blocks are not older than the extent.
        let head = blocks.last().map_or(extent.head, |block| block.last().max(extent.head));
        if after > head {
            return Err(RelayError::CursorAhead { thread: fold.thread.clone(), after, head });
        }
        let gap = Gap::retention(fold.thread.clone(), after, extent.first);
        let after = gap.as_ref().map_or(after, |gap| gap.to);
        let mut filling = Filling::new(query, after, self.inner.config.scan_bytes);
        blocks.iter().filter_map(|block| block.after(after)).for_each(|block| filling.take(&block));
        let all = blocks.iter().map(|block| block.bytes.len()).sum::<usize>() < page_bytes(query);
        if !filling.full() {
            let waits = filling.lines.is_empty() && gap.is_none() && query.wait > Duration::ZERO;
            if !all || (waits && !fold.status.ended()) {
                return Ok(None);
            }
            // The end was reached, over blocks of other runs perhaps.
            filling.next = filling.next.max(head);
        }
        let meta = PageMeta {
            next: filling.next,
            head,
            first: extent.first,
            done: fold.status.ended() && fold.last <= filling.next,
            matched: filling.lines.len() as u64,
            scanned: filling.scanned,
        };
        Ok(Some(Page { gap, lines: filling.lines, meta }))
    }

    /// Whether the run of a query has finished, so that waiting for more of it is in vain.
    async fn at_end(&self, query: &PageQuery) -> Result<bool, RelayError> {
        let Some(run) = &query.filter.run else { return Ok(false) };
        Ok(self.run(run).await?.is_some_and(|fold| fold.status.ended()))
    }

    /// Whether a page up to `next` reaches the end of a finished run.
    async fn done(&self, query: &PageQuery, next: Seq) -> Result<bool, RelayError> {
        let Some(run) = &query.filter.run else { return Ok(false) };
        Ok(self.run(run).await?.is_some_and(|fold| fold.status.ended() && fold.last <= next))
    }

    /// The last `tail` matching records, looked for from the head backwards.
    async fn tail(&self, thread: &ThreadId, query: &PageQuery, tail: usize) -> Result<Page, RelayError> {
        let extent = self.extent(thread).await?;
        let floor = match query.start {
            Start::Beginning => Seq::START,
            Start::After(after) => after,
            Start::Live => extent.head,
        };
        let wanted = tail.min(query.limit);
        let mut lines = Vec::new();
        let (mut until, mut bytes, mut scanned, mut scanned_bytes) = (extent.head, 0, 0, 0);
        'reading: while until > floor && lines.len() < wanted && scanned_bytes < self.inner.config.scan_bytes {
            let blocks = self
                .store()
                .read(ReadBlocks {
                    thread: thread.clone(),
                    after: floor,
                    until,
                    run: query.filter.run.clone(),
                    max_bytes: query.max_bytes,
                    backwards: true,
                })
                .await?;
            let Some(first) = blocks.first() else { break };
            let reached = Seq(first.first.0.saturating_sub(1)).max(floor);
            for block in blocks.iter().rev() {
                let block_lines: Vec<_> = block.lines().zip(block.first.0..).collect();
                for (line, seq) in block_lines.into_iter().rev() {
                    if seq > until.0 || seq <= floor.0 {
                        continue;
                    }
                    scanned += 1;
                    scanned_bytes += line.len();
                    if query.filter.passes(&line) {
                        bytes += line.len();
                        if bytes > query.max_bytes && !lines.is_empty() {
                            break 'reading;
                        }
                        lines.push(line);
                        if lines.len() == wanted {
                            break 'reading;
                        }
                    }
                }
            }
            until = reached;
        }
        lines.reverse();
        let meta = PageMeta {
            next: extent.head,
            head: extent.head,
            first: extent.first,
            done: self.at_end(query).await?,
            matched: lines.len() as u64,
            scanned,
        };
        Ok(Page { gap: None, lines, meta })
    }
}

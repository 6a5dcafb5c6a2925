//! The way out: an ordered, bounded buffer and the one thread that writes it.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A send is done when no more than this is queued in front of its end. Enough to keep the writer busy
/// while senders wake up, little enough that a stalled client holds no memory worth speaking of.
const WINDOW: u64 = 1 << 20;

/// Past this nothing more is read from the client, since each request read becomes a response that has to
/// be kept. Larger than [`WINDOW`], so that a client which writes a burst before it reads is served.
const STOP_READING: u64 = 8 << 20;

/// Bytes handed to one `write`; progress is told after each.
const PIECE: usize = 256 * 1024;

/// Queues lines for the output. Cheap to clone; order is that of the calls to [`Outbox::queue`].
#[derive(Debug, Clone)]
pub struct Outbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pending: Mutex<Pending>,
    more: Condvar,
    /// Bytes written since the start; `u64::MAX` once the output is broken.
    written: watch::Sender<u64>,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    /// Bytes queued since the start.
    queued: u64,
    /// Nothing more may be queued; the writer ends when it has written what there is.
    closing: bool,
}

/// A place in the output: what was queued, as seen by the one who waits for it.
#[derive(Debug, Clone, Copy)]
struct Mark(u64);

impl Outbox {
    /// Starts the writer thread. `closed` is cancelled when the output breaks.
    pub(super) fn spawn(output: impl Write + Send + 'static, closed: CancellationToken) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            pending: Mutex::default(),
            more: Condvar::new(),
            written: watch::Sender::new(0),
            closed,
        });
        let writer = Arc::clone(&shared);
        thread::Builder::new().name("stdio-write".to_owned()).spawn(move || writer.write_all_queued(output))?;
        Ok(Self(shared))
    }

    /// Queues `line`, which must end in a newline, and returns at once; the future resolves when there
    /// is room for the next. Dropping it does not take the line back.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` when the output is closed or nobody reads it any more.
    pub fn queue(&self, line: &[u8]) -> impl Future<Output = io::Result<()>> + Send + use<> {
        let mark = self.0.append(line);
        let shared = Arc::clone(&self.0);
        async move {
            let Mark(end) = mark?;
            shared.until_written(end.saturating_sub(WINDOW)).await
        }
    }

    /// Waits until little enough is queued that reading another request is fair.
    pub(super) async fn room_to_read(&self) {
        let end = self.0.lock().queued;
        // A broken output is no reason to stop reading: the end of input follows.
        let _ = self.0.until_written(end.saturating_sub(STOP_READING)).await;
    }

    /// Takes nothing more and waits, at most `limit`, until all that is queued is written.
    pub(crate) async fn close(&self, limit: Duration) -> io::Result<()> {
        let end = {
            let mut pending = self.0.lock();
            pending.closing = true;
            pending.queued
        };
        self.0.more.notify_one();
        match tokio::time::timeout(limit, self.0.until_written(end)).await {
            Ok(done) => done,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// Lets the writer end once it has written what there is.
    pub(super) fn retire(&self) {
        self.0.lock().closing = true;
        self.0.more.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pending> {
        // No code that could panic runs under this lock.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, line: &[u8]) -> io::Result<Mark> {
        let mut pending = self.lock();
        if pending.closing {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        pending.bytes.extend_from_slice(line);
        pending.queued += line.len() as u64;
        let mark = Mark(pending.queued);
        drop(pending);
        self.more.notify_one();
        Ok(mark)
    }

    async fn until_written(&self, position: u64) -> io::Result<()> {
        if *self.written.borrow() >= position {
            return self.fine();
        }
        let mut written = self.written.subscribe();
        // The sender lives in `self`, so this cannot fail.
        let _ = written.wait_for(|written| *written >= position).await;
        self.fine()
    }

    fn fine(&self) -> io::Result<()> {
        if *self.written.borrow() == u64::MAX {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }

    /// The writer thread: takes all that is queued, writes it in one go, again.
    fn write_all_queued(&self, mut output: impl Write) {
        let mut batch = Vec::new();
        while self.take(&mut batch) {
            for piece in batch.chunks(PIECE) {
                if let Err(error) = write_patiently(&mut output, piece) {
                    tracing::debug!(%error, "the output is gone");
                    return self.break_down();
                }
                self.written.send_modify(|written| *written += piece.len() as u64);
            }
            batch.clear();
            // One large burst must not pin its memory for the life of the process.
            batch.shrink_to(PIECE);
        }
    }

    /// Swaps what is queued into `batch`; false when there will be no more.
    fn take(&self, batch: &mut Vec<u8>) -> bool {
        let mut pending = self.lock();
        loop {
            if !pending.bytes.is_empty() {
                mem::swap(&mut pending.bytes, batch);
                return true;
            }
            if pending.closing {
                return false;
            }
            pending = self.more.wait(pending).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn break_down(&self) {
        {
            let mut pending = self.lock();
            pending.closing = true;
            pending.bytes = Vec::new();
        }
        self.written.send_replace(u64::MAX);
        self.closed.cancel();
    }
}

/// `write_all` and `flush`, also on a descriptor that a parent has made non-blocking.
fn write_patiently(output: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(2)),
                _ => return Err(error),
            },
        }
    }
    output.flush()
}

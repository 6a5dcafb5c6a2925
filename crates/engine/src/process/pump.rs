//! Reading one stream of a process into a sink.

use std::{io, time::Instant};

use taffrail_mcp_core::{EventBatch, EventSink, LogLine, Message, Stream};
use tokio::{net::unix::pipe::Receiver, time::sleep_until};
use tokio_util::sync::CancellationToken;

use super::{Command, OutputBudget, clip::Clip, clock, lines::Lines, outlet::Outlet, tail::Tail};

/// Read at a time, a quarter of an enlarged pipe: the writer fills the rest meanwhile, and 13 M short lines a second of
/// processor time leave no system call worth saving (`benches/capture.rs`).
const READ_BYTES: usize = 256 * 1024;

/// A batch is sent when it holds this much, so that with one more line it is about 256 KiB.
const BATCH_BYTES: usize = 248 * 1024;

/// What a pipe is made to hold once its writer has shown that it fills it: the most that is allowed without privileges.
/// Quiet processes keep the default, as the sum per user is limited too (pipe(7)).
const PIPE_BYTES: usize = 1024 * 1024;

/// Reads one stream to its end, a batch for each read, waiting for the sink after each: a slow sink fills the pipe, and
/// that slows the process.
pub(crate) struct Pump<'a> {
    from: Receiver,
    to: Outlet<'a>,
    cut: Cut<'a>,
    batch: EventBatch,
    tail: Option<Tail>,
    enlarged: bool,
}

/// Everything between bytes and batch; it does no I/O.
struct Cut<'a> {
    command: &'a Command,
    stream: Stream,
    budget: &'a OutputBudget,
    lines: Lines,
    clip: Clip,
}

impl<'a> Pump<'a> {
    /// Reads `stream` from `from`. The end of standard output is kept.
    pub(crate) fn new(
        from: Receiver,
        stream: Stream,
        command: &'a Command,
        sink: &'a dyn EventSink,
        budget: &'a OutputBudget,
    ) -> Self {
        Self {
            from,
            to: Outlet::new(sink),
            cut: Cut { command, stream, budget, lines: Lines::default(), clip: Clip::default() },
            batch: EventBatch::new(),
            tail: (stream == Stream::Stdout).then(Tail::default),
            enlarged: false,
        }
    }

    /// Reads and sends until the end, or, from when `stop` is cancelled, what the pipe holds at that time. Afterwards
    /// everything was sent. Gives the pipe back when it was not at its end.
    pub(crate) async fn run(mut self, stop: &CancellationToken) -> (Option<Tail>, Option<Receiver>) {
        let mut buffer = vec![0; READ_BYTES];
        let at_end = self.read_to_end(&mut buffer, stop).await || self.read_what_is_there(&mut buffer).await;
        self.cut.end(&mut self.batch);
        self.to.send(&mut self.batch).await;
        (self.tail, (!at_end).then_some(self.from))
    }

    /// Whether the end was reached; else it was told to stop.
    async fn read_to_end(&mut self, buffer: &mut [u8], stop: &CancellationToken) -> bool {
        while !stop.is_cancelled() {
            match self.from.try_read(buffer) {
                Ok(0) => return true,
                Ok(count) => {
                    self.take(&buffer[..count]).await;
                    self.after_read(count, buffer.len()).await;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let told = self.cut.clip.due();
                    tokio::select! {
                        ready = self.from.readable() => if ready.is_err() { return true },
                        () = stop.cancelled() => {}
                        () = sleep_until(told.unwrap_or_else(Instant::now).into()), if told.is_some() => {
                            self.take(&[]).await;
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    tracing::warn!(%error, stream = self.cut.stream.as_str(), "reading a process failed");
                    return true;
                }
            }
        }
        false
    }

    /// Reads what the pipe holds now: no more than its size, as somebody may go on writing. Whether that was the end.
    ///
    /// Asks the pipe itself: the runtime may not have noticed yet that there is something to read.
    async fn read_what_is_there(&mut self, buffer: &mut [u8]) -> bool {
        let mut left = PIPE_BYTES;
        while left > 0 {
            match rustix::io::read(&self.from, &mut *buffer) {
                Ok(0) => return true,
                Ok(count) => {
                    self.take(&buffer[..count]).await;
                    left = left.saturating_sub(count);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        false
    }

    async fn after_read(&mut self, count: usize, room: usize) {
        if !self.enlarged && count >= READ_BYTES / 8 {
            self.enlarged = true;
            // Refused where the user's pipes hold too much already; then it stays as it is.
            #[cfg(target_os = "linux")]
            let _ = rustix::pipe::fcntl_setpipe_size(&self.from, PIPE_BYTES);
        }
        if count == room {
            // A flood never waits, so it has to step aside for the other stream, time limits and cancels.
            tokio::task::yield_now().await;
        }
    }

    async fn take(&mut self, mut bytes: &[u8]) {
        if let Some(tail) = &mut self.tail {
            tail.push(bytes);
        }
        loop {
            let all = self.cut.fill(&mut bytes, &mut self.batch);
            self.to.send(&mut self.batch).await;
            if all {
                break;
            }
        }
    }
}

impl Cut<'_> {
    /// Moves lines from `bytes` to the batch until the batch is full; whether `bytes` is used up.
    fn fill(&mut self, bytes: &mut &[u8], batch: &mut EventBatch) -> bool {
        let Self { command, stream, budget, lines, clip } = self;
        while batch.size() < BATCH_BYTES {
            let Some(piece) = lines.next(bytes) else {
                if clip.due().is_some()
                    && let Some(clipped) = clip.take_due(Instant::now())
                {
                    batch.push(clipped.into());
                }
                return true;
            };
            keep(&piece.line(&command.state, command.index, *stream), command, budget, clip, batch);
        }
        false
    }

    /// The end of the stream: the open line, and what is not yet told of clipped output.
    fn end(&mut self, batch: &mut EventBatch) {
        let Self { command, stream, budget, lines, clip } = self;
        while let Some(piece) = lines.end() {
            keep(&piece.line(&command.state, command.index, *stream), command, budget, clip, batch);
        }
        if let Some(clipped) = clip.take() {
            batch.push(clipped.into());
        }
    }
}

fn keep(line: &LogLine<'_>, command: &Command, budget: &OutputBudget, clip: &mut Clip, batch: &mut EventBatch) {
    if !budget.admit(line.bytes()) {
        clip.count(line, Instant::now(), clock::now());
    } else if command.emit_message && line.stream == Stream::Stdout {
        let mut text = String::from_utf8_lossy(line.data).into_owned();
        if line.eol && !line.more {
            text.push('\n');
        }
        batch.push(Message { role: "assistant".to_owned(), text, delta: true }.into());
    } else {
        batch.push_line(line);
    }
}

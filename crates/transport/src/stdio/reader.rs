//! The way in: the one thread that reads, splits and parses.

use std::{
    io::{self, Read},
    thread,
    time::Duration,
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    lines::{Line, Lines},
    parse::{Parsed, parse, too_long},
};

/// Longest line that is taken. rmcp's HTTP side takes bodies of the same size.
pub(super) const MAX_LINE: usize = 4 << 20;

/// Messages read ahead of the service. A handful hides the thread hop; each may hold [`MAX_LINE`] bytes.
const READ_AHEAD: usize = 32;

/// The service no longer takes messages.
struct Unwanted;

/// Starts the reader thread. `closed` is cancelled as soon as the input ends or fails, before what was
/// read is worked off.
pub(super) fn spawn(
    input: impl Read + Send + 'static,
    closed: CancellationToken,
) -> io::Result<mpsc::Receiver<Parsed>> {
    let (parsed, received) = mpsc::channel(READ_AHEAD);
    let reader = Reader { parsed };
    thread::Builder::new().name("stdio-read".to_owned()).spawn(move || {
        reader.run(input, &closed);
        closed.cancel();
    })?;
    Ok(received)
}

/// Answers to rubbish go the same way as messages: so they keep their place among the answers, and a
/// flood of rubbish waits, like a flood of requests, for the client to read.
struct Reader {
    parsed: mpsc::Sender<Parsed>,
}

impl Reader {
    fn run(&self, mut input: impl Read, closed: &CancellationToken) {
        let mut lines = Lines::new(MAX_LINE);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    let read = buffer.get(..count).unwrap_or_default();
                    if lines.push(read, |line| self.line(&line)).is_err() {
                        return;
                    }
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    // A parent may have made the descriptor non-blocking.
                    io::ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(2)),
                    _ => {
                        tracing::debug!(%error, "the input is gone");
                        break;
                    }
                },
            }
        }
        closed.cancel();
        if let Some(last) = lines.finish() {
            // Wanted or not, it is the last.
            let _ = self.line(&Line::Whole(&last));
        }
    }

    fn line(&self, line: &Line<'_>) -> Result<(), Unwanted> {
        let parsed = match line {
            Line::Whole(line) => parse(line),
            Line::TooLong => Parsed::Refuse(too_long(MAX_LINE)),
        };
        match parsed {
            Parsed::Ignore => Ok(()),
            parsed => self.parsed.blocking_send(parsed).map_err(|_| Unwanted),
        }
    }
}

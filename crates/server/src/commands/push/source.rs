//! The events of a run's own log, as they are sent.

use std::{collections::VecDeque, num::NonZeroU64, time::Duration};

use taffrail_mcp_core::{Event, LineHead, Record, Seq, Start, ThreadId};
use taffrail_relay::{Delivery, Follower, Relay, RelayError};
use taffrail_transport::client::{Batch, Source};

/// Actors of requests that came from the server begin with this. There they are in the log already.
pub(super) const FROM_SERVER: &str = "server:";

/// A log that cannot be read is looked at again after this time.
const PAUSE: Duration = Duration::from_secs(1);
/// One whose relay has ended.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Reads a run's own log.
///
/// All but two kinds of its records are sent, numbered from 1: the opening `run-start`, in whose place the server writes
/// one, and requests to cancel that came from the server. What is sent depends on nothing but the log, so that a number
/// means the same event whoever reads.
#[derive(Debug)]
pub(super) struct LocalLog {
    relay: Relay,
    thread: ThreadId,
    follower: Option<Follower>,
    /// Number of the first of `events`, or of the next that comes.
    first: u64,
    events: VecDeque<Outgoing>,
    /// Reading may begin here: events from this number on come after this position.
    anchor: (u64, Seq),
}

/// One event on its way out.
#[derive(Debug)]
struct Outgoing {
    seq: Seq,
    line: Vec<u8>,
    last: bool,
}

impl LocalLog {
    pub(super) fn new(relay: Relay, thread: ThreadId) -> Self {
        let anchor = (1, Seq::START);
        Self { relay, thread, follower: None, first: 1, events: VecDeque::new(), anchor }
    }

    /// Drops what was sent, and goes back where something is to be sent again.
    fn seek(&mut self, from: u64) {
        while self.first < from
            && let Some(sent) = self.events.pop_front()
        {
            self.first += 1;
            self.anchor = (self.first, sent.seq);
        }
        if from < self.first {
            if from < self.anchor.0 {
                self.anchor = (1, Seq::START);
            }
            self.follower = None;
            self.events.clear();
            self.first = self.anchor.0;
        }
    }

    async fn follower(&mut self) -> Result<&mut Follower, RelayError> {
        match &mut self.follower {
            Some(follower) => Ok(follower),
            none => Ok(none.insert(self.relay.follow(&self.thread, None, Start::After(self.anchor.1)).await?)),
        }
    }

    fn take(&mut self, delivery: Delivery) {
        // This log is trimmed by nobody.
        let Delivery::Blocks(blocks) = delivery else { return };
        for block in blocks {
            self.events.extend(block.lines().filter_map(|line| outgoing(&line)));
        }
    }

    /// Fills up what is in hand, from the event with this number on.
    async fn fill(&mut self, from: u64, most_bytes: usize) -> Result<(), RelayError> {
        loop {
            let skip = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX);
            let bytes: usize = self.events.iter().skip(skip).map(|event| event.line.len()).sum();
            if bytes >= most_bytes {
                return Ok(());
            }
            match self.follower().await?.try_next().await? {
                Some(delivery) => self.take(delivery),
                None => return Ok(()),
            }
            self.seek(from);
        }
    }
}

impl Source for LocalLog {
    async fn read(&mut self, from: NonZeroU64, most_bytes: usize) -> Batch {
        let from = from.get();
        self.seek(from);
        if let Err(error) = self.fill(from, most_bytes).await {
            tracing::warn!(%error, "the run's own log cannot be read; trying again");
        }
        self.seek(from);
        let mut batch = Batch::default();
        let mut lines = Vec::new();
        if self.first == from {
            for event in &self.events {
                if batch.count > 0 && lines.len() + event.line.len() > most_bytes {
                    break;
                }
                lines.extend_from_slice(&event.line);
                batch.count += 1;
                batch.last = event.last;
            }
        }
        batch.lines = lines.into();
        batch
    }

    async fn more(&mut self) {
        let next = match self.follower().await {
            Ok(follower) => follower.next().await,
            Err(error) => Err(error),
        };
        match next {
            Ok(delivery) => self.take(delivery),
            // The process ends. Who looks at its run then writes a last record beside the relay.
            Err(RelayError::Closed) => {
                self.follower = None;
                tokio::time::sleep(LOOK_EVERY).await;
            }
            Err(error) => {
                tracing::debug!(%error, "the run's own log cannot be followed");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// A record as it is sent: without the fields that the server gives it, but with its time.
fn outgoing(line: &[u8]) -> Option<Outgoing> {
    let Some(head) = LineHead::parse(line) else {
        tracing::error!("a record of the run's own log cannot be read, and is not sent");
        return None;
    };
    let is_opening = head.seq == Seq::START.next() && head.kind == "run-start";
    if is_opening || (head.kind == "cancel-requested" && is_from_server(line)) {
        return None;
    }
    let mut event = Vec::with_capacity(line.len());
    event.extend_from_slice(b"{\"ts\":\"");
    event.extend_from_slice(head.ts.as_bytes());
    event.extend_from_slice(b"\",");
    event.extend_from_slice(line.get(head.body..)?);
    if !event.ends_with(b"\n") {
        event.push(b'\n');
    }
    Some(Outgoing { seq: head.seq, line: event, last: head.kind == "run-finished" })
}

fn is_from_server(line: &[u8]) -> bool {
    match Record::parse(line).map(|record| record.event) {
        Ok(Event::CancelRequested(request)) => request.actor.starts_with(FROM_SERVER),
        _ => false,
    }
}

#[cfg(test)]
mod tests;

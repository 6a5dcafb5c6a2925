//! Sends a run's records to a client as log notifications, while a call waits.
//!
//! A forwarder is a position in the log, not a queue beside it: one task pulls a record, sends it, and
//! pulls the next. A client that stalls therefore costs nothing, and nothing is ever dropped: what was
//! not sent is still in the log, under the seq that the last notification carried.

use std::{fmt::Write as _, io, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream::BoxStream};
use rmcp::{Peer, RoleServer};
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    mcp::{
        backend::{BackendError, Followed, Record},
        level::Level,
    },
    stdio::Outbox,
};

/// How long a response waits for a client that takes no more events.
pub const FLUSH_LIMIT: Duration = Duration::from_millis(500);

/// How long a response waits for a client that still takes events, only more slowly than they came. With
/// the default wait of a call it stays below 30 s, where the strictest hosts give a call up.
pub const FLUSH_MOST: Duration = Duration::from_secs(3);

/// The `_meta` key that carries a record's seq.
pub const SEQ_KEY: &str = "io.taffrail/seq";

/// Where notifications go.
#[derive(Debug, Clone)]
pub enum Destination {
    /// Our own stdio transport: the record's bytes go out as they are in the log.
    Outbox(Outbox),
    /// Any other rmcp transport: the record is parsed, and its fields keep their values but not their order.
    Peer(Peer<RoleServer>),
}

/// A running forwarder. Dropping it stops it.
#[derive(Debug)]
pub struct Forwarder {
    task: JoinHandle<()>,
    /// The last seq that was sent or needed no sending.
    position: watch::Receiver<u64>,
    stop: DropGuard,
}

impl Forwarder {
    /// Starts the task that sends what `records` yields, where `level` or above, under `logger`. It ends
    /// with the stream, when the destination is gone, or when `cancel` is cancelled.
    pub fn start(
        records: BoxStream<'static, Result<Followed, BackendError>>,
        destination: Destination,
        level: Level,
        logger: Arc<str>,
        cancel: &CancellationToken,
    ) -> Self {
        let (reached, position) = watch::channel(0);
        let stop = cancel.child_token();
        let mut task = Task { records, destination, level, logger, stop: stop.clone() };
        let token = stop.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                // A record and a stop at once: stop.
                biased;
                () = token.cancelled() => {}
                () = task.run(&reached) => {}
            }
        });
        Self { task, position, stop: stop.drop_guard() }
    }

    /// Waits until everything up to `head` has been sent, as long as the client takes it, at most
    /// [`FLUSH_LIMIT`] without progress and [`FLUSH_MOST`] in all; then stops: nothing is sent once this
    /// returns.
    pub async fn finish(mut self, head: u64) {
        if !timeout(FLUSH_MOST, self.flushed(head)).await.unwrap_or(false) {
            tracing::debug!(head, "the client has not taken all events; they are in the log");
        }
        self.stop.disarm().cancel();
        // It can only have been cancelled with the runtime.
        let _ = self.task.await;
    }

    async fn flushed(&mut self, head: u64) -> bool {
        while *self.position.borrow_and_update() < head {
            match timeout(FLUSH_LIMIT, self.position.changed()).await {
                Ok(Ok(())) => {}
                // The task has ended: there is nothing more, or nobody to send it to.
                Ok(Err(_)) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

struct Task {
    records: BoxStream<'static, Result<Followed, BackendError>>,
    destination: Destination,
    level: Level,
    logger: Arc<str>,
    stop: CancellationToken,
}

impl Task {
    async fn run(&mut self, reached: &watch::Sender<u64>) {
        while let Some(item) = self.records.next().await {
            // One poll may take many records.
            if self.stop.is_cancelled() {
                return;
            }
            let seq = match item {
                Ok(Followed::Reached(seq)) => seq,
                Ok(Followed::Record(record)) => {
                    let level = Level::of_record(&record.json);
                    if level >= self.level && self.send(level, &record).await.is_err() {
                        return;
                    }
                    record.seq
                }
                Err(error) => {
                    // The tools' results tell the caller; a live view just ends.
                    tracing::debug!(%error, "following a run ended");
                    return;
                }
            };
            reached.send_replace(seq);
        }
    }

    async fn send(&mut self, level: Level, record: &Record) -> io::Result<()> {
        match &self.destination {
            Destination::Outbox(outbox) => {
                let line = notification(level, &self.logger, record);
                outbox.queue(line.as_bytes()).await
            }
            Destination::Peer(peer) => peer_send(peer, level, &self.logger, record).await,
        }
    }
}

/// The notification as a line, around the record's own bytes.
fn notification(level: Level, logger: &str, record: &Record) -> String {
    let Record { seq, json } = record;
    let logger = serde_json::Value::from(logger);
    let mut line = String::with_capacity(json.len() + 160);
    // Writing to a string cannot fail.
    let _ = writeln!(
        line,
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"_meta":{{"{SEQ_KEY}":{seq}}},"level":"{}","logger":{logger},"data":{json}}}}}"#,
        level.as_str()
    );
    line
}

/// The same notification through rmcp's types.
async fn peer_send(peer: &Peer<RoleServer>, level: Level, logger: &str, record: &Record) -> io::Result<()> {
    let line = notification(level, logger, record);
    let notification: rmcp::model::JsonRpcNotification<rmcp::model::ServerNotification> = serde_json::from_str(&line)?;
    peer.send_notification(notification.notification).await.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_holds_the_records_own_bytes() {
        let record = Record { seq: 7, json: r#"{"seq":7,"z":1.0,"a":1e2}"#.into() };
        assert_eq!(
            notification(Level::Debug, "taffrail.event", &record),
            concat!(
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"_meta":{"io.taffrail/seq":7},"#,
                r#""level":"debug","logger":"taffrail.event","data":{"seq":7,"z":1.0,"a":1e2}}}"#,
                "\n"
            )
        );
    }
}

//! The blocks of a run, from a relay.

use taffrail_mcp_core::{BoxFuture, RunId, Seq, Start, ThreadId};
use taffrail_relay::{Block, Follower, Relay, RelayError};

use crate::{BlockSource, Delivery};

/// Follows one run in a relay until it has ended. A suspended run has not ended.
#[derive(Debug)]
pub struct RelaySource {
    relay: Relay,
    thread: ThreadId,
    run: RunId,
    after: Seq,
    follower: Option<Follower>,
    /// The run may have ended: nothing was asked yet, its end went by, or it has ended with more to come.
    may_have_ended: bool,
}

impl RelaySource {
    /// The records of `run` in `thread`.
    pub fn new(relay: Relay, thread: ThreadId, run: RunId) -> Self {
        Self { relay, thread, run, after: Seq::START, follower: None, may_have_ended: true }
    }

    async fn deliver(&mut self) -> Result<Delivery, RelayError> {
        let mut follower = match self.follower.take() {
            Some(follower) => follower,
            None => {
                let run = Some(self.run.clone());
                self.relay.follow(&self.thread, run, Start::After(self.after)).await?
            }
        };
        // Taken out while it is asked, so that a dropped or failed call goes on from `after` with a new one.
        let delivery = match follower.try_next().await? {
            Some(delivery) => delivery,
            None => {
                if self.may_have_ended {
                    match self.last_of_ended().await? {
                        Some(last) if self.after >= last => return Ok(Delivery::End),
                        last => self.may_have_ended = last.is_some(),
                    }
                }
                follower.next().await?
            }
        };
        self.after = follower.position();
        self.follower = Some(follower);
        Ok(match delivery {
            taffrail_relay::Delivery::Gap(gap) => {
                // The end may be in it.
                self.may_have_ended = true;
                Delivery::Gap { to: gap.to }
            }
            taffrail_relay::Delivery::Blocks(blocks) => {
                self.may_have_ended |= blocks.iter().any(may_end_the_run);
                Delivery::Blocks(blocks)
            }
        })
    }

    /// The last record of the run, if it has ended.
    async fn last_of_ended(&self) -> Result<Option<Seq>, RelayError> {
        let fold = self.relay.run(&self.run).await?;
        Ok(fold.filter(|fold| fold.status.ended()).map(|fold| fold.last))
    }
}

/// Whether a block holds a `run-finished`; or the same text in some unknown event, which costs one question.
fn may_end_the_run(block: &Block) -> bool {
    memchr::memmem::find(&block.bytes, b"\"type\":\"run-finished\"").is_some()
}

impl BlockSource for RelaySource {
    type Error = RelayError;

    fn start_at(&mut self, after: Seq) {
        self.after = after;
        self.follower = None;
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Delivery, RelayError>> {
        Box::pin(async move {
            match self.deliver().await {
                Err(RelayError::Closed) => Ok(Delivery::End),
                delivery => delivery,
            }
        })
    }
}

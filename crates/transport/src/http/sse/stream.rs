//! The driver of a stream: asks its follower, says now and then that it is alive, and ends when it should.

use std::{
    future::ready,
    pin::{Pin, pin},
    time::Duration,
};

use taffrail_mcp_core::RunId;
use taffrail_relay::{Delivery, Follower};
use taffrail_runs::RunsError;
use tokio::time::{Instant, Sleep, sleep};

use super::{body::Out, frame, looks::Look, session::Session};
use crate::http::app::{App, OpenStream};

/// When the store could not be read, it is asked again after this time. The stream stays open meanwhile: a browser that
/// is turned away once does not come back.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// When the server ends, clients come back within this time after the usual wait, each at its own moment.
const SPREAD: Duration = Duration::from_secs(5);

/// When a stream is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Until {
    /// Never.
    Never,
    /// When the run is over.
    Ended(RunId),
    /// When the run is over, or waits for somebody.
    Rests(RunId),
}

/// All that a stream is made of.
pub(super) struct Stream {
    pub(super) app: App,
    pub(super) follower: Follower,
    pub(super) session: Session,
    pub(super) until: Until,
    /// Held while it is open.
    pub(super) place: OpenStream,
    pub(super) look: Look,
}

impl Stream {
    /// Makes the frames of the stream until it is over.
    pub(super) async fn make(mut self, out: Out) {
        let closing = self.app.closing();
        let mut closed = pin!(closing.cancelled());
        let (keep_alive, retry) = (self.app.config().keep_alive, self.app.config().retry);
        // Set again only when it fires: a stream that has much to say does not touch it.
        let mut silence = pin!(sleep(keep_alive));
        let mut spoken = Instant::now();
        let _look = &self.look;
        out.push(frame::retry(retry));
        // Set while the store cannot be read.
        let mut pause: Option<Pin<Box<Sleep>>> = None;
        loop {
            out.taken().await;
            if closing.is_cancelled() {
                break;
            }
            let mut failed = None;
            if self.session.rests() && pause.is_none() {
                // Boxed, because it is rare and large: a stream that waits is as large as all that it may do.
                match Box::pin(self.end()).await {
                    Ok(End::Over(end)) => {
                        out.push(end);
                        return;
                    }
                    Ok(End::GoesOn) => self.session.goes_on(),
                    Ok(End::MoreComes) => {}
                    Err(error) => failed = Some(error),
                }
            }
            tokio::select! {
                // What is there goes first: the others need not be asked then.
                biased;
                delivery = self.follower.next(), if failed.is_none() && pause.is_none() => match delivery {
                    Ok(delivery) => {
                        if self.deliver(&delivery, &out) {
                            spoken = Instant::now();
                        }
                    }
                    Err(error) => failed = Some(error.into()),
                },
                () = &mut closed => break,
                () = &mut silence => {
                    if spoken.elapsed() >= keep_alive {
                        out.push(self.session.silence(self.follower.position()));
                        spoken = Instant::now();
                    }
                    silence.as_mut().reset(spoken + keep_alive);
                }
                () = over(&mut pause), if pause.is_some() => pause = None,
                () = ready(()), if failed.is_some() => {}
            }
            if let Some(error) = failed {
                tracing::debug!(thread = %self.follower.thread(), %error, "a stream cannot go on for now");
                if !error.is_unavailable() {
                    break;
                }
                pause = Some(Box::pin(sleep(ASK_AGAIN)));
            }
        }
        out.push(frame::retry(retry + spread()));
    }

    /// Adds the frames of a delivery; whether there are any.
    fn deliver(&mut self, delivery: &Delivery, out: &Out) -> bool {
        let mut any = false;
        self.session.deliver(delivery, self.app.frames(), &mut |frame| {
            any = true;
            out.push(frame);
        });
        self.place.behind(self.follower.head().0.saturating_sub(self.follower.position().0));
        any
    }

    /// A record says that the run came to rest: whether that ends the stream.
    async fn end(&self) -> Result<End, RunsError> {
        let (run, rests) = match &self.until {
            Until::Never => return Ok(End::GoesOn),
            Until::Ended(run) => (run, false),
            Until::Rests(run) => (run, true),
        };
        let service = self.app.service();
        let fold = service.fold(run).await?;
        let over = if rests { fold.status.rests() } else { fold.status.ended() };
        if !over {
            return Ok(End::GoesOn);
        }
        if fold.last > self.follower.position() {
            return Ok(End::MoreComes);
        }
        let mut snapshot = service.snapshot(run).await?;
        if !self.app.config().shared_fs {
            snapshot.spool = None;
        }
        // A snapshot has only fields that become JSON, and JSON made so has no line ends.
        let snapshot = serde_json::to_string(&snapshot).unwrap_or_default();
        Ok(End::Over(frame::end(fold.last, &snapshot)))
    }
}

/// How a run stands that came to rest.
enum End {
    /// It is over, and this is the frame that says so.
    Over(bytes::Bytes),
    /// It goes on, by now or as far as this stream is concerned.
    GoesOn,
    /// It is over, and more of it is to be read first.
    MoreComes,
}

/// Resolves when the pause is over.
async fn over(pause: &mut Option<Pin<Box<Sleep>>>) {
    if let Some(pause) = pause {
        pause.await;
    }
}

/// A part of [`SPREAD`], another one each time.
fn spread() -> Duration {
    SPREAD.mul_f64(f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 256.0)
}

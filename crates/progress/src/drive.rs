//! The driver: sleeps, sends, and decides nothing.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
    time::{sleep_until, timeout},
};

use crate::{Config, Next, Outlet, ProgressSink, ProgressSource, ProgressToken, Source, outlet::channel};

/// The progress of one request, sent by a tokio task.
///
/// Whoever answers the request awaits [`finish`](Self::finish) before the response goes out: the last progress is sent,
/// and nothing after it. Dropping it without that, after a panic or a cancel, ends the stream at once: nothing more is
/// sent. Without a token there is no task, and nothing to send.
pub struct RequestProgress {
    source: Source,
    driver: Option<Driver>,
}

struct Driver {
    phase: watch::Sender<Phase>,
    task: Mutex<Option<JoinHandle<()>>>,
    flush_limit: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Finishing,
}

impl fmt::Debug for RequestProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestProgress").field("sends", &self.driver.is_some()).finish_non_exhaustive()
    }
}

impl RequestProgress {
    /// Starts to send progress under `token` to `sink`.
    ///
    /// # Panics
    ///
    /// With a token, outside a tokio runtime that has timers.
    pub fn start(token: Option<ProgressToken>, sink: Arc<dyn ProgressSink>, config: Config) -> Self {
        let Some(token) = token else { return Self { source: Source::silent(), driver: None } };
        let notify = Arc::new(Notify::new());
        let wake = Arc::clone(&notify);
        let (source, outlet) = channel(token, config, move || wake.notify_one());
        let (phase, phases) = watch::channel(Phase::Running);
        let task = tokio::spawn(run(outlet, sink, notify, phases));
        let driver = Driver { phase, task: Mutex::new(Some(task)), flush_limit: config.flush_limit };
        Self { source, driver: Some(driver) }
    }

    /// Sends what has not been sent yet, and ends the stream: nothing is sent once this returns.
    ///
    /// Waits for a client that does not take it, at most [`Config::flush_limit`]; then the last progress is lost, and the
    /// response is not held up. May be called again, and does nothing then. When the future is dropped the stream ends
    /// with the `RequestProgress`.
    pub async fn finish(&self) {
        let Some(driver) = &self.driver else { return };
        let Some(mut task) = driver.take() else { return };
        let _aborted_if_dropped = AbortOnDrop(task.abort_handle());
        driver.phase.send_replace(Phase::Finishing);
        if timeout(driver.flush_limit, &mut task).await.is_err() {
            task.abort();
            // It has been aborted, or has ended in the last moment: either is an end.
            let _ = task.await;
        }
    }

    /// Ends the stream at once: nothing more is sent, not even what was held back. For requests that were cancelled.
    pub fn stop(&self) {
        if let Some(task) = self.driver.as_ref().and_then(Driver::take) {
            task.abort();
        }
    }
}

impl Driver {
    fn take(&self) -> Option<JoinHandle<()>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for RequestProgress {
    fn drop(&mut self) {
        self.stop();
    }
}

impl ProgressSource for RequestProgress {
    fn progress_source(&self) -> Source {
        self.source.clone()
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn run(mut outlet: Outlet, sink: Arc<dyn ProgressSink>, notify: Arc<Notify>, mut phases: watch::Receiver<Phase>) {
    loop {
        match outlet.poll(now()) {
            Next::Send(notification) => {
                if sink.send(notification).await.is_err() {
                    return;
                }
            }
            Next::Pause(until) => {
                tokio::select! {
                    () = sleep_until(until.into()) => {}
                    _ = phases.wait_for(|phase| *phase == Phase::Finishing) => {}
                }
            }
            Next::Sleep(until) => {
                let beat = async {
                    match until {
                        Some(until) => sleep_until(until.into()).await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = notify.notified() => {}
                    () = beat => {}
                    _ = phases.wait_for(|phase| *phase == Phase::Finishing) => {}
                }
            }
        }
        if *phases.borrow() == Phase::Finishing {
            break;
        }
    }
    if let Some(last) = outlet.finish() {
        // Nobody is there to be told of a failure.
        let _ = sink.send(last).await;
    }
}

/// The one place that looks at the clock: tokio's, which tests can set.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

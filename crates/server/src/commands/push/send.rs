//! Sending one run to its server, and what the server wants meanwhile.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use anyhow::Result;
use taffrail_runs::{Cancel, Service};
use taffrail_transport::client::{Client, ClientError, Push, PushRun, Pushed, StartRun, StartWork};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    folder::Folder,
    format::Job,
    source::{FROM_SERVER, LocalLog},
};

/// One run on its way to its server.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) folder: Folder,
    pub(super) job: Job,
    pub(super) service: Service,
    pub(super) signals: Signals,
}

/// Between the sending and who waits for it. A clone is the same.
#[derive(Debug, Clone)]
pub(super) struct Signals {
    /// There is little time from now on.
    pub(super) hurry: CancellationToken,
    /// Events that have arrived.
    pub(super) acknowledged: Arc<AtomicU64>,
    /// Records that are not sent, because they are there.
    pub(super) skipped: Arc<AtomicU64>,
    /// For people.
    pub(super) remarks: mpsc::UnboundedSender<String>,
    /// What is said after why the server cannot be reached; `None` when somebody else says that.
    pub(super) when_lost: Option<&'static str>,
}

impl Signals {
    pub(super) fn new(remarks: mpsc::UnboundedSender<String>, when_lost: Option<&'static str>) -> Self {
        // The opening `run-start` is the server's own.
        let skipped = Arc::new(AtomicU64::new(1));
        Self { hurry: CancellationToken::new(), acknowledged: Arc::default(), skipped, remarks, when_lost }
    }

    pub(super) fn say(&self, text: impl Into<String>) {
        // Who does not listen any more has ended.
        let _ = self.remarks.send(text.into());
    }
}

/// How the sending ended.
#[derive(Debug)]
pub(super) enum Sent {
    /// Everything is there.
    Whole,
    /// The server takes no more of it, from this one or at all.
    Refused(ClientError),
}

impl Sending {
    /// Sends until everything is there, or the server refuses for good. Dropping the future leaves the rest to whoever
    /// sends next.
    pub(super) async fn send(&mut self, client: &Client) -> Result<Sent> {
        let mut push = self.push(client)?;
        let mut hurried = false;
        loop {
            let item = tokio::select! {
                item = push.next() => item,
                () = self.signals.hurry.cancelled(), if !hurried => {
                    hurried = true;
                    push.hurry();
                    continue;
                }
            };
            match item {
                Some(Ok(Pushed::Made(snapshot))) => {
                    self.job.made = Some(snapshot.run);
                    self.folder.save(&self.job);
                }
                Some(Ok(Pushed::Acknowledged(number))) => {
                    self.signals.acknowledged.store(number, Ordering::Relaxed);
                    self.folder.acknowledge(number);
                }
                Some(Ok(Pushed::Cancel(request))) => self.cancel(request.actor, request.reason, request.kill),
                Some(Ok(Pushed::Lost { why })) => {
                    if let Some(then) = self.signals.when_lost {
                        self.signals.say(format!("{why}; {then}"));
                    }
                }
                Some(Ok(Pushed::Restored)) => {
                    if self.signals.when_lost.is_some() {
                        self.signals.say(format!("{} takes records again", self.job.url));
                    }
                }
                Some(Ok(Pushed::Done)) | None => return Ok(Sent::Whole),
                Some(Err(error)) => return Ok(Sent::Refused(self.refused(error))),
            }
        }
    }

    fn push(&self, client: &Client) -> Result<Push<LocalLog>> {
        let job = &self.job;
        let run = PushRun {
            thread: job.thread.clone(),
            start: StartRun {
                work: StartWork::External { name: taken(&job.name) },
                idempotency_key: Some(job.key()),
                run: Some(job.run.clone()),
            },
            made: job.made.clone(),
            producer: job.producer()?,
            acknowledged: self.folder.acknowledged(),
        };
        self.signals.acknowledged.store(run.acknowledged, Ordering::Relaxed);
        Ok(client.push(run, LocalLog::new(self.service.relay().clone(), job.thread.clone())))
    }

    /// Ends the run here, as somebody asked there.
    fn cancel(&self, actor: String, reason: Option<String>, kill: bool) {
        let request = Cancel { run: self.job.run.clone(), reason, actor: format!("{FROM_SERVER}{actor}"), kill };
        let (service, skipped) = (self.service.clone(), Arc::clone(&self.signals.skipped));
        // In a task of its own: the run's last records are sent meanwhile.
        tokio::spawn(async move {
            skipped.fetch_add(1, Ordering::Relaxed);
            if let Err(error) = service.cancel(request).await {
                tracing::error!(%error, "the run could not be cancelled");
            }
        });
    }

    /// Nothing more of the run is taken there.
    fn refused(&mut self, error: ClientError) -> ClientError {
        let refusal = error.refusal().filter(|refusal| matches!(refusal.code.as_str(), "run-over" | "no-run"));
        if let Some(refusal) = refusal {
            // No other token, and no other time, will change that.
            self.job.given_up = Some(refusal.to_string());
            self.folder.save(&self.job);
            if refusal.text("run_status") == Some("cancelled") {
                self.cancel("taffrail".to_owned(), Some("the server has cancelled the run".to_owned()), false);
            }
        }
        error
    }

    /// Closes the run's log, and removes its folder when everything is there.
    pub(super) async fn close(self, whole: bool) {
        self.service.close().await;
        if whole {
            self.folder.remove();
        }
    }
}

/// A name as servers take it: 1 to 200 characters that can be shown. Here a run may be called anything.
fn taken(name: &str) -> String {
    let name: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
    if name.is_empty() { "exec".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_fit() {
        let long = "é".repeat(300);
        for (name, expected) in [("make", "make"), ("a\nb", "ab"), ("\t", "exec"), ("", "exec"), (&long, &long[..400])]
        {
            assert_eq!(taken(name), expected);
        }
    }
}

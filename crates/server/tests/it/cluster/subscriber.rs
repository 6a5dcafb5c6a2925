//! Those who follow threads and runs, through the balancer.

use std::{
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use taffrail_mcp_core::{RunId, RunStatus, Seq, Start, ThreadId};
use taffrail_transport::client::{Client, Follow, Followed};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{fleet::Fleet, verdict::Truth};

/// Everybody has to see so many new records to be said to go on.
const GOES_ON: u64 = 10;

/// Every so many records a restless subscriber connects anew.
const RESTLESS: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Thread(ThreadId),
    Run(RunId),
}

/// What one subscriber has got.
#[derive(Debug)]
pub(super) struct Log {
    pub(super) number: usize,
    pub(super) target: Target,
    pub(super) records: Vec<(Seq, Bytes)>,
    pub(super) end: Option<RunStatus>,
    /// What it got that it should not have: a gap, an error, silence.
    pub(super) trouble: Option<String>,
}

#[derive(Default)]
pub(super) struct Subscribers {
    all: Vec<Subscriber>,
}

struct Subscriber {
    target: Target,
    position: Arc<AtomicU64>,
    /// The last position that it has to see; 0 while nobody knows.
    until: watch::Sender<u64>,
    task: JoinHandle<Log>,
}

impl Subscribers {
    /// Begins to follow, with a client of its own. Every third one is restless.
    pub(super) fn follow(&mut self, fleet: &Fleet<'_>, target: Target) {
        let (until, watched) = watch::channel(0);
        let position = Arc::new(AtomicU64::new(0));
        let number = self.all.len();
        let log = Log { number, target: target.clone(), records: Vec::new(), end: None, trouble: None };
        let task = tokio::spawn(follow(fleet.client(), log, Arc::clone(&position), watched));
        self.all.push(Subscriber { target, position, until, task });
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Waits until all subscribers of threads have seen what anybody has seen now, and more.
    pub(super) async fn all_go_on(&self, within: Duration) -> Result<(), String> {
        let deadline = Instant::now() + within;
        let of_threads = || self.all.iter().filter(|one| matches!(one.target, Target::Thread(_)));
        let seen = |one: &Subscriber| one.position.load(Relaxed);
        let furthest = |target: &Target| of_threads().filter(|one| one.target == *target).map(seen).max().unwrap_or(0);
        let wanted: Vec<_> = of_threads().map(|one| (one, furthest(&one.target) + GOES_ON)).collect();
        while wanted.iter().any(|(one, wanted)| seen(one) < *wanted) {
            if Instant::now() >= deadline {
                let mut said = format!("not everybody goes on within {within:?}:");
                for (n, (one, wanted)) in wanted.iter().enumerate() {
                    let _ = write!(said, " {n}: {}/{wanted}", seen(one));
                }
                return Err(said);
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Lets them read to the ends of their logs, and gives what they have.
    pub(super) async fn finish(self, truth: &Truth, within: Duration) -> Vec<Log> {
        let deadline = Instant::now() + within;
        let mut logs = Vec::new();
        for Subscriber { target, until, task, .. } in self.all {
            if let Target::Thread(thread) = &target {
                until.send_replace(truth.head(thread).0);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let log = match timeout(left, task).await {
                Ok(log) => log.unwrap(),
                Err(_) => {
                    let trouble = Some(format!("it has not come to its end within {within:?}"));
                    Log { number: logs.len(), target, records: Vec::new(), end: None, trouble }
                }
            };
            logs.push(log);
        }
        logs
    }
}

async fn follow(client: Client, mut log: Log, position: Arc<AtomicU64>, mut until: watch::Receiver<u64>) -> Log {
    let begin = |start: Start| -> Follow {
        match &log.target {
            Target::Thread(thread) => client.follow(thread.clone(), start),
            Target::Run(run) => client.follow(run.clone(), start),
        }
    };
    let mut follow = begin(Start::Beginning);
    loop {
        let wanted = *until.borrow_and_update();
        if wanted > 0 && position.load(Relaxed) >= wanted {
            return log;
        }
        let item = tokio::select! {
            item = follow.next() => item,
            Ok(()) = until.changed() => continue,
        };
        match item {
            Some(Ok(Followed::Record { seq, line })) => {
                log.records.push((seq, line));
                position.store(seq.0, Relaxed);
                if log.number.is_multiple_of(3) && log.records.len().is_multiple_of(RESTLESS) {
                    follow = begin(Start::After(seq));
                }
            }
            Some(Ok(Followed::Connection(_))) => {}
            Some(Ok(Followed::End(snapshot))) => {
                log.end = Some(snapshot.status);
                return log;
            }
            other => {
                log.trouble = Some(format!("it got {other:?}"));
                return log;
            }
        }
    }
}

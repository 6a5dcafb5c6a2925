//! Looking after the runs that streams follow.
//!
//! A run whose process was killed, or whose producer is gone, ends by being looked at: nothing tells of it. One task looks
//! for all streams; a stream costs an entry in a map.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use taffrail_mcp_core::{RunId, RunStatus, ThreadId};
use taffrail_relay::ListRuns;
use taffrail_runs::{RunsError, Service};

/// How often each is looked at, while they are few.
const EVERY: Duration = Duration::from_secs(1);

/// Most that are looked at in that time. A look takes some 50 µs, so that any number of idle streams costs a hundredth
/// of a processor; up to a thousand runs end within 5 s.
const MOST: usize = 200;

/// What a stream follows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Followed {
    /// A run.
    Run(RunId),
    /// All runs of a thread.
    Thread(ThreadId),
}

/// What all streams follow. A clone is the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Looks(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// With the number of streams that follow it.
    followed: BTreeMap<Followed, usize>,
    /// What was looked at last.
    last: Option<Followed>,
    running: bool,
}

/// Keeps what a stream follows being looked after, until dropped.
#[derive(Debug)]
pub(super) struct Look {
    looks: Looks,
    followed: Followed,
}

impl Drop for Look {
    fn drop(&mut self) {
        let mut state = self.looks.state();
        if let Some(streams) = state.followed.get_mut(&self.followed) {
            *streams -= 1;
            if *streams == 0 {
                state.followed.remove(&self.followed);
            }
        }
    }
}

impl Looks {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks after what a stream follows from now on.
    pub(super) fn follow(&self, service: &Service, followed: Followed) -> Look {
        let mut state = self.state();
        *state.followed.entry(followed.clone()).or_default() += 1;
        if !std::mem::replace(&mut state.running, true) {
            tokio::spawn(look(service.clone(), self.clone()));
        }
        Look { looks: self.clone(), followed }
    }

    /// What to look at now, in turn; nothing when nothing is followed, and then the task ends.
    fn next(&self) -> Vec<Followed> {
        let mut state = self.state();
        let after = state.last.take().map_or(Bound::Unbounded, Bound::Excluded);
        let rest = state.followed.range((after.clone(), Bound::Unbounded));
        let begin = state.followed.iter().take_while(|(followed, _)| match &after {
            Bound::Excluded(last) => *followed <= last,
            _ => false,
        });
        let due: Vec<Followed> = rest.chain(begin).map(|(followed, _)| followed.clone()).take(MOST).collect();
        state.last = due.last().cloned();
        state.running = !due.is_empty();
        due
    }
}

async fn look(service: Service, looks: Looks) {
    loop {
        tokio::time::sleep(EVERY).await;
        let due = looks.next();
        if due.is_empty() {
            return;
        }
        for followed in due {
            if let Err(error) = look_at(&service, &followed).await {
                tracing::debug!(?followed, %error, "could not look whether a run goes on");
            }
        }
    }
}

/// Looking is all: a run that nobody hosts is ended by it, and its end comes to the streams like any record.
async fn look_at(service: &Service, followed: &Followed) -> Result<(), RunsError> {
    match followed {
        Followed::Run(run) => _ = service.fold(run).await?,
        Followed::Thread(thread) => {
            let running = ListRuns {
                status: vec![RunStatus::Running, RunStatus::Suspended],
                thread: Some(thread.clone()),
                ..ListRuns::default()
            };
            for fold in service.relay().runs(running).await? {
                service.fold(&fold.run).await?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> Followed {
        Followed::Run(RunId::new(name).unwrap())
    }

    #[test]
    fn all_are_looked_at_in_turn() {
        let looks = Looks::default();
        for number in 0..MOST + 50 {
            looks.state().followed.insert(run(&format!("r{number:04}")), 1);
        }
        let first = looks.next();
        assert_eq!((first.len(), &first[0]), (MOST, &run("r0000")));
        let second = looks.next();
        assert_eq!((second.len(), &second[0], &second[50]), (MOST, &run("r0200"), &run("r0000")));
        looks.state().followed.retain(|followed, _| *followed == run("r0003"));
        assert_eq!(looks.next(), [run("r0003")]);
        assert_eq!(looks.next(), [run("r0003")]);
        looks.state().followed.clear();
        assert!(looks.next().is_empty() && !looks.state().running);
    }

    #[test]
    fn one_entry_for_all_streams_of_a_run() {
        let looks = Looks::default();
        looks.state().followed.insert(run("r"), 2);
        let look = || Look { looks: looks.clone(), followed: run("r") };
        drop(look());
        assert_eq!(looks.state().followed.len(), 1);
        drop(look());
        assert!(looks.state().followed.is_empty());
    }
}

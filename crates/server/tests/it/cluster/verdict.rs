//! What the logs are, read page by page, and whether that is what it has to be.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;
use taffrail_mcp_core::{RunId, RunStatus, Seq, Snapshot, Start, ThreadId};
use taffrail_transport::client::{Client, Entry, EventQuery, ListRuns};

use super::{
    subscriber::{Log, Target},
    worker::Ended,
};

/// The records of a page.
pub(super) fn records(entries: &[Entry]) -> impl Iterator<Item = Value> + '_ {
    entries.iter().map(|entry| match entry {
        Entry::Record { line, .. } => serde_json::from_slice(line).unwrap(),
        Entry::Gap(gap) => panic!("nothing was removed, and yet there is {gap:?}"),
    })
}

/// All that the servers have.
pub(super) struct Truth {
    runs: Vec<(Snapshot, Vec<(Seq, Bytes)>)>,
    threads: BTreeMap<ThreadId, Vec<(Seq, Bytes)>>,
}

impl Truth {
    pub(super) async fn read(client: &Client, threads: &[ThreadId]) -> Self {
        let mut truth = Self { runs: Vec::new(), threads: BTreeMap::new() };
        for thread in threads {
            let list = ListRuns { thread: Some(thread.clone()), limit: Some(100), ..ListRuns::default() };
            let mut whole = Vec::new();
            for snapshot in client.runs(&list).await.unwrap() {
                let log = read(client, &snapshot.run).await;
                whole.extend(log.iter().cloned());
                truth.runs.push((snapshot, log));
            }
            whole.sort_by_key(|(seq, _)| *seq);
            truth.threads.insert(thread.clone(), whole);
        }
        truth
    }

    pub(super) fn head(&self, thread: &ThreadId) -> Seq {
        self.threads[thread].last().map_or(Seq::START, |(seq, _)| *seq)
    }

    pub(super) fn records(&self) -> usize {
        self.threads.values().map(Vec::len).sum()
    }

    /// Whether the logs are dense, all runs over, and every line there once. What is wrong is told.
    pub(super) fn check(&self, killed: &[Ended], ended: &[Ended]) -> Vec<String> {
        let mut problems = Vec::new();
        for (thread, whole) in &self.threads {
            for (n, (seq, _)) in (1..).zip(whole) {
                if seq.0 != n {
                    problems.push(format!("{thread} has {seq} where {n} should be"));
                    break;
                }
            }
        }
        let killed = killed.iter().map(|worker| (worker, RunStatus::Interrupted));
        let workers: Vec<_> = killed.chain(ended.iter().map(|worker| (worker, RunStatus::Done))).collect();
        if self.runs.len() != workers.len() {
            problems.push(format!("there are {} runs of {} workers", self.runs.len(), workers.len()));
        }
        for (worker, status) in workers {
            let runs: Vec<_> = self.runs.iter().filter(|(run, _)| run.playbook == worker.name).collect();
            let [(snapshot, log)] = runs[..] else {
                problems.push(format!("{} has {} runs: {}", worker.name, runs.len(), worker.said));
                continue;
            };
            if snapshot.status != status {
                problems.push(format!("{} is {:?} and not {status:?}", worker.name, snapshot.status));
            }
            problems.extend(
                check_run(worker, status, log).map(|problem| format!("{}: {problem}\n{}", worker.name, worker.said)),
            );
        }
        problems
    }

    /// Whether subscribers have got exactly what pages give.
    pub(super) fn compare(&self, logs: &[Log]) -> Vec<String> {
        let mut problems = Vec::new();
        for Log { number, target, records, end, trouble } in logs {
            let (whole, status) = match target {
                Target::Thread(thread) => (&self.threads[thread], None),
                Target::Run(run) => {
                    let (snapshot, log) = self.runs.iter().find(|(snapshot, _)| snapshot.run == *run).unwrap();
                    (log, Some(snapshot.status))
                }
            };
            if trouble.is_some() || *end != status {
                problems.push(format!("subscriber {number} of {target:?}: {trouble:?}, its end is {end:?}"));
            }
            if records != whole {
                let at = records.iter().zip(whole).position(|(got, right)| got != right);
                let at = at.unwrap_or(records.len().min(whole.len()));
                problems.push(format!(
                    "subscriber {number} of {target:?} has {} of {} records, and at {at} {:?} and not {:?}",
                    records.len(),
                    whole.len(),
                    records.get(at),
                    whole.get(at)
                ));
            }
        }
        problems
    }
}

/// A run's whole log.
async fn read(client: &Client, run: &RunId) -> Vec<(Seq, Bytes)> {
    let (mut log, mut query) = (Vec::new(), EventQuery { limit: Some(2000), ..EventQuery::default() });
    loop {
        let page = client.events(run, &query).await.unwrap();
        let empty = page.entries.is_empty();
        log.extend(page.entries.into_iter().map(|entry| match entry {
            Entry::Record { seq, line } => (seq, line),
            Entry::Gap(gap) => panic!("nothing was removed, and yet there is {gap:?}"),
        }));
        if page.done || empty {
            return log;
        }
        query.start = Start::After(page.next);
    }
}

/// One run: its lines, and how its producer's numbers went.
fn check_run(worker: &Ended, status: RunStatus, log: &[(Seq, Bytes)]) -> Option<String> {
    let log: Vec<Value> = log.iter().map(|(_, line)| serde_json::from_slice(line).unwrap()).collect();
    let lines = log.iter().filter(|record| record["type"] == "log");
    let mut count = 0;
    for line in lines {
        count += 1;
        if line["text"] != format!("{} {count}", worker.name) {
            return Some(format!("there is {} where line {count} should be", line["text"]));
        }
    }
    // The shell may be killed between printing and telling so.
    let most = worker.printed + if status == RunStatus::Interrupted { 2 } else { 0 };
    let least = if status == RunStatus::Interrupted { worker.kept } else { worker.printed };
    if !(least..=most).contains(&count) {
        return Some(format!("it has {count} lines; {} were printed and {} kept", worker.printed, worker.kept));
    }
    // All come from the producer but the first record and the servers' remarks about the store.
    let is_remark =
        |record: &&Value| record["type"] == "note" && record["text"].as_str().unwrap().starts_with("store-retry");
    let (mut number, mut last) = (0, 0);
    for record in log.iter().skip(1).filter(|record| !is_remark(record)) {
        number += 1;
        let Some(mark) = record.get("ingest") else { continue };
        if mark["first"] != last + 1 || mark["last"] != number {
            return Some(format!(
                "after number {last} there is a batch {mark}, the end of which is {number}: {record}"
            ));
        }
        last = number;
    }
    let end = log.last().map(|record| (record["type"].clone(), record["status"].clone()));
    let right = ("run-finished".into(), serde_json::to_value(status).unwrap());
    if last != number || end.as_ref() != Some(&right) {
        return Some(format!("the last batch ends at {last} of {number} records, and the log with {end:?}"));
    }
    None
}

//! What must hold after each kill.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use taffrail_mcp_core::{Event, LineHead, Record, RunFold, RunId, Seq, Start};
use taffrail_relay::{Config, Delivery, Relay};
use taffrail_spool::{Drained, RelaySource, Spools, segments};
use taffrail_store_sqlite::SqliteStore;

use super::{
    SOON,
    child::Child,
    jobs::{LIMITS, Runs, WRITERS, thread},
    store_path,
};

/// Knows the log as of the last check, and everything that was said about it since.
pub(super) struct Checker {
    runs: Runs,
    dir: PathBuf,
    log: Vec<u8>,
    /// Where each record ends in it.
    ends: Vec<usize>,
    folds: BTreeMap<RunId, RunFold>,
    /// Last number of each publisher in each round.
    last: BTreeMap<(u64, usize), u64>,
    /// The same, as acknowledged.
    acks: BTreeMap<(u64, usize), u64>,
    /// Records that were seen and are not in the log as of the last check.
    unchecked: Vec<Vec<u8>>,
    /// How many were seen.
    pub(super) seen: u64,
}

impl Checker {
    pub(super) fn new(runs: Runs, dir: &Path) -> Self {
        let folds = runs.all().into_iter().map(|run| (run.clone(), RunFold::new(run, thread()))).collect();
        Self {
            runs,
            dir: dir.to_owned(),
            log: Vec::new(),
            ends: Vec::new(),
            folds,
            last: BTreeMap::new(),
            acks: BTreeMap::new(),
            unchecked: Vec::new(),
            seen: 0,
        }
    }

    pub(super) fn records(&self) -> u64 {
        self.ends.len() as u64
    }

    pub(super) fn acknowledged(&mut self, writer: &Child, round: u64) {
        for (publisher, n) in writer.take_acks() {
            let last = self.acks.entry((round, publisher)).or_default();
            *last = n.max(*last);
        }
    }

    /// What a reader saw: now or at the next check it is in the log, byte for byte.
    pub(super) async fn saw(&mut self, reader: &Child) {
        let saw = reader.take_saw();
        self.seen += saw.len() as u64;
        self.unchecked.extend(saw);
        let lines = std::mem::take(&mut self.unchecked);
        self.unchecked = lines.into_iter().filter(|line| !self.is_there(line)).collect();
    }

    /// Whether a record is in the log; `false` when the log did not go that far at the last check.
    fn is_there(&self, line: &[u8]) -> bool {
        let seq = LineHead::parse(line).unwrap().seq.0;
        let Some(stored) = self.line(seq) else { return false };
        assert!(stored == line, "a reader saw {}\nthe log has {}", text(line), text(stored));
        true
    }

    fn line(&self, seq: u64) -> Option<&[u8]> {
        let at = usize::try_from(seq).unwrap();
        let start = at.checked_sub(2).map_or(0, |before| self.ends.get(before).copied().unwrap_or_default());
        self.ends.get(at - 1).map(|end| &self.log[start..*end])
    }

    /// Opens everything anew and looks.
    pub(super) async fn check(&mut self, round: u64) {
        let store = SqliteStore::open(store_path(&self.dir), Default::default()).unwrap();
        let relay = Relay::start(Arc::new(store), Config::default()).unwrap();
        self.read(&relay).await;
        for (of, acknowledged) in &self.acks {
            let last = self.last.get(of).copied().unwrap_or_default();
            assert!(last >= *acknowledged, "{of:?} was told that {acknowledged} is durable; the log has {last}");
        }
        let lines = std::mem::take(&mut self.unchecked);
        lines.iter().for_each(|line| assert!(self.is_there(line), "a reader saw what is not there: {}", text(line)));
        for (run, fold) in &self.folds {
            let stored = relay.run(run).await.unwrap();
            // The very first kill may come before a run's first record.
            let folded = (fold.last > Seq::START).then(|| fold.clone());
            assert_eq!(stored, folded, "the index is not the fold of the log");
        }
        self.check_spool(&relay).await;
        relay.close().await;
        drop(relay);
        if round % 5 == 3 {
            let conn = rusqlite::Connection::open(store_path(&self.dir)).unwrap();
            let integrity: String = conn.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap();
            assert_eq!(integrity, "ok");
        }
    }

    /// Reads the whole log: what was there is there unchanged, and what is new is dense and in order.
    async fn read(&mut self, relay: &Relay) {
        let head = relay.extent(&thread()).await.unwrap().head;
        let mut follower = relay.follow(&thread(), None, Start::Beginning).await.unwrap();
        let mut log = Vec::new();
        while follower.position() < head {
            let Delivery::Blocks(blocks) = follower.next().await.unwrap() else { panic!("a gap") };
            blocks.iter().for_each(|block| log.extend_from_slice(&block.bytes));
        }
        assert!(log.starts_with(&self.log), "what was in the log has changed");
        let known = std::mem::replace(&mut self.log, log).len();
        let new: Vec<Record> = self.log[known..]
            .split_inclusive(|&byte| byte == b'\n')
            .map(|line| {
                self.ends.push(self.ends.last().copied().unwrap_or_default() + line.len());
                Record::parse(line).unwrap()
            })
            .collect();
        for (record, seq) in new.iter().zip(self.records() - new.len() as u64 + 1..) {
            assert_eq!((record.seq, &record.thread), (Seq(seq), &thread()));
            self.folds.get_mut(&record.run).unwrap().apply_record(record);
            self.order(record);
        }
        assert_eq!(self.records(), head.0);
    }

    /// A publisher's events are there once each, in its order, without a hole.
    fn order(&mut self, record: &Record) {
        let text = match &record.event {
            Event::Note(note) => note.text.as_ref(),
            Event::Log(log) => log.text.as_deref().unwrap(),
            Event::RunStart(_) | Event::StateStart(_) => return,
            other => panic!("{other:?}"),
        };
        let mut numbers = text.split(' ').map_while(|word| word.parse().ok());
        let mut next = || numbers.next().unwrap();
        let (round, publisher, n): (u64, _, _) = (next(), usize::try_from(next()).unwrap(), next());
        assert_eq!(record.run, self.runs.of(publisher));
        let last = self.last.entry((round, publisher)).or_default();
        assert_eq!((n, publisher < WRITERS), (*last + 1, true), "round {round}, publisher {publisher}");
        *last = n;
    }

    /// Attached again, the spool of each run equals its log.
    async fn check_spool(&self, relay: &Relay) {
        let folder = self.dir.join("spool");
        let spools = Spools::new(&folder, LIMITS);
        let mut expected: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        for line in self.log.split_inclusive(|&byte| byte == b'\n') {
            expected.entry(LineHead::parse(line).unwrap().run).or_default().extend_from_slice(line);
        }
        for (run, fold) in self.folds.iter().filter(|(_, fold)| fold.last > Seq::START) {
            spools.attach(run, RelaySource::new(relay.clone(), thread(), run.clone())).await.unwrap();
            assert_eq!(spools.drain(run, fold.last, SOON).await, Drained::Complete);
            spools.detach(run).await;
            let mut spooled = Vec::new();
            for segment in segments(&folder, run).unwrap() {
                let bytes = std::fs::read(segment.path).unwrap();
                let head = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
                assert!(bytes.starts_with(b"{\"type\":\"spool-segment\""));
                spooled.extend_from_slice(&bytes[head..]);
            }
            assert!(spooled == expected[run.as_str()], "the spool of {run} is not its log");
        }
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

//! Shared pieces of these tests.

use std::sync::Arc;

use taffrail_mcp_core::{Event, Log, Message, Note, Record, RunId, Seq, Start, Stream, ThreadId};
use taffrail_relay::{Config, Delivery, Follower, MemoryStore, Relay, Store};

pub(crate) fn thread() -> ThreadId {
    ThreadId::new("t").unwrap()
}

pub(crate) fn run(name: &str) -> RunId {
    RunId::new(name).unwrap()
}

pub(crate) fn relay(store: impl Store) -> Relay {
    Relay::start(Arc::new(store), Config::default()).unwrap()
}

pub(crate) fn memory() -> Relay {
    relay(MemoryStore::new())
}

pub(crate) fn note(text: impl Into<String>) -> Event {
    Note::info(text.into()).into()
}

pub(crate) fn message(text: impl Into<String>) -> Event {
    Message { role: "assistant".into(), text: text.into(), delta: true }.into()
}

pub(crate) fn log(state: &str, stream: Stream, text: &str) -> Event {
    Log {
        state: state.into(),
        index: None,
        stream,
        text: Some(text.into()),
        b64: None,
        part: None,
        more: false,
        redraw: false,
        folded: 0,
        eol: None,
        crlf: false,
    }
    .into()
}

pub(crate) fn text(record: &Record) -> String {
    match &record.event {
        Event::Note(note) => note.text.to_string(),
        Event::Message(message) => message.text.clone(),
        Event::Log(log) => log.text.clone().unwrap_or_default(),
        other => other.kind().to_owned(),
    }
}

/// Follows until `count` records were read.
pub(crate) async fn read(follower: &mut Follower, count: usize) -> Vec<Record> {
    let mut records = Vec::new();
    while records.len() < count {
        match follower.next().await.unwrap() {
            Delivery::Blocks(blocks) => {
                let lines = blocks.iter().flat_map(|block| block.lines().collect::<Vec<_>>());
                records.extend(lines.map(|line| Record::parse(&line).unwrap()));
            }
            Delivery::Gap(gap) => panic!("{gap:?}"),
        }
    }
    records
}

/// The whole log, from the store.
pub(crate) async fn whole(relay: &Relay, count: usize) -> Vec<Record> {
    let mut follower = relay.follow(&thread(), None, Start::Beginning).await.unwrap();
    read(&mut follower, count).await
}

pub(crate) fn assert_dense(records: &[Record], after: Seq) {
    for (record, expected) in records.iter().zip(after.0 + 1..) {
        assert_eq!(record.seq, Seq(expected));
    }
}

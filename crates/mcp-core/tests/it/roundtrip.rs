//! Reading what was written gives the same, for every type.

use std::collections::BTreeSet;

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use taffrail_mcp_core::{Event, LineFields, LineHead, Message, Record, Seq};

use crate::{
    generate::{event, log},
    samples::{self, TS, line},
};

/// Holds for any event: one line, the bytes that serde would write, and reading gives the same event back.
fn check(seq: u64, event: &Event) -> Result<(), TestCaseError> {
    let line = line(seq, event);
    let head = LineHead::parse(line.as_bytes()).ok_or_else(|| TestCaseError::fail("no head"))?;
    prop_assert_eq!((head.seq, head.kind, head.timestamp()), (Seq(seq), event.kind(), Some(TS)));
    prop_assert_eq!(
        [head.thread, head.run].map(str::to_owned),
        [samples::thread().to_string(), samples::run().to_string()]
    );
    prop_assert_eq!(format!("{{{}", &line[head.body..]), serde_json::to_string(event).unwrap());

    let read = Record::parse(line.as_bytes()).unwrap();
    prop_assert!(read.extra.is_empty());
    prop_assert_eq!((read.seq, read.ts, &read.thread, &read.run), (Seq(seq), TS, &samples::thread(), &samples::run()));
    prop_assert_eq!(std::mem::discriminant(&read.event), std::mem::discriminant(event));
    prop_assert_eq!(format!("{:?}", read.event), format!("{event:?}"));
    let mut again = Vec::new();
    read.encode(&mut again);
    prop_assert_eq!(String::from_utf8(again).unwrap(), format!("{line}\n"));
    Ok(())
}

#[test]
fn samples_come_back() {
    for (_, event) in samples::events() {
        check(1, &event).unwrap();
    }
    check(u64::MAX, &samples::events()[0].1).unwrap();
}

#[test]
fn every_known_type_is_generated() {
    let mut runner = TestRunner::deterministic();
    let kinds: BTreeSet<String> =
        (0..2000).map(|_| event().new_tree(&mut runner).unwrap().current().kind().to_owned()).collect();
    assert_eq!(kinds, Event::KINDS.iter().map(|&kind| kind.to_owned()).collect());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_event_comes_back(seq in 1..=u64::MAX, event in event()) {
        check(seq, &event)?;
    }

    #[test]
    fn process_output_is_what_serde_writes(log in log()) {
        check(1, &log.into())?;
    }

    #[test]
    fn streamed_answers_are_what_serde_writes(role in "\\PC{0,8}", text in "(\\PC|[\\x00-\\x22\\\\]){0,40}", delta: bool) {
        check(1, &Message { role, text, delta }.into())?;
    }

    #[test]
    fn fields_to_filter_by_are_those_of_the_record(log in log()) {
        let line = line(1, &log.clone().into());
        let fields = LineFields::parse(line.as_bytes()).unwrap();
        prop_assert_eq!(fields.state.as_deref(), Some(log.state.as_str()));
        prop_assert_eq!(fields.stream.as_deref(), Some(log.stream.as_str()));
        prop_assert_eq!(fields.text.as_deref(), log.text.as_deref());
        prop_assert_eq!(fields.index, log.index);
    }
}

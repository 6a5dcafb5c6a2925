//! The published schema says what is written.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Value, json};
use taffrail_mcp_core::{Event, Gap, PageMeta, RunFold, Seq, gap_schema, page_schema, record_schema, snapshot_schema};

use crate::{
    generate::event,
    samples::{self, TS, events, line, thread},
};

static RECORD: LazyLock<Validator> = LazyLock::new(|| jsonschema::validator_for(&record_schema()).unwrap());

#[track_caller]
fn valid(validator: &Validator, value: &Value) {
    let errors: Vec<_> = validator.iter_errors(value).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{value}: {errors:?}");
}

#[test]
fn every_sample_is_valid() {
    for (seq, (_, event)) in (1..).zip(events()) {
        valid(&RECORD, &serde_json::from_str(&line(seq, &event)).unwrap());
    }
}

#[test]
fn every_type_has_its_alternative() {
    let schema = record_schema();
    let alternatives = schema["oneOf"].as_array().unwrap();
    let kinds: Vec<_> = alternatives.iter().filter_map(|a| a["properties"]["type"]["const"].as_str()).collect();
    assert_eq!(kinds, Event::KINDS);
    assert_eq!(alternatives.len(), Event::KINDS.len() + 1, "and one for the unknown");
}

#[test]
fn what_is_not_a_record_is_not_valid() {
    let good: Value = serde_json::from_str(&line(1, &events()[0].1)).unwrap();
    valid(&RECORD, &good);
    for (field, bad) in [
        ("seq", json!(0)),
        ("seq", json!("1")),
        ("thread", json!("a/b")),
        ("run", json!("")),
        ("type", json!(1)),
        ("depth", json!(-1)),
        ("entry", Value::Null),
    ] {
        let mut value = good.clone();
        value[field] = bad;
        assert!(!RECORD.is_valid(&value), "{value}");
    }
    for field in ["seq", "thread", "run", "ts", "type", "machine"] {
        let mut value = good.clone();
        value.as_object_mut().unwrap().remove(field);
        assert!(!RECORD.is_valid(&value), "{value}");
    }
}

#[test]
fn a_new_field_and_a_new_type_are_valid() {
    let mut value: Value = serde_json::from_str(&line(1, &events()[0].1)).unwrap();
    value["new"] = json!({});
    valid(&RECORD, &value);
    value["type"] = json!("x-new");
    valid(&RECORD, &value);
}

#[test]
fn no_number_has_a_format() {
    for schema in [record_schema(), snapshot_schema(), gap_schema(), page_schema()] {
        let text = schema.to_string();
        for format in ["uint", "int32", "int64", "double"] {
            assert!(!text.contains(&format!("\"format\":\"{format}")), "{format}");
        }
    }
}

#[test]
fn gaps_pages_and_snapshots() {
    let gap = Gap::retention(thread(), Seq(0), Seq(9)).unwrap();
    let gap = serde_json::to_value(gap).unwrap();
    valid(&jsonschema::validator_for(&gap_schema()).unwrap(), &gap);

    let mut fold = RunFold::new(samples::run(), thread());
    fold.wrote(Seq(1), TS, 0, 0);
    for (_, event) in events() {
        fold.apply(Seq(1), TS, &event);
        let snapshot = serde_json::to_value(fold.snapshot(Seq(1), TS)).unwrap();
        valid(&jsonschema::validator_for(&snapshot_schema()).unwrap(), &snapshot);
    }

    let meta = PageMeta { next: Seq(9), head: Seq(9), first: Seq(9), done: true, matched: 1, scanned: 1 };
    let mut page = serde_json::to_value(meta).unwrap();
    page["records"] = json!([gap]);
    let schema = page_schema();
    for field in page.as_object().unwrap().keys() {
        assert!(schema["properties"].get(field).is_some(), "{field}");
        assert!(schema["required"].as_array().unwrap().contains(&json!(field)), "{field}");
    }
}

proptest! {
    #[test]
    fn every_event_is_valid(event in event()) {
        let value: Value = serde_json::from_str(&line(1, &event)).unwrap();
        prop_assert!(RECORD.is_valid(&value), "{}", value);
    }
}

//! Reading what a log holds.

use serde_json::Value;
use taffrail_mcp_core::Log;

/// The types of records, in order.
pub(crate) fn types(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["type"].as_str().unwrap()).collect()
}

pub(crate) fn of_type<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["type"] == kind).collect()
}

/// The states that were done, in order.
pub(crate) fn states(records: &[Value]) -> Vec<&str> {
    of_type(records, "state-done").iter().map(|record| record["state"].as_str().unwrap()).collect()
}

/// The log records of a stream.
pub(crate) fn logs(records: &[Value], stream: &str) -> Vec<Log> {
    let logs = of_type(records, "log").into_iter().filter(|record| record["stream"] == stream);
    logs.map(|record| serde_json::from_value(record.clone()).unwrap()).collect()
}

/// Their texts.
pub(crate) fn texts(records: &[Value], stream: &str) -> Vec<String> {
    logs(records, stream).iter().map(|log| String::from_utf8(log.data().into_owned()).unwrap()).collect()
}

/// The bytes of a stream put together again.
pub(crate) fn bytes(records: &[Value], stream: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for log in logs(records, stream) {
        bytes.extend_from_slice(&log.data());
        if !log.more && log.eol != Some(false) {
            bytes.extend_from_slice(if log.crlf { b"\r\n" } else { b"\n" });
        }
    }
    bytes
}

/// The positions are 1, 2, 3 and so on, and the log ends with its only terminal event, of this status.
#[track_caller]
pub(crate) fn assert_whole(records: &[Value], status: &str) {
    let seqs: Vec<_> = records.iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=records.len() as u64).collect::<Vec<_>>());
    let times: Vec<_> = records.iter().map(|record| record["ts"].as_str().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let last = records.last().unwrap();
    assert_eq!((&last["type"], &last["status"], &last["depth"]), (&"run-finished".into(), &status.into(), &0.into()));
    let ends = of_type(records, "run-finished")
        .iter()
        .filter(|end| end["depth"] == 0 && !["suspended", "interrupted"].iter().any(|status| end["status"] == *status))
        .count();
    assert_eq!(ends, usize::from(!["suspended", "interrupted"].contains(&status)));
}

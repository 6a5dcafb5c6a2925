//! Where bytes of strangers come in, as functions that hold whatever the bytes are: for fuzzing, and for the tests that do
//! the same with a few thousand random ones. They panic when something does not hold.

use axum::http::{HeaderMap, HeaderValue};
use taffrail_mcp_core::{Record, RunId, Seq, Start};

use super::{cursor, ingest};

/// Reads bytes as a cursor, in a parameter and in `Last-Event-ID`.
pub fn cursor(bytes: &[u8]) {
    let position = cursor::position(bytes);
    let is_number = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    assert_eq!(position.is_ok(), is_number);
    match &position {
        Ok(seq) => assert!(seq.to_string().len() <= bytes.len()),
        Err(error) => assert!(error.to_string().len() < 1000),
    }
    let start = cursor::start(bytes);
    assert_eq!(start.is_ok(), is_number || bytes == b"live");
    let after = std::str::from_utf8(bytes).ok();
    if let Ok(header) = HeaderValue::from_bytes(bytes) {
        let begins = cursor::requested(Some(&header), Some("7")).ok();
        let expected = if bytes.is_empty() { Some(Start::After(Seq(7))) } else { position.ok().map(Start::After) };
        assert_eq!(begins, expected);
    }
    assert_eq!(cursor::requested(None, after).ok(), after.map_or(Some(Start::Beginning), |_| start.ok()));
}

/// Reads bytes as a body of events, and as a producer. The first four say how the body is cut into pieces.
pub fn ingest(bytes: &[u8]) {
    let (cuts, body) = bytes.split_at(bytes.len().min(4));
    let Ok(run) = RunId::new("r") else { return };
    let whole = ingest::entry(&run, [body]);
    let mut rest = body;
    let mut pieces = cuts.iter().map(|cut| {
        let (piece, left) = rest.split_at(usize::from(*cut).min(rest.len()));
        rest = left;
        piece
    });
    let mut cut: Vec<&[u8]> = pieces.by_ref().collect();
    cut.push(rest);
    assert_eq!(ingest::entry(&run, cut), whole);
    let (events, _) = whole;
    for (_, bodies) in events {
        assert!(bodies.is_empty() || bodies.ends_with(b"}\n"));
        for line in bodies.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            // It is what stands after the common fields of a record, and the record is one that readers read.
            let record = [br#"{"seq":1,"thread":"t","run":"r","ts":"2026-11-30T07:32:47.123456Z","#, line].concat();
            let record = Record::parse(&record);
            assert!(record.is_ok_and(|record| record.seq == Seq(1) && record.run == run && record.ingest().is_none()));
        }
    }
    if let Ok(header) = HeaderValue::from_bytes(body) {
        let mut headers = HeaderMap::new();
        headers.insert(ingest::HEADER, header);
        if let Ok(Some(numbered)) = ingest::producer(&headers) {
            let told = format!("{}:{}", numbered.producer, numbered.first);
            assert!(told.len() <= body.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_bytes_as_a_cursor(bytes in vec(any::<u8>(), 0..24), near in "[0-9]{0,30}[ +.e-]?|live") {
            cursor(&bytes);
            cursor(near.as_bytes());
        }

        #[test]
        fn any_bytes_as_events(bytes in vec(any::<u8>(), 0..200)) {
            ingest(&bytes);
        }

        #[test]
        fn almost_events(cuts in vec(0..40u8, 4), parts in vec(select(PARTS), 0..24)) {
            ingest(&[cuts, parts.concat()].concat());
        }
    }

    const PARTS: &[&[u8]] = &[
        b"{\"type\":\"log\",\"state\":\"s\",\"stream\":\"stdout\",\"text\":\"",
        b"{\"type\":\"x\",\"a\":",
        b"{\"type\":\"message\",\"role\":\"r\",\"text\":\"a\",\"delta\":true",
        b"\"}",
        b"}",
        b"{",
        b"[",
        b"]",
        b"\n",
        b"\n",
        b"\r\n",
        b",",
        b",\"b\":",
        b",\"type\":\"y\"",
        b",\"ts\":\"2026-11-30T07:32:47.123456Z\"",
        b",\"run\":\"r\"",
        b",\"ingest\":{\"producer\":\"p\",\"first\":1,\"last\":2}",
        b"\"\\u00e9\\ud800\"",
        b"1e999",
        b"\xff",
        b"\xc3\xa9",
        b"\0",
        b"null",
        b"\xef\xbb\xbf",
        b"p-1:17",
    ];
}

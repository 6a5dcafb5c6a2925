//! The bodies that go and come: the wire contract's shapes, read with tolerance for what is added to them.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use taffrail_mcp_core::{CancelRequested, Decision, Gap, LineHead, RunId, Seq, Snapshot};

use super::{Entry, EventPage, Refusal};

/// `POST /api/v1/threads/{thread}/runs`.
#[derive(Debug, Serialize)]
pub(super) struct StartBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) playbook: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inputs: Option<&'a Map<String, Value>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) external: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<&'a RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) idempotency_key: Option<&'a str>,
}

/// `POST …/approvals/{approval}`.
#[derive(Debug, Serialize)]
pub(super) struct ApproveBody<'a> {
    pub(super) decision: Decision,
    pub(super) hash: &'a str,
    pub(super) seen_seq: Seq,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<&'a Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) inputs: &'a Map<String, Value>,
}

/// `POST …/resume`.
#[derive(Debug, Serialize)]
pub(super) struct ResumeBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checkpoint: Option<&'a str>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(super) inputs: &'a Map<String, Value>,
}

/// `POST …/cancel`.
#[derive(Debug, Serialize)]
pub(super) struct CancelBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) kill: bool,
}

/// `GET /api/v1/runs`.
#[derive(Debug, Deserialize)]
pub(super) struct RunsBody {
    pub(super) runs: Vec<Snapshot>,
}

/// What ingest answers.
#[derive(Debug, Deserialize)]
pub(super) struct IngestedBody {
    #[serde(default)]
    pub(super) first: Option<Seq>,
    #[serde(default)]
    pub(super) last: Option<Seq>,
    #[serde(default)]
    pub(super) cancel: Option<CancelRequested>,
}

/// `GET …/events`.
#[derive(Debug, Deserialize)]
struct PageBody {
    records: Vec<Box<RawValue>>,
    next: Seq,
    head: Seq,
    #[serde(default)]
    first: Seq,
    done: bool,
}

/// Reads a page, each record exactly as it was sent.
pub(super) fn page(body: &[u8]) -> Result<EventPage, String> {
    let PageBody { records, next, head, first, done } = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    let entries = records.iter().map(|item| entry(item.get())).collect::<Result<_, _>>()?;
    Ok(EventPage { entries, next, head, first, done })
}

fn entry(item: &str) -> Result<Entry, String> {
    match record(item.as_bytes()) {
        Some(seq) => Ok(Entry::Record { seq, line: line(item.as_bytes()) }),
        None => gap(item.as_bytes()).map(Entry::Gap),
    }
}

/// A gap.
pub(super) fn gap(data: &[u8]) -> Result<Gap, String> {
    serde_json::from_slice(data).map_err(|error| format!("neither a record nor a gap: {error}"))
}

/// The position of a record; `None` for what is none.
pub(super) fn record(data: &[u8]) -> Option<Seq> {
    #[derive(Deserialize)]
    struct Place {
        seq: Seq,
    }
    // Whoever else writes records may order the fields in another way.
    LineHead::parse(data).map(|head| head.seq).or_else(|| serde_json::from_slice(data).ok().map(|Place { seq }| seq))
}

/// An item as a line, as logs keep it.
fn line(item: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(item.len() + 1);
    line.extend_from_slice(item);
    line.push(b'\n');
    line.into()
}

/// Reads a problem; `None` for what is none.
pub(super) fn refusal(status: u16, body: &[u8]) -> Option<Refusal> {
    let members: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(|text| said(text, 2000));
    let code = text("code")?;
    let detail = text("detail").or_else(|| text("title")).unwrap_or_else(|| "the server refused".to_owned());
    Some(Refusal { status, code, detail, retry_after: None, members })
}

/// What a server says, as it can be shown: it may be anybody's.
pub(super) fn said(text: &str, most: usize) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_keep_the_bytes_of_records() {
        let odd =
            r#"{"seq":7,"thread":"t","run":"t","ts":"2026-01-01T00:00:00.000000Z","type":"new","n":1e2, "x":"\u00e9"}"#;
        let gap = r#"{"type":"gap","thread":"t","from":1,"to":6,"reason":"retention","next":6}"#;
        let swapped = r#"{"run":"t","seq":8,"type":"new"}"#;
        let body = format!(
            r#"{{"records":[{gap},{odd}, {swapped} ],"next":8,"head":9,"first":7,"done":false,"matched":2,"more":1}}"#
        );
        let page = page(body.as_bytes()).unwrap();
        let [Entry::Gap(gap), Entry::Record { seq, line }, Entry::Record { seq: other, .. }] = &page.entries[..] else {
            panic!("{page:?}")
        };
        assert_eq!((gap.to, *seq, *other, page.next, page.head), (Seq(6), Seq(7), Seq(8), Seq(8), Seq(9)));
        assert_eq!(line, format!("{odd}\n").as_bytes());
    }

    #[test]
    fn what_is_no_page_is_told() {
        for wrong in ["", "[]", "{}", r#"{"records":[{}],"next":1,"head":1,"done":false}"#, r#"{"records":[3]}"#] {
            assert!(page(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn problems_are_shown_safely() {
        let body = r#"{"code":"hole","detail":"a\u001b[31mb","expected":7,"status":409}"#;
        let refusal = refusal(409, body.as_bytes()).unwrap();
        assert_eq!((refusal.detail.as_str(), refusal.number("expected")), ("a [31mb", Some(7)));
        assert!(super::refusal(404, b"<html>").is_none());
        assert!(super::refusal(404, b"{}").is_none());
    }
}

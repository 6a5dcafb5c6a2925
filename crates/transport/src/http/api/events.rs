//! `GET /api/v1/runs/{run}/events`: a page of a run's log.

use std::time::Duration;

use axum::{extract::State, http::Uri, response::Response};
use taffrail_mcp_core::{PageMeta, RunKind, Start};
use taffrail_relay::{Page, PageQuery};
use taffrail_runs::{LogQuery, RunsError};

use super::{
    PathId, json_bytes,
    limits::{MOST_BYTES, MOST_RECORDS, MOST_WAIT_MS},
};
use crate::http::{app::App, body::TakesJson, params::Params, problem::Problem};

/// Reads a page.
pub(super) async fn page(
    State(app): State<App>,
    PathId(run): PathId<RunKind>,
    uri: Uri,
    _: TakesJson,
) -> Result<Response, Problem> {
    let query = query(&uri)?;
    if query.wait.is_zero() {
        let service = app.service().clone();
        let page = async move { service.logs(&run, query).await.map(|page| body(&page)) };
        let made = app.crowd().make(page).await;
        return Ok(json_bytes(made.ok_or(RunsError::Closing)??));
    }
    let page = {
        let at_once = LogQuery { wait: Duration::ZERO, ..query.clone() };
        let closing = app.closing();
        tokio::select! {
            page = app.service().logs(&run, query) => page?,
            () = closing.cancelled() => app.service().logs(&run, at_once).await?,
        }
    };
    Ok(json_bytes(body(&page)))
}

fn query(uri: &Uri) -> Result<LogQuery, Problem> {
    let mut params = Params::of(uri)?;
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let start = params.start("after")?.unwrap_or(Start::Beginning);
    let limit = params.number("limit", 1..=MOST_RECORDS)?.map(size);
    let max_bytes = params.number("max_bytes", 1..=MOST_BYTES)?.map_or(PageQuery::MAX_BYTES, size);
    let wait = Duration::from_millis(params.number("wait_ms", 0..=MOST_WAIT_MS)?.unwrap_or(0));
    let types = params.list("types")?;
    let state = params.text("state")?;
    let stream = params.word("stream", &["stdout", "stderr"])?;
    let grep = params.text("grep")?;
    let tail = params.number("tail", 1..=MOST_RECORDS)?.map(size);
    params.finish()?;
    let limit = limit.or(tail).unwrap_or(PageQuery::LIMIT);
    Ok(LogQuery { start, limit, max_bytes, tail, grep, types, state, stream, wait })
}

/// The page as JSON, made of the records' own bytes.
fn body(page: &Page) -> Vec<u8> {
    let Page { gap, lines, meta } = page;
    let PageMeta { next, head, first, done, matched, scanned } = meta;
    let gap = gap.as_ref().map(taffrail_mcp_core::Gap::to_json);
    let gap = gap.as_deref().unwrap_or_default();
    // The fields beside the records take less than 200 bytes.
    let mut out = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum::<usize>() + gap.len() + 200);
    out.extend_from_slice(b"{\"records\":[");
    out.extend_from_slice(gap.as_bytes());
    for line in lines {
        if !out.ends_with(b"[") {
            out.push(b',');
        }
        out.extend_from_slice(line.strip_suffix(b"\n").unwrap_or(line));
    }
    out.push(b']');
    let mut digits = itoa::Buffer::new();
    for (name, number) in
        [("next", next.0), ("head", head.0), ("first", first.0), ("matched", *matched), ("scanned", *scanned)]
    {
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(digits.format(number).as_bytes());
        if name == "first" {
            out.extend_from_slice(if *done { b",\"done\":true" } else { b",\"done\":false" });
        }
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};
    use taffrail_mcp_core::{Gap, Seq, ThreadId};

    use super::*;

    #[test]
    fn a_page_is_made_of_the_records_own_bytes() {
        let meta = PageMeta { next: Seq(9), head: Seq(12), first: Seq(8), done: false, matched: 2, scanned: 4 };
        let lines = vec![Bytes::from_static(b"{\"a\":1e2}\n"), Bytes::from_static(b"{\"b\":[ ]}\n")];
        let mut page = Page { gap: None, lines, meta };
        assert_eq!(
            String::from_utf8(body(&page)).unwrap(),
            concat!(
                r#"{"records":[{"a":1e2},{"b":[ ]}],"next":9,"head":12,"first":8,"done":false,"#,
                r#""matched":2,"scanned":4}"#
            )
        );
        page.gap = Gap::retention(ThreadId::new("t").unwrap(), Seq(3), Seq(8));
        let value: Value = serde_json::from_slice(&body(&page)).unwrap();
        assert_eq!(value["records"].as_array().unwrap().len(), 3);
        assert_eq!(
            value["records"][0],
            json!({"type":"gap","thread":"t","from":4,"to":7,"reason":"retention","next":7})
        );
        page.lines.clear();
        page.gap = None;
        page.meta.done = true;
        let value: Value = serde_json::from_slice(&body(&page)).unwrap();
        assert_eq!((&value["records"], &value["done"]), (&json!([]), &json!(true)));
    }
}

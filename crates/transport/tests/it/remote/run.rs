//! A run as a server has it, told in the wire contract's words.

use taffrail_mcp_core::{
    Event, Note, RecordHead, RunFinished, RunFold, RunId, RunStart, RunStatus, Seq, ThreadId, Timestamp, Usage,
};

use super::fake::{Act, Asked, answer, json, problem, stream_head};

/// A run that is over, and all of its log.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) run: RunId,
    /// Lines with their newlines.
    pub(crate) lines: Vec<String>,
    pub(crate) snapshot: String,
    /// Whether its log says so.
    pub(crate) over: bool,
}

impl Run {
    /// A run with so many records.
    pub(crate) fn new(records: u64) -> Self {
        let run = RunId::new("r").unwrap();
        let thread = ThreadId::from(run.clone());
        let mut fold = RunFold::new(run.clone(), thread.clone());
        let lines = (1..=records).map(|n| {
            let ts = Timestamp::from_micros(n * 1000);
            let event = match n {
                1 => RunStart {
                    machine: "demo".to_owned(),
                    depth: 0,
                    entry: "main".to_owned(),
                    resumed: false,
                    external: false,
                }
                .into(),
                n if n == records => Event::from(RunFinished {
                    machine: "demo".to_owned(),
                    depth: 0,
                    status: RunStatus::Done,
                    error: None,
                    at: None,
                    usage: Usage::default(),
                    detail: None,
                }),
                n => Note::info(format!("note {n}: \u{e9} data: x\\n\"")).into(),
            };
            fold.wrote(Seq(n), ts, 0, 0);
            fold.apply(Seq(n), ts, &event);
            let mut line = Vec::new();
            RecordHead { seq: Seq(n), thread: &thread, run: &run, ts }.encode(&event, &mut line);
            String::from_utf8(line).unwrap()
        });
        let lines = lines.collect();
        let snapshot = serde_json::to_string(&fold.snapshot(Seq(records), Timestamp::from_micros(0))).unwrap();
        Self { run, lines, snapshot, over: true }
    }

    /// The frames of a stream after a position: one a record, then the end.
    pub(crate) fn frames(&self, after: usize) -> Vec<String> {
        let records = self.lines.iter().enumerate().skip(after);
        let mut frames: Vec<_> = records.map(|(n, line)| format!("id: {}\ndata: {line}\n", n + 1)).collect();
        if self.over {
            frames.push(format!("event: end\ndata: {}\n\n", self.snapshot));
        }
        frames
    }

    /// What a server in good order answers.
    pub(crate) fn serve(&self, asked: &Asked) -> Vec<Act> {
        match asked.path.strip_prefix("/api/v1/runs/r") {
            Some("/stream") => {
                let after = self.after(asked);
                if after > self.lines.len() {
                    return problem(409, "cursor-ahead", "");
                }
                if after == self.lines.len() && self.over {
                    return vec![Act::Send(b"HTTP/1.1 204 X\r\nConnection: close\r\n\r\n".to_vec())];
                }
                let mut stream = stream_head();
                stream.extend_from_slice(b"retry: 1\n\n");
                stream.extend(self.frames(after).concat().into_bytes());
                vec![Act::Send(stream)]
            }
            Some("/events") => json(&self.page(self.after(asked), 7)),
            Some("") => json(&self.snapshot),
            _ => answer(404, "text/html", "", "<html>"),
        }
    }

    /// A page of at most so many records.
    pub(crate) fn page(&self, after: usize, limit: usize) -> String {
        let lines: Vec<_> = self.lines.iter().skip(after).take(limit).map(|line| line.trim_end()).collect();
        let (next, head) = (after + lines.len(), self.lines.len());
        let done = next == head && self.over;
        format!(
            r#"{{"records":[{}],"next":{next},"head":{head},"first":1,"done":{done},"matched":1,"scanned":1}}"#,
            lines.join(",")
        )
    }

    /// The cursor of a request; the header wins.
    pub(crate) fn after(&self, asked: &Asked) -> usize {
        let cursor = asked.headers.get("last-event-id").or_else(|| asked.query.get("after"));
        cursor.map_or(0, |after| after.parse().unwrap())
    }
}

//! A run that happens elsewhere, and its producer, which sends again what was not acknowledged.

use std::{
    num::NonZeroU64,
    time::{Duration, Instant},
};

use bytes::Bytes;
use serde_json::json;
use taffrail_mcp_core::{ProducerId, RunId, Start, ThreadId};
use taffrail_transport::client::{Client, Entry, EventQuery, IngestBatch, StartRun, StartWork};
use tokio::time::sleep;

use crate::world::PATIENCE;

/// The pause before something is sent again.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Producer {
    client: Client,
    pub(crate) run: RunId,
    id: ProducerId,
    next: u64,
    /// What was sent again, because the server was away or did not say whether it has it.
    pub(crate) again: u64,
}

impl Producer {
    /// Starts a run in a thread of its own.
    pub(crate) async fn start(client: Client, name: &str) -> Self {
        let thread = ThreadId::new(format!("thread-{}", uuid::Uuid::new_v4())).unwrap();
        let start = StartRun { work: StartWork::External { name: name.to_owned() }, ..StartRun::default() };
        let run = client.start(&thread, &start).await.unwrap().run;
        Self { client, run, id: ProducerId::new("worker-1").unwrap(), next: 1, again: 0 }
    }

    /// Sends lines of output, and returns when the server has them.
    pub(crate) async fn print(&mut self, texts: &[String]) {
        let log = |text: &String| json!({"type": "log", "state": "exec", "stream": "stdout", "text": text}).to_string();
        self.send(&texts.iter().map(log).collect::<Vec<_>>()).await;
    }

    /// Sends the end of the run.
    pub(crate) async fn finish(&mut self) {
        let usage =
            json!({"steps": 1, "wall_ms": 1, "log_lines": 1, "log_bytes": 1, "clipped_lines": 0, "clipped_bytes": 0});
        let end = json!({"type": "run-finished", "machine": "exec", "depth": 0, "status": "done", "error": null, "at": null,
            "usage": usage});
        self.send(&[end.to_string()]).await;
    }

    async fn send(&mut self, events: &[String]) {
        let lines = Bytes::from(events.iter().map(|event| format!("{event}\n")).collect::<String>());
        let batch = IngestBatch { producer: self.id.clone(), first: NonZeroU64::new(self.next).unwrap(), lines };
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.client.ingest(&self.run, &batch).await {
            assert!(error.is_transient() && Instant::now() < deadline, "{error:?}");
            self.again += 1;
            sleep(PAUSE).await;
        }
        self.next += events.len() as u64;
    }

    /// The whole log of the run, as pages give it: positions, and records without their newlines.
    pub(crate) async fn log(&self) -> Vec<(u64, String)> {
        let (mut log, mut query) = (Vec::new(), EventQuery { limit: Some(500), ..EventQuery::default() });
        loop {
            let page = self.client.events(&self.run, &query).await.unwrap();
            for entry in page.entries {
                let Entry::Record { seq, line } = entry else { panic!("{entry:?} in {}", self.run) };
                log.push((seq.0, std::str::from_utf8(&line).unwrap().trim_end_matches('\n').to_owned()));
            }
            if page.done {
                return log;
            }
            query.start = Start::After(page.next);
        }
    }
}

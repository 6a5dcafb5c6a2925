//! Runs a playbook that stands in the source, and prints its events.
//!
//! ```sh
//! cargo run -p engine-run-a-playbook
//! ```
//!
//! The engine stores nothing and knows no log: everything that happens goes into the sink that the job brings along.

#![expect(clippy::print_stdout, reason = "what the example shows")]

use std::sync::{Arc, Mutex};

use anyhow::{Result, bail};
use taffrail_engine::{
    Engine, Job,
    playbook::{Library, parse},
    process::Cancel,
};
use taffrail_mcp_core::{BoxFuture, Event, EventBatch, EventSink, RunId, RunStatus, Usage};

const PLAYBOOK: &str = r#"
playbook: greet
inputs:
  who: { type: array, default: [fore, aft] }
states:
  hail:
    over: "{{ inputs.who }}"      # one branch each
    exec: [echo, "ahoy {{ item }}"]
    output: hails
  count:
    run: echo "$COUNT answered"
    env: { COUNT: "{{ ctx.hails | length }}" }
    gates:
      - { when: "output == '2 answered'", then: ok }
      - { when: otherwise, then: fail }
"#;

/// Keeps the bodies of events as they would stand in a log.
#[derive(Default)]
struct Kept(Mutex<Vec<u8>>);

impl EventSink for Kept {
    fn emit(&self, event: Event) {
        if let Ok(mut kept) = self.0.lock() {
            event.encode_body(&mut kept);
        }
    }

    /// Output comes in batches, encoded already; a sink that is slow here slows the process down, and loses nothing.
    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        if let Ok(mut kept) = self.0.lock() {
            kept.extend_from_slice(batch.bodies());
        }
        batch.clear();
        Box::pin(std::future::ready(()))
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let (status, events) = run(PLAYBOOK).await?;
    print!("{events}");
    println!("→ {}", status.as_str());
    Ok(())
}

async fn run(source: &str) -> Result<(RunStatus, String)> {
    let parsed = parse(source, "greet.yaml");
    let Some(playbook) = parsed.playbook.map(Arc::new) else { bail!("not a playbook: {:?}", parsed.diagnostics) };
    let (run, sink) = (RunId::new("run-1")?, Arc::new(Kept::default()));
    let job = Job {
        thread: run.clone().into(),
        run,
        inputs: Default::default(),
        cwd: std::env::temp_dir(),
        env: Vec::new(),
        usage: Usage::default(),
        sink: Arc::clone(&sink) as Arc<dyn EventSink>,
        cancel: Cancel::new(),
        shutdown: Cancel::new(),
        ids: Arc::new(|| "unique in real life".to_owned()),
    };
    let ended = Engine::new(Library::new("playbooks")).start(&playbook, job).await;
    let events = sink.0.lock().map(|kept| String::from_utf8_lossy(&kept).into_owned()).unwrap_or_default();
    Ok((ended.status, events))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_step_is_an_event() {
        let (status, events) = run(PLAYBOOK).await.unwrap();
        assert_eq!(status, RunStatus::Done);
        for what in
            ["\"run-start\"", "ahoy fore", "ahoy aft", "\"gate\":\"output == '2 answered'\"", "\"run-finished\""]
        {
            assert!(events.contains(what), "{what} is not in\n{events}");
        }
    }

    #[tokio::test]
    async fn a_broken_playbook_says_where() {
        let error = run("playbook: greet\nstates: { s: { runn: x } }\n").await.unwrap_err();
        assert!(error.to_string().contains("runn"), "{error}");
    }
}

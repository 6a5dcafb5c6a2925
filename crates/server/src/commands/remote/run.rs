//! `taffrail run`, `resume` and `approve` with `--url`: the run is there, and is watched from here.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};
use taffrail_mcp_core::{Decision, Snapshot, Start, ThreadId};
use taffrail_runs::RunsError;
use taffrail_transport::client::{Client, ClientError, Decide, StartRun, StartWork};
use uuid::Uuid;

use super::{run_id, watch::watch};
use crate::{
    cli,
    commands::{inputs, look, print_json, watch::Show},
    exit,
};

/// Starts a playbook of the server's there and shows it, or tells its id.
pub(crate) async fn run(client: &Client, args: cli::Run) -> Result<u8> {
    let cli::Run { playbook, inputs, thread, idempotency_key, json, detach, host: _, remote: _ } = args;
    let thread = match thread {
        Some(thread) => ThreadId::new(thread),
        None => ThreadId::new(Uuid::now_v7().to_string()),
    };
    let thread = thread.map_err(RunsError::from)?;
    // So that a start which is tried again is the same one.
    let key = idempotency_key.unwrap_or_else(|| Uuid::new_v4().to_string());
    let started = start(client, &thread, &playbook, &inputs.inputs, key).await?;
    if detach {
        match json {
            true => print_json(&started)?,
            false => writeln!(io::stdout(), "{}", started.run)?,
        }
        return Ok(exit::DONE);
    }
    // A thread of its own begins with it; in another one, its records are found by the run.
    watch(client, &started.run, Start::Beginning, show(json)).await
}

/// What an input's text means, only the playbook knows, and that is there: a list or an object is JSON; anything else is
/// text, and where the playbook does not take that, a number or a boolean.
async fn start(
    client: &Client,
    thread: &ThreadId,
    playbook: &str,
    given: &[(String, String)],
    key: String,
) -> Result<Snapshot, ClientError> {
    let request = |inputs| StartRun {
        work: StartWork::Playbook { name: playbook.to_owned(), inputs },
        idempotency_key: Some(key.clone()),
        run: None,
    };
    let texts = values(given, |value| value.is_array() || value.is_object());
    let others = values(given, |_| true);
    match client.start(thread, &request(texts.clone())).await {
        Err(error) if error.refusal().is_some_and(|refusal| refusal.code == "bad-inputs") && others != texts => {
            client.start(thread, &request(others)).await
        }
        started => started,
    }
}

/// Inputs, those read as JSON for which that is wanted.
fn values(given: &[(String, String)], as_json: impl Fn(&Value) -> bool) -> Map<String, Value> {
    let value = |text: &str| serde_json::from_str(text).ok().filter(&as_json).unwrap_or_else(|| Value::from(text));
    given.iter().map(|(key, text)| (key.clone(), value(text))).collect()
}

/// Goes on with a run there and shows it.
pub(crate) async fn resume(client: &Client, args: cli::Resume) -> Result<u8> {
    let cli::Resume { run, inputs, json, remote: _ } = args;
    let (id, checkpoint) = match run.split_once(':') {
        Some((id, _)) => (run_id(id)?, Some(run.as_str())),
        None => (run_id(&run)?, None),
    };
    let before = client.snapshot(&id).await?;
    let schema = before.approval.as_ref().and_then(|approval| approval.schema.as_ref());
    let inputs = inputs::by_schema(schema, &inputs.inputs);
    client.resume(&id, checkpoint, &inputs).await?;
    watch(client, &id, Start::After(before.head), show(json)).await
}

/// Decides what a run there waits for, and goes on with it.
pub(crate) async fn approve(client: &Client, args: cli::Approve) -> Result<u8> {
    let cli::Approve { run, reject, hash, decide_only, inputs, json, remote: _ } = args;
    let id = run_id(&run)?;
    let before = client.snapshot(&id).await?;
    let pending = before.approval.clone();
    let pending =
        pending.with_context(|| format!("run {id} is {}: it waits for no decision", before.status.as_str()))?;
    let inputs = inputs::by_schema(pending.schema.as_ref(), &inputs.inputs);
    let decide = Decide {
        run: id.clone(),
        approval: pending.approval,
        decision: if reject { Decision::Reject } else { Decision::Approve },
        hash: hash.unwrap_or(pending.hash),
        seen_seq: before.head,
        content: None,
        inputs: inputs.clone(),
    };
    let decided = client.approve(&decide).await?;
    if decide_only {
        look::show(&decided, json)?;
        return Ok(exit::DONE);
    }
    client.resume(&id, None, &inputs).await?;
    watch(client, &id, Start::After(before.head), show(json)).await
}

fn show(json: bool) -> Show {
    if json { Show::Json } else { Show::People }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inputs_are_texts_first() {
        let given: Vec<_> = [("v", "1.2"), ("t", "[\"a\"]"), ("n", "3"), ("s", "\"1.2\""), ("w", "a b"), ("b", "true")]
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
            .into();
        let texts = values(&given, |value| value.is_array() || value.is_object());
        assert_eq!(
            Value::from(texts),
            json!({"v": "1.2", "t": ["a"], "n": "3", "s": "\"1.2\"", "w": "a b", "b": "true"})
        );
        let others = values(&given, |_| true);
        assert_eq!(Value::from(others), json!({"v": 1.2, "t": ["a"], "n": 3, "s": "1.2", "w": "a b", "b": true}));
    }
}

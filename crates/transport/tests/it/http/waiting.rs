//! Calls that wait over HTTP: those that are told nothing meanwhile are parked, and nobody can tell.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use taffrail_mcp_core::{RunId, Seq};
use taffrail_runs::{Cancel, Until};
use tokio::time::{Instant, timeout};

use super::{
    ground::{Answer, Ground},
    mcp::{NEW, OLD, messages, modern, send},
};

/// Far more than anything here takes that does not wait.
const AT_ONCE: Duration = Duration::from_secs(10);

fn named(tool: &str) -> [(&str, &str); 3] {
    [NEW, ("mcp-method", "tools/call"), ("mcp-name", tool)]
}

fn result(answer: &Answer) -> Value {
    let messages = messages(answer);
    let last = messages.last().unwrap_or_else(|| panic!("{answer:?}"));
    assert_eq!(last["id"], 1, "{answer:?}");
    last["result"].clone()
}

/// A run that has nothing more to say until it is cancelled, and its head.
async fn held(ground: &Ground) -> (RunId, u64) {
    let run = ground.start("wait").await;
    // Its start and its checkpoint come before its state.
    ground.wait(&run, Until::ChangedAfter(Seq(2))).await;
    let head = ground.head(&run).await;
    (run, head)
}

async fn cancel(ground: &Ground, run: &RunId) {
    let cancel = Cancel { run: run.clone(), reason: None, actor: "test".into(), kill: true };
    ground.service.cancel(cancel).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_is_answered_when_it_is_over_however_it_was_asked_for() {
    let ground = Arc::new(Ground::new());
    let (run, head) = held(&ground).await;
    let status = json!({"run": run, "after": head, "wait_s": 60});
    let logs = json!({"run": run, "cursor": head, "wait_s": 60, "grep": "run-finished"});
    let mut calls = tokio::task::JoinSet::new();
    for (tool, arguments) in [("run_status", &status), ("run_logs", &logs)] {
        // Parked, parked in an older revision, and not parked.
        let old = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let mut told = modern(tool, arguments.clone(), None);
        told["params"]["_meta"]["progressToken"] = json!(7);
        for (headers, message) in [
            (named(tool).to_vec(), modern(tool, arguments.clone(), None)),
            (vec![OLD], old),
            (named(tool).to_vec(), told),
        ] {
            let (ground, headers) = (
                Arc::clone(&ground),
                headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect::<Vec<_>>(),
            );
            calls.spawn(async move {
                let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                (tool, result(&send(&ground, &headers, &message).await))
            });
        }
    }
    // None is answered before something happens.
    assert!(timeout(Duration::from_millis(700), calls.join_next()).await.is_err());
    cancel(&ground, &run).await;
    let answered = timeout(AT_ONCE, calls.join_all()).await.unwrap();
    assert_eq!(answered.len(), 6);
    for (tool, result) in answered {
        match tool {
            "run_status" => assert_eq!(result["structuredContent"]["status"], "cancelled", "{result}"),
            _ => {
                let text = result["content"][0]["text"].as_str().unwrap();
                assert!(text.contains("run-finished") && text.contains("next cursor: "), "{text}");
            }
        }
    }
    // Whichever way it comes, the result is the same, to the letter.
    for (tool, arguments) in [("run_status", status), ("run_logs", logs)] {
        let parked = result(&send(&ground, &named(tool), &modern(tool, arguments.clone(), None)).await);
        let mut told = modern(tool, arguments, None);
        told["params"]["_meta"]["progressToken"] = json!(7);
        assert_eq!(parked, result(&send(&ground, &named(tool), &told).await));
    }
    ground.service.close().await;
}

#[tokio::test]
async fn a_wait_in_vain_ends_in_time_with_what_there_is() {
    let ground = Ground::new();
    let (run, head) = held(&ground).await;
    let begun = Instant::now();
    let arguments = json!({"run": run, "after": head, "wait_s": 0.5});
    let status = result(&send(&ground, &named("run_status"), &modern("run_status", arguments, None)).await);
    assert_eq!(status["structuredContent"]["status"], "running");
    let arguments = json!({"run": run, "cursor": head, "wait_s": 0.5});
    let logs = result(&send(&ground, &named("run_logs"), &modern("run_logs", arguments, None)).await);
    assert!(logs["content"][0]["text"].as_str().unwrap().ends_with(&format!("next cursor: {head}")), "{logs}");
    assert!((Duration::from_secs(1)..AT_ONCE).contains(&begun.elapsed()), "{:?}", begun.elapsed());
    cancel(&ground, &run).await;
    ground.service.close().await;
}

#[tokio::test]
async fn what_is_wrong_is_told_at_once() {
    let ground = Ground::new();
    let run = ground.start("wait").await;
    let wait = json!({"run": run, "wait_s": 60});
    let refused = |headers: Vec<(&'static str, &'static str)>, message: Value| {
        let ground = &ground;
        async move {
            let answer = timeout(AT_ONCE, send(ground, &headers, &message)).await.expect("it waited");
            messages(&answer)[0].clone()
        }
    };
    // A header that says something else.
    let other = refused(named("run_logs").to_vec(), modern("run_status", wait.clone(), None)).await;
    assert_eq!(other["error"]["code"], -32020, "{other}");
    // Metadata that lacks something, and a revision that does not exist.
    let mut without = modern("run_status", wait.clone(), None);
    without["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    assert!(refused(named("run_status").to_vec(), without).await["error"]["code"].is_i64());
    let mut unknown = modern("run_status", wait.clone(), None);
    unknown["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    assert!(refused(named("run_status").to_vec(), unknown).await["error"]["code"].is_i64());
    // Arguments that are wrong, and a run that is not there.
    for arguments in [json!({"run": run, "wait_s": -1}), json!({"run": "no-run", "wait_s": 60}), json!({"wait_s": 60})]
    {
        let answer = refused(named("run_status").to_vec(), modern("run_status", arguments, None)).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    let bad = json!({"run": run, "grep": "(", "wait_s": 60});
    assert_eq!(refused(named("run_logs").to_vec(), modern("run_logs", bad, None)).await["result"]["isError"], true);
    cancel(&ground, &run).await;
    ground.service.close().await;
}

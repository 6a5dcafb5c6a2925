//! One line for a person who watches: where a run is, and what it last wrote.
//!
//! The message of progress notifications, and the `statusMessage` of tasks.

use serde_json::Value;
use taffrail_progress::one_line;

/// `test (step 2): last line of output`, for a run that goes on.
pub(super) fn line(state: Option<&str>, step: u64, output: Option<&str>) -> String {
    let mut text = match state {
        Some(state) => format!("{state} (step {step})"),
        None => "started".to_owned(),
    };
    if let Some(output) = output.filter(|output| !output.trim().is_empty()) {
        text.push_str(": ");
        text.push_str(output);
    }
    one_line(&text)
}

/// The same for a run that may rest or be over: what it waits for, how it ended, what to do.
pub(super) fn of_snapshot(snapshot: &Value, output: Option<&str>) -> String {
    let text = |key: &str| snapshot.get(key).and_then(Value::as_str);
    let step = snapshot.get("step").and_then(Value::as_u64).unwrap_or(0);
    let at = || text("at").or_else(|| text("state")).map(|at| format!(" at {at}")).unwrap_or_default();
    match text("status").unwrap_or_default() {
        "running" => line(text("state"), step, output),
        "suspended" => {
            let approval = snapshot.get("approval");
            let said = |key: &str| approval.and_then(|approval| approval.get(key)).and_then(Value::as_str);
            let what = said("message").unwrap_or("waits");
            one_line(&format!("waits{}: {what} {}", at(), text("next").unwrap_or_default()))
        }
        "done" => one_line(&format!("done after {step} steps")),
        "halt" => one_line(&format!("halted{}: {}", at(), text("error").unwrap_or("failed"))),
        "interrupted" => one_line(&format!("interrupted{}: its server ended; the tool resume goes on with it", at())),
        other => one_line(&format!("{other}{}", at())),
    }
}

/// The text of a `log` or `message` record.
pub(super) fn text_of(record: &str) -> Option<String> {
    let record: Value = serde_json::from_str(record).ok()?;
    record.get("text")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_running_run_is_its_state_and_its_last_line() {
        assert_eq!(line(Some("test"), 2, Some("\u{1b}[32mok\u{1b}[0m  12 passed\n")), "test (step 2): ok 12 passed");
        assert_eq!(line(Some("test"), 2, Some("  ")), "test (step 2)");
        assert_eq!(line(None, 0, None), "started");
        assert_eq!(line(Some("s"), 1, Some(&"x".repeat(500))).chars().count(), taffrail_progress::MESSAGE_CHARS);
    }

    #[test]
    fn a_run_that_rests_says_why() {
        let check = |snapshot: Value, expected: &str| assert_eq!(of_snapshot(&snapshot, None), expected);
        check(json!({ "status": "running", "state": "b", "step": 3 }), "b (step 3)");
        check(
            json!({ "status": "suspended", "at": "agree", "approval": { "message": "Deploy?" }, "next": "Ask them." }),
            "waits at agree: Deploy? Ask them.",
        );
        check(json!({ "status": "done", "step": 3 }), "done after 3 steps");
        check(json!({ "status": "halt", "at": "b", "error": "timeout" }), "halted at b: timeout");
        check(json!({ "status": "cancelled", "at": "b" }), "cancelled at b");
        assert!(of_snapshot(&json!({ "status": "interrupted" }), None).contains("resume"));
    }
}

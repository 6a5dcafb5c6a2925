//! One sentence: what to call next, and when.

use taffrail_mcp_core::{Approver, RunFold, RunStatus, Snapshot};

/// The sentence for a snapshot. It names tools as agents know them; people read the same words as commands.
pub(crate) fn step(snapshot: &Snapshot, fold: &RunFold) -> String {
    let Snapshot { run, head, status, approval, .. } = snapshot;
    match (status, approval) {
        (RunStatus::Suspended, _) if fold.external => {
            format!("Waits where it runs: call run_status with run {run} and after {head} to wait for the next change.")
        }
        (RunStatus::Interrupted, _) if fold.external => format!(
            "Interrupted: it goes on when its producer sends events again; call run_logs with run {run} and tail 50 to see its last output."
        ),
        (RunStatus::Running, _) => format!(
            "Running: call run_status with run {run} and after {head} to wait for the next change, or run_logs for its output."
        ),
        (RunStatus::Suspended, Some(approval)) if approval.decision.is_some() => {
            format!("Decided: call resume with run {run} to go on.")
        }
        (RunStatus::Suspended, Some(approval)) if approval.schema.is_some() => {
            format!("Waits for an answer: call resume with run {run} and the answer as inputs.")
        }
        (RunStatus::Suspended, Some(approval)) if approval.by == Approver::Agent => format!(
            "Waits for a decision: call resume with run {run} and inputs {{\"decision\": \"approve\"}} or {{\"decision\": \"reject\"}}."
        ),
        (RunStatus::Suspended, _) => {
            format!(
                "Waits for a person: ask them to run `taffrail approve {run}` (or with --reject), then call run_status."
            )
        }
        (RunStatus::Interrupted, _) => {
            format!("Interrupted: call resume with run {run} to go on at its last state.")
        }
        (RunStatus::Done, _) => format!("Finished: call run_logs with run {run} to read its output."),
        (RunStatus::Halt, _) => format!("Halted: call run_logs with run {run} and tail 50 to see why."),
        (RunStatus::Cancelled, _) => "Cancelled: start a new run if the work is still wanted.".to_owned(),
    }
}

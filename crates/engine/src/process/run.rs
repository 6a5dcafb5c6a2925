//! Starting one process and staying with it to its end.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use taffrail_mcp_core::{EventSink, Exit, Stream};
use tokio::{net::unix::pipe::Receiver, time::sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    Cancel, Command, Outcome, OutputBudget, Scope, SpawnError,
    ending::{Ending, Step},
    family,
    pump::Pump,
    spawn,
};

/// How often adopted orphans that have ended are waited for while a process runs.
const TIDY: Duration = Duration::from_secs(2);

/// Starts `command`, hands what it writes to `sink`, and returns when nothing of it is left.
///
/// Each stream arrives in its own order, a line as soon as it was read, through [`EventSink::send`]: a sink without room
/// makes the process wait, nothing is dropped. What `budget` does not admit is counted in `clipped` events, at the
/// latest 10 s after it was read and at the end, so that for each stream bytes read = bytes in events + bytes clipped.
/// A sink that panics is not used again; the process goes on.
///
/// The state is over when the process has exited and both pipes are at their end, or 1 s after the exit; what was
/// written by then is kept. What is then left of its group and of its descendants that left the group is killed. A time
/// limit, or [`Cancel::cancel`], first sends SIGTERM and gives the whole group the grace of `cancel`; what is written
/// meanwhile is kept too. When `cancel` was asked for before the start, nothing is started.
///
/// Dropping the future kills the process and what it left, in the background. With `detach`, nothing is killed but by
/// time limit and cancel.
///
/// Needs a tokio runtime with I/O and time enabled. The calling program becomes the reaper of orphans below it
/// (`PR_SET_CHILD_SUBREAPER`), and children it starts itself in process groups of their own may be taken for such
/// orphans: start them through here.
///
/// # Errors
///
/// When the process could not be started; nothing was written then.
pub async fn run(
    command: &Command,
    sink: &Arc<dyn EventSink>,
    budget: &OutputBudget,
    scope: &Scope,
    cancel: &Cancel,
) -> Result<Outcome, SpawnError> {
    if cancel.is_cancelled() {
        let exit = Exit::Signal("SIGTERM".to_owned());
        return Ok(Outcome { exit, cancelled: true, stdout: Vec::new(), truncated: false });
    }
    let (mut process, out, err) = spawn::start(command, scope)?;
    let stop = CancellationToken::new();
    let mut pumps = pin!(async {
        tokio::join!(
            Pump::new(out, Stream::Stdout, command, &**sink, budget).run(&stop),
            Pump::new(err, Stream::Stderr, command, &**sink, budget).run(&stop),
        )
    });
    let mut read = None;
    let mut ending = Ending::new(Instant::now(), command.timeout, cancel.grace());
    let mut exit = None;
    let (mut cancel_seen, mut kill_seen) = (false, false);
    loop {
        if ending.awaits_group() && process.group_is_empty() {
            ending.group_empty();
        }
        let now = Instant::now();
        let until = match ending.step(now) {
            Step::Term => {
                process.signal(Signal::TERM);
                continue;
            }
            Step::Kill => {
                process.signal(Signal::KILL);
                continue;
            }
            Step::Over => break,
            Step::Wait(until) => until,
        };
        let tidy = now + TIDY;
        tokio::select! {
            status = process.exited(), if exit.is_none() => {
                exit = Some(status);
                ending.exited(Instant::now());
            }
            done = &mut pumps, if read.is_none() => {
                read = Some(done);
                ending.drained();
            }
            () = cancel.cancelled(), if !cancel_seen => {
                cancel_seen = true;
                ending.cancel();
            }
            () = cancel.killed(), if !kill_seen => {
                kill_seen = true;
                ending.kill();
            }
            () = sleep_until(until.unwrap_or(tidy).min(tidy).into()) => family::tidy(),
        }
    }
    let (timed_out, cancelled) = ending.asked_by();
    process.end(timed_out || cancelled).await;
    stop.cancel();
    let ((tail, out), (_, err)) = match read {
        Some(read) => read,
        None => pumps.await,
    };
    if command.detach {
        discard(out);
        discard(err);
    }
    let (stdout, truncated) = tail.unwrap_or_default().into_end();
    let exit = if timed_out { Exit::Timeout(true) } else { exit.unwrap_or(Exit::Code(-1)) };
    Ok(Outcome { exit, cancelled, stdout, truncated })
}

/// Goes on reading for detached processes, which a closed pipe would end.
fn discard(from: Option<Receiver>) {
    if let Some(mut from) = from {
        tokio::spawn(async move { tokio::io::copy(&mut from, &mut tokio::io::sink()).await });
    }
}

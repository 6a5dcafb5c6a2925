//! Watching a run of a server from a terminal, until it rests.

use std::time::Duration;

use anyhow::Result;
use futures_util::FutureExt as _;
use taffrail_mcp_core::{LineHead, RunId, Start};
use taffrail_transport::client::{Client, Followed};
use tokio::time::Instant;

use super::logs::said;
use crate::{
    commands::watch::{Asked, DRAW_EVERY, SIZE, Show, Signals, gap_line, now, remark},
    exit,
};

/// How long a server that is away is left alone before it is asked again whether the run waits.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// Shows a run from a position on, until it rests; Ctrl-C cancels it, a second one kills. A signal to end leaves it to
/// the server.
pub(super) async fn watch(client: &Client, run: &RunId, start: Start, show: Show) -> Result<u8> {
    let mut view = show.view();
    let mut signals = Signals::new()?;
    let mut follow = client.follow(run.clone(), start);
    let mut draw = tokio::time::interval(DRAW_EVERY);
    draw.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Set when the run may wait for somebody: the stream goes on through that, so that the server is asked.
    let mut ask_at = None;
    let snapshot = 'rests: loop {
        tokio::select! {
            item = follow.next() => {
                let mut item = item;
                // What has come together is shown together.
                loop {
                    match item.transpose()? {
                        Some(Followed::Record { line, .. }) => {
                            view.record(&line);
                            ask_at = is_end(&line).then(Instant::now);
                        }
                        Some(Followed::Gap(gap)) => view.record(gap_line(&gap).as_bytes()),
                        Some(Followed::Connection(connection)) => remark(&mut view, show, &said(&connection)),
                        Some(Followed::End(snapshot)) => break 'rests *snapshot,
                        None => break 'rests client.snapshot(run).await?,
                    }
                    match follow.next().now_or_never() {
                        Some(next) => item = next,
                        None => break,
                    }
                }
                if show == Show::Json {
                    view.tick(now(), SIZE);
                }
            }
            _ = draw.tick() => {
                view.tick(now(), crossterm::terminal::size().unwrap_or(SIZE));
                if ask_at.is_some_and(|at| at <= Instant::now()) {
                    match tokio::time::timeout(ASK_EVERY, client.snapshot(run)).await {
                        Ok(Ok(snapshot)) if snapshot.status.rests() => break snapshot,
                        // It goes on already.
                        Ok(Ok(_)) => ask_at = None,
                        Ok(Err(error)) if !error.is_transient() => return Err(error.into()),
                        Ok(Err(_)) | Err(_) => ask_at = Some(Instant::now() + ASK_EVERY),
                    }
                }
            }
            signal = signals.next() => {
                let kill = match signal {
                    Asked::Cancel => false,
                    Asked::Kill => true,
                    Asked::Shutdown | Asked::ShutdownNow => break client.snapshot(run).await?,
                };
                // In a task of its own, so that its records are seen, and a second signal is heard.
                let (client, run) = (client.clone(), run.clone());
                tokio::spawn(async move {
                    if let Err(error) = client.cancel(&run, Some("Ctrl-C"), kill).await {
                        tracing::error!(%error, "the run could not be cancelled");
                    }
                });
            }
        }
    };
    view.finish(&snapshot);
    Ok(exit::of_run(snapshot.status))
}

/// Whether a run may rest after this record.
fn is_end(line: &[u8]) -> bool {
    LineHead::parse(line).is_some_and(|head| head.kind == "run-finished")
}

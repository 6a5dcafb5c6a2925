//! Watching a run from a terminal, until it rests.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, SystemTime},
};

use anyhow::{Result, bail};
use futures_util::future::OptionFuture;
use taffrail_mcp_core::{Gap, RunFold, RunId, Seq, Snapshot, Start, Timestamp};
use taffrail_relay::{Delivery, RelayError};
use taffrail_runs::{Cancel, Service};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

use crate::{
    context,
    view::{Mode, View},
};

/// The live part is drawn this often.
pub(super) const DRAW_EVERY: Duration = Duration::from_millis(100);
/// What a second signal leaves a store that fails: its processes are killed in that time.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Time for the spool to catch up before the command exits; it is rarely behind by more than a block.
const SPOOL_TIME: Duration = Duration::from_secs(10);
/// Of a terminal that does not tell.
pub(super) const SIZE: (u16, u16) = (80, 24);

/// Shows a run that this process hosts from after a position on, until it rests; Ctrl-C cancels it, a second one kills.
/// Returns its state, with everything about it stored.
pub(crate) async fn watch(service: &Service, run: &RunId, after: Seq, show: Show) -> Result<RunFold> {
    let (_, mut no_remarks) = mpsc::unbounded_channel();
    watch_with(service, run, after, show, &mut no_remarks, |snapshot| snapshot).await
}

/// The same, with remarks that are not in the log, and what is told at the end changed by `at_end`.
pub(super) async fn watch_with(
    service: &Service,
    run: &RunId,
    after: Seq,
    show: Show,
    remarks: &mut mpsc::UnboundedReceiver<String>,
    at_end: impl FnOnce(Snapshot) -> Snapshot,
) -> Result<RunFold> {
    let mut view = show.view();
    let mut signals = Signals::new()?;
    let mut follower = service.follow(run, Start::After(after)).await?;
    let mut draw = tokio::time::interval(DRAW_EVERY);
    draw.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Set by the first signal, and to less by the second.
    let mut given_up = OptionFuture::default();
    let fold = loop {
        tokio::select! {
            delivery = follower.next() => {
                match delivery {
                    // The service was closed. The look below makes sure how the run ended, and that comes to be read here.
                    Err(RelayError::Closed) => {
                        tokio::time::sleep(DRAW_EVERY).await;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                    Ok(Delivery::Blocks(blocks)) => {
                        // Who shows nothing need not look: cutting a flood into lines costs more than storing it.
                        let shown = blocks.iter().filter(|_| show != Show::Nothing);
                        for block in shown {
                            for line in block.lines() {
                                view.record(&line);
                            }
                        }
                    }
                    Ok(Delivery::Gap(gap)) => view.record(gap_line(&gap).as_bytes()),
                }
                // Programs get each record at once; people see it with the next drawing.
                if show == Show::Json {
                    view.tick(now(), SIZE);
                }
            }
            _ = draw.tick() => {
                view.tick(now(), crossterm::terminal::size().unwrap_or(SIZE));
                // Looked at between deliveries, so that all that was written before the end is shown.
                let fold = service.fold(run).await?;
                if fold.status.rests() && follower.position() >= fold.last {
                    break fold;
                }
            }
            Some(text) = remarks.recv() => remark(&mut view, show, &text),
            Some(()) = &mut given_up => {
                // The guard ends what is left of the processes.
                bail!("the store still fails, so that the end of run {run} is not stored; its processes are ended");
            }
            signal = signals.next() => {
                // In a task of its own, so that a second signal is heard.
                tokio::spawn(act(signal, service.clone(), run.clone()));
                let patience = if signal.is_first() { service.patience() } else { AT_ONCE };
                given_up = Some(Box::pin(service.store_given_up(patience))).into();
            }
        }
    };
    service.finish(run, SPOOL_TIME).await;
    view.finish(&at_end(service.snapshot(run).await?));
    Ok(fold)
}

async fn act(signal: Asked, service: Service, run: RunId) {
    let kill = match signal {
        Asked::Shutdown => return service.close().await,
        Asked::ShutdownNow => return service.close_within(Duration::ZERO).await,
        Asked::Cancel => false,
        Asked::Kill => true,
    };
    let request = Cancel { run, reason: Some("Ctrl-C".into()), actor: context::actor(), kill };
    if let Err(error) = service.cancel(request).await {
        tracing::error!(%error, "the run could not be cancelled");
    }
}

/// Says something that is not in the log, where it does not get in the way of what is shown.
#[expect(clippy::print_stderr, reason = "people have to learn it also where records go to stdout, or nowhere")]
pub(super) fn remark(view: &mut View, show: Show, text: &str) {
    match show {
        Show::People => view.remark(&format!("taffrail: {text}")),
        Show::Json | Show::Nothing => eprintln!("taffrail: {text}"),
    }
}

/// A gap as a line.
pub(crate) fn gap_line(gap: &Gap) -> String {
    format!("{}\n", gap.to_json())
}

/// Now.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    /// For people, on stderr.
    People,
    /// Records on stdout.
    Json,
    /// Not at all.
    Nothing,
}

impl Show {
    pub(super) fn view(self) -> View {
        let stderr = io::stderr();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let term = std::env::var("TERM").ok();
        let out: Box<dyn Write + Send> = match self {
            Show::Json => Box::new(io::BufWriter::with_capacity(1 << 16, io::stdout())),
            Show::People => Box::new(io::stderr()),
            Show::Nothing => Box::new(io::sink()),
        };
        View::new(
            Mode::pick(self == Show::Json, self == Show::People && stderr.is_terminal(), no_color, term.as_deref()),
            out,
        )
    }
}

/// What signals ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Cancel,
    Kill,
    Shutdown,
    ShutdownNow,
}

impl Asked {
    fn is_first(self) -> bool {
        matches!(self, Asked::Cancel | Asked::Shutdown)
    }
}

/// The signals that ask for it.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    interrupts: u32,
    terminates: u32,
}

impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupts: 0,
            terminates: 0,
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => {
                self.interrupts += 1;
                if self.interrupts == 1 { Asked::Cancel } else { Asked::Kill }
            }
            _ = self.terminate.recv() => self.terminated(),
            _ = self.hangup.recv() => self.terminated(),
        }
    }

    fn terminated(&mut self) -> Asked {
        self.terminates += 1;
        if self.terminates == 1 { Asked::Shutdown } else { Asked::ShutdownNow }
    }
}

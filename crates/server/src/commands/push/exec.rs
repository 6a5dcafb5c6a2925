//! `taffrail exec --url`.

use std::{path::Path, sync::atomic::Ordering, time::Duration};

use anyhow::Result;
use taffrail_mcp_core::{RunId, Snapshot, ThreadId};
use taffrail_runs::{RunsError, Start, Work};
use taffrail_transport::client::Client;
use tokio::{sync::mpsc, task::JoinHandle};
use uuid::Uuid;

use super::{
    folder::Folder,
    format::Job,
    leftovers::{self, Left},
    send::{Sending, Sent, Signals},
};
use crate::{
    cli,
    commands::watch::{self, Show, watch_with},
    context, exit, view,
};

/// When sending the rest takes longer, people are told what is waited for.
const SAY_AFTER: Duration = Duration::from_secs(2);

/// Runs one command here, keeps its run on a server, and passes the command's exit code on.
///
/// The command begins at once and ends when it ends, wherever the server is.
pub(crate) async fn exec(common: &cli::Common, client: &Client, args: cli::Exec) -> Result<u8> {
    let cli::Exec { name, thread, output_cap, json, quiet, argv, drain, remote: _ } = args;
    let program = argv.first().map(Path::new).and_then(Path::file_name);
    let name = name.or_else(|| Some(program?.to_string_lossy().into_owned())).unwrap_or_else(|| "exec".into());
    let run = RunId::new(Uuid::now_v7().to_string())?;
    let thread = thread.map(ThreadId::new).transpose().map_err(RunsError::from)?;
    let thread = thread.unwrap_or_else(|| run.clone().into());
    let layout = context::layout(common)?;
    context::make_private(layout.root())?;
    context::guard();
    let (remark, mut remarks) = mpsc::unbounded_channel();
    let signals = Signals::new(remark, Some("what the command writes is kept here until then"));
    let job = Job::new(client.server().to_string(), run.clone(), thread.clone(), name.clone());
    let mut sending = begin(Folder::make(&layout, &job)?, job, signals.clone())?;
    let service = sending.service.clone();
    let start =
        Start { thread: Some(thread), run: Some(run.clone()), ..Start::new(Work::Command { name, argv, output_cap }) };
    let started = match service.start(start).await {
        Ok(started) => started,
        Err(error) => {
            // Nothing has begun.
            sending.close(true).await;
            return Err(error.into());
        }
    };
    let show = match (json, quiet) {
        (true, _) => Show::Json,
        (_, true) => Show::Nothing,
        _ => Show::People,
    };
    let (kept, server) = (sending.folder.path().to_owned(), client.server().clone());
    let own = {
        let (client, signals, kept) = (client.clone(), signals.clone(), kept.clone());
        tokio::spawn(async move {
            let sent = sending.send(&client).await;
            if let Ok(Sent::Refused(error)) = &sent {
                signals.say(format!(
                    "{error}: nothing more is sent to {}; the command goes on, and its records are kept in {}",
                    client.server(),
                    kept.display()
                ));
            }
            (sending, sent)
        })
    };
    let others = {
        let (client, signals) = (client.clone(), Signals { when_lost: None, ..signals.clone() });
        tokio::spawn(async move { leftovers::send(&layout, &client, &signals).await })
    };
    let fold = watch_with(&service, &started.run, started.after, show, &mut remarks, there).await?;
    signals.hurry.cancel();
    let rest = Drain { own, others, remarks, drain }.finish().await?;
    if rest != Rest::Nothing {
        let total = fold.last.0.saturating_sub(signals.skipped.load(Ordering::Relaxed));
        let unsent = total.saturating_sub(signals.acknowledged.load(Ordering::Relaxed));
        let then = match rest {
            Rest::Never => "no more of them is taken there".to_owned(),
            _ => format!("`{} push`, or the next run that is sent there, sends them", view::hint()),
        };
        say(&format!("{unsent} records of run {run} are not at {server}: they are kept in {}; {then}", kept.display()));
    }
    service.close().await;
    Ok(exit::of_exec(&fold))
}

fn begin(folder: Folder, job: Job, signals: Signals) -> Result<Sending> {
    match folder.open() {
        Ok(service) => Ok(Sending { folder, job, service, signals }),
        Err(error) => {
            folder.remove();
            Err(error)
        }
    }
}

/// The snapshot as it is of a run that lives elsewhere: nobody can go on with it here.
fn there(snapshot: Snapshot) -> Snapshot {
    Snapshot { checkpoint: None, ..snapshot }
}

/// What has not arrived when there is no more time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// Somebody else sends it.
    Later,
    /// The server has ended the run, or knows nothing of it any more.
    Never,
}

/// What is still to be sent when the command has ended.
struct Drain {
    own: JoinHandle<(Sending, Result<Sent>)>,
    others: JoinHandle<Vec<Left>>,
    remarks: mpsc::UnboundedReceiver<String>,
    drain: Duration,
}

impl Drain {
    /// Waits for it, but not too long, and not after another signal.
    async fn finish(self) -> Result<Rest> {
        let Self { mut own, mut others, mut remarks, drain } = self;
        let mut signals = watch::Signals::new()?;
        let deadline = tokio::time::sleep(drain);
        let patience = tokio::time::sleep(SAY_AFTER);
        tokio::pin!(deadline, patience);
        let (mut rest, mut told) = (None, false);
        loop {
            tokio::select! {
                ended = &mut own, if rest.is_none() => {
                    let (sending, sent) = ended?;
                    let arrived = match sent? {
                        Sent::Whole => Rest::Nothing,
                        Sent::Refused(_) if sending.job.given_up.is_some() => Rest::Never,
                        Sent::Refused(_) => Rest::Later,
                    };
                    rest = Some(arrived);
                    sending.close(arrived == Rest::Nothing).await;
                    if arrived != Rest::Nothing {
                        break;
                    }
                }
                // Those of others, too, now that the server is there.
                _ = &mut others, if rest.is_some() => break,
                Some(text) = remarks.recv() => say(&text),
                () = &mut patience, if !told => {
                    told = true;
                    say("what is left is being sent; Ctrl-C leaves it to the next time");
                }
                () = &mut deadline => break,
                _ = signals.next() => break,
            }
        }
        own.abort();
        others.abort();
        while let Ok(text) = remarks.try_recv() {
            say(&text);
        }
        Ok(rest.unwrap_or(Rest::Later))
    }
}

/// Tells people, who see nothing else any more.
#[expect(clippy::print_stderr, reason = "the view has ended, and people have to learn it")]
fn say(text: &str) {
    eprintln!("taffrail: {text}");
}

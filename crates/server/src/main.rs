//! The `taffrail` command: configuration and wiring, and how things look on a terminal.

mod cli;
mod commands;
mod context;
mod exit;
mod store;
mod token;
mod units;
mod view;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use taffrail_runs::RunsError;
use taffrail_transport::client::ClientError;
use tracing_subscriber::EnvFilter;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::ProcessGuard { args } = cli.command {
        return taffrail_engine::process::guard_main(args);
    }
    start_tracing(cli.common.log.as_deref().unwrap_or(cli.command.usual_log()));
    match run(cli) {
        Ok(status) => exit::code(status),
        Err(error) => report(&error),
    }
}

/// Threads that run tasks: half of the processors. The store, the children of runs and the clients on this machine want
/// some too, and a task that moves between threads comes later than one that waits its turn.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |all| all.get() / 2).max(1)
}

fn run(cli: Cli) -> Result<u8> {
    let Cli { common, command } = cli;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers()).enable_all().build()?;
    let status = runtime.block_on(async {
        let there = command.remote().map(commands::remote::client).transpose()?.flatten();
        match (command, there) {
            (Command::Run(args), Some(client)) => commands::remote::run::run(&client, args).await,
            (Command::Exec(args), Some(client)) => commands::push::exec(&common, &client, args).await,
            (Command::Logs(args), Some(client)) => commands::remote::logs::logs(&client, args).await,
            (Command::Runs(args), Some(client)) => commands::remote::look::runs(&client, args).await,
            (Command::Status(args), Some(client)) => commands::remote::look::status(&client, args).await,
            (Command::Resume(args), Some(client)) => commands::remote::run::resume(&client, args).await,
            (Command::Approve(args), Some(client)) => commands::remote::run::approve(&client, args).await,
            (Command::Cancel(args), Some(client)) => commands::remote::look::cancel(&client, args).await,
            (Command::Run(args), None) => commands::run::run(&common, args).await,
            (Command::Exec(args), None) => commands::exec::exec(&common, args).await,
            (Command::Logs(args), None) => commands::logs::logs(&common, args).await,
            (Command::Runs(args), None) => commands::look::runs(&common, args).await,
            (Command::Status(args), None) => commands::look::status(&common, args).await,
            (Command::Resume(args), None) => commands::resume::resume(&common, args).await,
            (Command::Approve(args), None) => commands::resume::approve(&common, args).await,
            (Command::Cancel(args), None) => commands::look::cancel(&common, args).await,
            (Command::Push(args), _) => commands::push::push(&common, args).await,
            (Command::Serve(args), _) => commands::serve::serve(&common, args).await,
            (Command::Mcp(args), _) => commands::mcp::mcp(&common, args).await,
            (Command::Schema(args), _) => commands::schema::schema(args),
            (Command::Gc(args), _) => commands::gc::gc(&common, args).await,
            (Command::Doctor(args), _) => commands::doctor::doctor(&common, args).await,
            (Command::ProcessGuard { .. }, _) => Ok(exit::USAGE),
        }
    });
    // Left to the exit of the process. Shut down, it would wait for a blocking read that nothing ends (standard input,
    // say), or panic in a task that is in the middle of a query and then wants to wait for a timer.
    std::mem::forget(runtime);
    status
}

/// Says what happened, and where that helps what lies below.
#[expect(clippy::print_stderr, reason = "this is where a command tells people why it failed")]
fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return exit::code(exit::DONE);
    }
    eprintln!("taffrail: {error:#}");
    if let Some(error) = error.downcast_ref::<ClientError>() {
        return exit::code(commands::remote::status_of(error));
    }
    let not_found = error.downcast_ref::<RunsError>().is_some_and(RunsError::is_not_found);
    exit::code(if not_found { exit::NOT_FOUND } else { usage_or_failure(error) })
}

/// What the caller typed wrong is a usage error.
fn usage_or_failure(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<RunsError>() {
        Some(
            RunsError::Inputs { .. }
            | RunsError::Id(_)
            | RunsError::Command(_)
            | RunsError::Playbook(_)
            | RunsError::KeyLength { .. },
        ) => exit::USAGE,
        Some(RunsError::Relay(taffrail_relay::RelayError::BadPattern { .. })) => exit::USAGE,
        Some(RunsError::Relay(taffrail_relay::RelayError::CursorAhead { .. })) => exit::USAGE,
        Some(RunsError::Resume(error)) if error.is_about_what_was_given() => exit::USAGE,
        _ if error.is::<commands::Usage>() => exit::USAGE,
        _ => exit::HALT,
    }
}

/// The reader of our output has seen enough (`… | head`).
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref::<serde_json::Error>() {
        Some(error) => error.io_error_kind(),
        None => cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind),
    };
    error.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::BrokenPipe))
}

fn start_tracing(filter: &str) {
    // The SDK logs requests, arguments included, at `debug`, and what clients do wrong at `warn`, which they are told
    // anyhow: only who asks for it by name gets that.
    let filter = EnvFilter::try_new(format!("rmcp=error,{filter}")).unwrap_or_else(|_| EnvFilter::new("warn"));
    let ansi = commands::color(&std::io::stderr());
    let built = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let built = built.with_ansi(ansi);
    // Already set only in tests.
    let _ = built.try_init();
}

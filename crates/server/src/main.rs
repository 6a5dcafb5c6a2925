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

fn run(cli: Cli) -> Result<u8> {
    let Cli { common, command } = cli;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let status = runtime.block_on(async {
        match command {
            Command::Run(args) => commands::run::run(&common, args).await,
            Command::Exec(args) => commands::exec::exec(&common, args).await,
            Command::Logs(args) => commands::logs::logs(&common, args).await,
            Command::Runs(args) => commands::look::runs(&common, args).await,
            Command::Status(args) => commands::look::status(&common, args).await,
            Command::Resume(args) => commands::resume::resume(&common, args).await,
            Command::Approve(args) => commands::resume::approve(&common, args).await,
            Command::Cancel(args) => commands::look::cancel(&common, args).await,
            Command::Serve(args) => commands::serve::serve(&common, args).await,
            Command::Mcp(args) => commands::mcp::mcp(&common, args).await,
            Command::Schema(args) => commands::schema::schema(args),
            Command::Gc(args) => commands::gc::gc(&common, args).await,
            Command::Doctor(args) => commands::doctor::doctor(&common, args).await,
            Command::ProcessGuard { .. } => Ok(exit::USAGE),
        }
    });
    // A blocking read that nothing will end (standard input, say) must not hold up the exit.
    runtime.shutdown_background();
    status
}

/// Says what happened, and where that helps what lies below.
#[expect(clippy::print_stderr, reason = "this is where a command tells people why it failed")]
fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return exit::code(exit::DONE);
    }
    eprintln!("taffrail: {error:#}");
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

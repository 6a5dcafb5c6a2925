//! `taffrail run`.

use anyhow::Result;
use taffrail_mcp_core::{RunId, ThreadId};
use taffrail_runs::{RunsError, Start, Work};

use super::{
    detach, inputs,
    watch::{Show, watch},
};
use crate::{cli, context, exit};

/// Starts a playbook and shows it, or leaves it to a process of its own.
pub(crate) async fn run(common: &cli::Common, args: cli::Run) -> Result<u8> {
    let cli::Run { playbook, inputs, thread, idempotency_key, json, detach, host, remote: _ } = args;
    if host.is_some() {
        detach::leave_terminal()?;
    }
    let service = if detach { context::open(common)? } else { context::open_host(common)? };
    let specs = service.find_playbook(playbook.clone(), true).await?;
    let values = inputs::by_spec(&specs.inputs, &inputs.inputs)?;
    if detach {
        taffrail_engine::playbook::resolve_inputs(&specs, &values)
            .map_err(|errors| RunsError::Inputs { playbook: specs.name.clone(), errors })?;
        return detach::run(common, &service, json).await;
    }
    let start = Start {
        inputs: values,
        thread: thread.map(ThreadId::new).transpose().map_err(RunsError::from)?,
        idempotency_key,
        run: host.as_deref().map(RunId::new).transpose().map_err(RunsError::from)?,
        ..Start::new(Work::Playbook { name: playbook, paths: true })
    };
    let started = service.start(start).await?;
    if host.is_some() {
        detach::tell(&started.run);
        if started.existing {
            return Ok(exit::DONE);
        }
    }
    let show = match (json, host.is_some()) {
        (_, true) => Show::Nothing,
        (true, _) => Show::Json,
        (false, _) => Show::People,
    };
    let fold = watch(&service, &started.run, started.after, show).await?;
    service.close().await;
    Ok(exit::of_run(fold.status))
}

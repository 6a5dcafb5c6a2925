//! What every command stands on: the data directory, the store, the service.

use std::{
    fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail};
use taffrail_engine::process::GuardCommand;
use taffrail_relay::{Relay, Store};
use taffrail_runs::{Config, Layout, Service};
use taffrail_store_sqlite::SqliteStore;

use crate::{cli::Common, view};

/// Opens the service on the data directory, making that when it is not there.
pub(crate) fn open(common: &Common) -> Result<Service> {
    let layout = layout(common)?;
    make_private(layout.root())?;
    let store = Arc::new(SqliteStore::open(layout.store(), Default::default())?);
    open_on(common, store, |_| {})
}

/// Opens the service on a store; what is of this machine only stays in the data directory.
fn open_on(common: &Common, store: Arc<dyn Store>, change: impl FnOnce(&mut Config)) -> Result<Service> {
    view::set_hint();
    let layout = layout(common)?;
    let relay = Relay::start(store, Default::default())?;
    // A server may be started anywhere, also in a folder that is gone.
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let playbooks = cwd.join(&common.playbooks);
    let mut config = Config::new(layout, playbooks, cwd);
    change(&mut config);
    Ok(Service::open(relay, config)?)
}

/// The same for a command that hosts runs: what a kill of this process leaves is ended by a guard.
pub(crate) fn open_host(common: &Common) -> Result<Service> {
    guard();
    Ok(tended(open(common)?))
}

/// The same on a store that need not be the data directory's own, with another configuration.
pub(crate) fn open_host_on(
    common: &Common,
    store: Arc<dyn Store>,
    change: impl FnOnce(&mut Config),
) -> Result<Service> {
    guard();
    Ok(tended(open_on(common, store, change)?))
}

/// What a kill of this process leaves is ended.
pub(crate) fn guard() {
    if let Ok(program) = std::env::current_exe() {
        GuardCommand { program, args: vec!["process-guard".into()] }.install();
    }
}

fn tended(service: Service) -> Service {
    let tended = service.clone();
    // Nobody has to wait for that.
    tokio::spawn(async move { tended.tend().await });
    service
}

/// Where things are.
pub(crate) fn layout(common: &Common) -> Result<Layout> {
    let root = match &common.data_dir {
        Some(dir) => dir.clone(),
        None => default_data_dir()?,
    };
    Ok(Layout::new(std::path::absolute(&root).with_context(|| format!("cannot use {}", root.display()))?))
}

/// `$XDG_STATE_HOME/taffrail`, or `~/.local/state/taffrail` (XDG Base Directory Specification 0.8).
fn default_data_dir() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(state) = absolute("XDG_STATE_HOME") {
        return Ok(state.join("taffrail"));
    }
    match absolute("HOME") {
        Some(home) => Ok(home.join(".local/state/taffrail")),
        None => bail!("neither XDG_STATE_HOME nor HOME is set: say where runs are kept with --data-dir"),
    }
}

/// Makes a folder that is not there, for the user only.
pub(crate) fn make_private(dir: &Path) -> Result<()> {
    if !dir.is_dir() {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.with_context(|| format!("cannot make the data directory {}", dir.display()))?;
    }
    Ok(())
}

/// Who acts, for the log.
pub(crate) fn actor() -> String {
    let user = std::env::var("USER").ok().filter(|user| !user.is_empty() && user.len() <= 64);
    format!("cli:{}", user.as_deref().unwrap_or("unknown"))
}

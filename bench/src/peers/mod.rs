//! Servers that are measured, ours and peers. A peer is used when it is installed; nothing is installed here.
//!
//! Each is started fresh, in a folder of its own on the disk of the build, and ended when its value is dropped.

mod nats;
mod nchan;
mod ours;
mod postgres;
mod process;
mod redis;

pub(crate) use nats::Nats;
pub(crate) use nchan::Nchan;
pub(crate) use ours::{Ours, Store};
pub(crate) use postgres::Postgres;
pub(crate) use process::Memory;
pub(crate) use redis::Redis;

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result, bail};

/// Where benches keep their files: on the disk of the build, as a memory file system would make a commit free.
pub(crate) fn scratch() -> Result<PathBuf> {
    let dir = env::current_exe()?.parent().context("no folder")?.join("bench-scratch");
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// The command, built beside this program.
pub(crate) fn taffrail() -> Result<PathBuf> {
    let path = env::current_exe()?.parent().context("no folder")?.join("taffrail");
    if !path.is_file() {
        bail!("{} is missing: build it with the same profile first", path.display());
    }
    Ok(path)
}

static MISSING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Where a program is: in the search path, or in one of the places where servers are kept. Says once what is missing.
pub(crate) fn installed(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let places = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    let found = places.map(|place| place.join(program)).find(runs);
    if found.is_none() {
        missing(program);
    }
    found
}

fn runs(path: &PathBuf) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Tells, once for each, that something is not compared.
fn missing(what: &str) {
    if MISSING.lock().unwrap_or_else(PoisonError::into_inner).insert(what.to_owned()) {
        eprintln!("{what} is not installed: not compared");
    }
}

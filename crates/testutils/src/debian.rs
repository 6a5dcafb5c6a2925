//! Installs a package of Debian's when a test needs a program that is not here.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt as _,
    path::Path,
    process::Command,
};

/// Finds a program with `look`. When it is not here, this is root and the system is Debian's, installs `package` and
/// looks again.
///
/// # Panics
///
/// When there is no way to it: a test that needs it has failed then, and is not skipped.
pub(crate) fn find<T>(package: &str, what: &str, look: impl Fn() -> Option<T>) -> T {
    if let Some(found) = look() {
        return found;
    }
    let missing = format!("{what} is not here: install it (Debian: `apt-get install {package}`), or put it into PATH");
    assert!(is_root() && Path::new("/usr/bin/apt-get").exists(), "{missing}");
    // Tests run side by side, and only one at a time may install. Given back when the file is closed.
    let lock = lock().unwrap_or_else(|error| panic!("{missing} (the lock for installing it: {error})"));
    if let Some(found) = look() {
        return found;
    }
    let install = ["install", "-y", "--no-install-recommends", package];
    let said = apt(&install).or_else(|_| apt(&["update"]).and_then(|()| apt(&install)));
    drop(lock);
    if let Err(said) = said {
        panic!("{missing}\n{said}");
    }
    look().unwrap_or_else(|| panic!("Debian's package `{package}` is installed, and yet: {missing}"))
}

fn lock() -> io::Result<File> {
    let file = File::create(std::env::temp_dir().join("taffrail-tests-install.lock"))?;
    file.lock()?;
    Ok(file)
}

/// Runs `apt-get`; the error is what it said.
fn apt(args: &[&str]) -> Result<(), String> {
    // Others of the system may be installing something, too.
    let patience = ["-o", "DPkg::Lock::Timeout=120"];
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(patience).args(args);
    let output = command.output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

/// Whether this process may install something.
pub(crate) fn is_root() -> bool {
    // Whoever owns what this process opened last is who it runs as.
    fs::metadata("/proc/self").map(|meta| meta.uid()).unwrap_or(1) == 0
}

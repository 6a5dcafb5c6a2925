//! Where PostgreSQL's programs are, and as whom they run.

use std::{
    fs,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use crate::debian;

/// Where Debian puts the programs of each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// The programs of one version.
#[derive(Debug, Clone)]
pub(super) struct Binaries {
    /// Folder of `initdb` and its companions.
    folder: PathBuf,
    /// User and group to run as, when that is not us.
    user: Option<(u32, u32)>,
}

impl Binaries {
    pub(super) fn find() -> Self {
        let folder = debian::find("postgresql", "PostgreSQL", look);
        let user =
            debian::is_root().then(|| user("postgres").or_else(|| user("nobody")).expect("a user that is not root"));
        Self { folder, user }
    }

    /// A program of PostgreSQL, or else one of the system, run as the server's user.
    pub(super) fn command(&self, program: &str) -> Command {
        let own = self.folder.join(program);
        let mut command = Command::new(if own.exists() { own.as_path() } else { Path::new(program) });
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        // Nothing of ours shall decide where these connect to.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")) {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C");
        command
    }

    /// Makes the server's user the owner of a folder.
    pub(super) fn give(&self, dir: &Path) {
        if let Some((uid, gid)) = self.user {
            chown(dir, Some(uid), Some(gid)).unwrap();
        }
    }
}

/// The folder of the newest version, from `PATH` if there is one.
fn look() -> Option<PathBuf> {
    let in_path = std::env::var_os("PATH").and_then(|path| {
        // All of them: some systems link a few of the programs into `PATH`.
        let whole = |dir: &PathBuf| ["initdb", "pg_ctl", "postgres"].iter().all(|name| dir.join(name).is_file());
        std::env::split_paths(&path).find(whole)
    });
    in_path.or_else(|| {
        let versions = fs::read_dir(DEBIAN).ok()?.filter_map(Result::ok);
        let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
        let mut all: Vec<_> = versions.filter_map(|e| Some((number(&e.path())?, e.path().join("bin")))).collect();
        all.sort();
        all.into_iter().rev().map(|(_, bin)| bin).find(|bin| bin.join("initdb").is_file())
    })
}

/// User and group of a name.
fn user(name: &str) -> Option<(u32, u32)> {
    let passwd = fs::read_to_string("/etc/passwd").ok()?;
    let line = passwd.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

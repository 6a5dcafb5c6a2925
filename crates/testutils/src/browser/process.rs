//! The browser's processes and its profile.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::debian;

/// What it is called, in the order of preference.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// A browser for tests: no window, no processor of graphics, no talk with anybody but the pages that are opened. Without
/// its sandbox, which root and containers cannot have.
const FLAGS: [&str; 14] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-default-apps",
    "--no-proxy-server",
    "--remote-debugging-pipe",
];

/// How long it has for ending by itself.
const GRACE: Duration = Duration::from_secs(5);

/// All processes of one browser.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    dir: TempDir,
}

impl Process {
    /// Starts a browser with an empty profile, and gives the two ends of its pipe.
    pub(super) fn start() -> (Self, ChildStdin, ChildStdout) {
        let program = debian::find("chromium", "Chromium", || NAMES.iter().find_map(|name| in_path(name)));
        let dir = tempfile::Builder::new().prefix("taffrail-browser-").tempdir().expect("a temporary folder");
        let said = File::create(dir.path().join("said")).expect("a file there");
        let mut command = Command::new("sh");
        // The protocol is spoken on descriptors 3 and 4.
        command.args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null"#, "sh"]).arg(program).args(FLAGS);
        command.arg(format!("--user-data-dir={}", dir.path().join("profile").display()));
        // It writes a little beside its profile.
        command.env("HOME", dir.path()).env_remove("XDG_CONFIG_HOME").env_remove("XDG_CACHE_HOME");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(said);
        let mut child = command.spawn().expect("a shell");
        let (to, from) = (child.stdin.take().expect("it is piped"), child.stdout.take().expect("it is piped"));
        (Self { child, dir }, to, from)
    }

    /// What it has complained about: much of it is about what containers do not have.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.dir.path().join("said")).unwrap_or_default()
    }

    /// The folder of its profile.
    #[cfg(test)]
    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The pipe is closed by now.
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            thread::sleep(Duration::from_millis(10));
        }
        // A few rounds: what is killed may have been starting something, and what was told to end may be about to.
        for _ in 0..200 {
            let left = all_of(self.dir.path());
            if left.is_empty() {
                break;
            }
            let pids = left.iter().map(u32::to_string);
            let _ = Command::new("kill").arg("-KILL").args(pids).stderr(Stdio::null()).status();
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.wait();
    }
}

/// The processes whose command line names a folder, as that of each process of a browser names its profile.
pub(super) fn all_of(dir: &Path) -> Vec<u32> {
    let mark = format!("--user-data-dir={}/", dir.display());
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // That of a process that only waits for its parent to hear of its end is empty.
    let ours = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&mark)
    };
    pids.filter(ours).collect()
}

/// A program that `PATH` leads to.
fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file())
}

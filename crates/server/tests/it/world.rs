//! A data directory, a folder for files, and the command on both.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::proc::{Done, Proc};

/// No single step takes longer, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// What one test has to itself. Dropping it kills every process that was started in it, also those it does not know of.
pub(crate) struct World {
    dir: TempDir,
    pub(crate) playbooks: PathBuf,
}

impl World {
    /// With the playbooks of `tests/playbooks`.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir, playbooks: here("tests/playbooks") }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A path for a file of the test's own.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    /// Writes such a file.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Any program, in this world.
    pub(crate) fn program(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(self.dir.path().join("work"));
        command.env("TAFFRAIL_DATA_DIR", self.data()).env("TAFFRAIL_PLAYBOOKS", &self.playbooks);
        command.env("USER", "tester").env("HOME", self.dir.path()).env("TERM", "dumb");
        for name in ["XDG_STATE_HOME", "TAFFRAIL_LOG", "NO_COLOR", "TAFFRAIL_URL", "TAFFRAIL_TOKEN"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_taffrail"));
        command.args(args);
        command
    }

    /// Starts the command.
    pub(crate) fn start(&self, args: &[&str]) -> Proc {
        Proc::start(self.command(args))
    }

    /// Runs the command to its end.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.start(args).end()
    }

    /// Runs the command to its end, which must have this status.
    #[track_caller]
    pub(crate) fn expect(&self, code: i32, args: &[&str]) -> Done {
        let done = self.run(args);
        assert_eq!(done.code, Some(code), "taffrail {}\n{}\n{}", args.join(" "), done.stdout, done.stderr);
        done
    }

    /// The status of a run, as a fresh process sees it.
    #[track_caller]
    pub(crate) fn status(&self, run: &str) -> String {
        let snapshot = self.expect(0, &["status", run, "--json"]).json();
        snapshot["status"].as_str().unwrap().to_owned()
    }

    /// The id of the only run.
    #[track_caller]
    pub(crate) fn only_run(&self) -> String {
        let runs = self.expect(0, &["runs", "--json"]).records();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0]["run"].as_str().unwrap().to_owned()
    }

    /// Every process of this world that is there: it carries the data directory in its environment.
    pub(crate) fn processes(&self) -> BTreeSet<i32> {
        let mark = format!("TAFFRAIL_DATA_DIR={}\0", self.data().display()).into_bytes();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let ours = |pid: &i32| {
            // A zombie's environment is empty.
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.windows(mark.len()).any(|part| part == mark)
        };
        pids.filter(ours).collect()
    }

    /// Waits until no process of this world is left.
    #[track_caller]
    pub(crate) fn until_empty(&self, within: Duration) {
        until("no process is left", within, || self.processes().is_empty().then_some(()));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A few rounds: what is killed may have been starting something.
        for _ in 0..100 {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            for pid in left.into_iter().filter_map(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A path below this crate.
pub(crate) fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// An awkward program; the engine's tests own them.
pub(crate) fn case(name: &str) -> String {
    here("../engine/tests/cases").join(name).display().to_string()
}

/// Waits until `look` finds what it looks for.
#[track_caller]
pub(crate) fn until<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + within;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "not within {within:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process is there and not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

//! Ends a server and removes its folder, also when this process cannot any more.

use std::{
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
};

/// Reads until its standard input ends, which is when this process drops it or dies, however it dies. A process id is
/// believed only while its process works in the folder: the file may be old, and numbers are used again.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
cat >/dev/null
runs() { [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && [ "$(readlink "/proc/$pid/cwd")" = "$1/data" ]; }
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if runs "$1"; then
    kill -CONT "$pid" $(cat "/proc/$pid/task/$pid/children" 2>/dev/null) 2>/dev/null
    kill -QUIT "$pid"
    tries=0
    while runs "$1" && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
    runs "$1" && kill -KILL "$pid"
fi
tries=0
while ! rm -rf "$1" 2>/dev/null && [ $tries -lt 40 ]; do sleep 0.05; tries=$((tries + 1)); done
"#;

/// The guard of one folder. Dropping it ends the server, removes the folder, and waits for both.
#[derive(Debug)]
pub(super) struct Guard(Child);

impl Guard {
    pub(super) fn start(dir: &Path) -> Self {
        let child = Command::new("sh")
            .args(["-c", SCRIPT, "guard"])
            .arg(dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A group of its own: what ends a group of tests shall not end it.
            .process_group(0)
            .spawn();
        Self(child.unwrap_or_else(|e| panic!("no guard for {}: {e}", dir.display())))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

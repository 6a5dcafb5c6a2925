//! Peers: used when they are installed; nothing is installed here.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

/// Where benches keep their files: on the disk of the build, as a memory file system would make a commit free.
pub(crate) fn scratch() -> Result<PathBuf> {
    let dir = std::env::current_exe()?.parent().context("no folder")?.join("bench-scratch");
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// The command, built beside this program.
pub(crate) fn taffrail() -> Result<PathBuf> {
    let path = std::env::current_exe()?.parent().context("no folder")?.join("taffrail");
    if !path.is_file() {
        bail!("{} is missing: build it with the same profile first", path.display());
    }
    Ok(path)
}

/// Whether a program is there.
pub(crate) fn installed(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_err() {
        eprintln!("{program} is not installed: not compared");
    }
    found.is_ok()
}

/// A Redis that syncs every write.
pub(crate) struct Redis {
    server: Child,
    dir: tempfile::TempDir,
}

impl Redis {
    /// Starts one on a socket, when Redis is installed.
    pub(crate) fn start() -> Result<Option<Self>> {
        if !installed("redis-server") || !installed("redis-benchmark") {
            return Ok(None);
        }
        let dir = tempfile::tempdir_in(scratch()?)?;
        let server = Command::new("redis-server")
            .args(["--port", "0", "--unixsocket"])
            .arg(dir.path().join("redis.sock"))
            .args(["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--dir"])
            .arg(dir.path())
            .stdout(Stdio::null())
            .spawn()?;
        let redis = Self { server, dir };
        let deadline = Instant::now() + Duration::from_secs(10);
        while !redis.dir.path().join("redis.sock").exists() {
            if Instant::now() > deadline {
                bail!("redis-server did not start");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(redis))
    }

    /// XADD of 200 bytes, 50 clients, 16 in flight each; commands a second.
    pub(crate) fn publish(&self) -> Result<f64> {
        let payload = "x".repeat(200);
        let run = Command::new("redis-benchmark")
            .arg("-s")
            .arg(self.dir.path().join("redis.sock"))
            .args([
                "-n", "1000000", "-c", "50", "-P", "16", "--csv", "XADD", "bench", "MAXLEN", "~", "100000", "*", "t",
                &payload,
            ])
            .output()?;
        let text = String::from_utf8_lossy(&run.stdout);
        let last = text.lines().last().unwrap_or_default();
        let rate = last.split(',').find_map(|cell| cell.trim_matches('"').parse::<f64>().ok());
        rate.with_context(|| format!("redis-benchmark said {text:?}"))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

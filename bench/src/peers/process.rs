//! A server's processes: starting, waiting for it, measuring it, ending it.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// A process that is ended with its value, and its children with it if it looks after them.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// What makes it end quickly and in order.
    end: Signal,
    log: std::path::PathBuf,
}

impl Server {
    /// Starts a command whose output goes to `log` in a folder.
    pub(super) fn start(mut command: Command, dir: &Path, end: Signal) -> Result<Self> {
        let log = dir.join("server.log");
        let file = fs::File::create(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {:?}", command.get_program()))?;
        Ok(Self { child, end, log })
    }

    /// Waits until a question is answered with yes.
    pub(super) fn ready(&mut self, mut answers: impl FnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !answers() {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status}: {}", self.said());
            }
            if Instant::now() > deadline {
                bail!("the server did not become ready: {}", self.said());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Waits until something listens there.
    pub(super) fn listens(&mut self, addr: SocketAddr) -> Result<()> {
        self.ready(|| TcpStream::connect(addr).is_ok())
    }

    /// The end of its log.
    fn said(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(text.get(text.len().saturating_sub(1000)..).unwrap_or_default()).into_owned()
    }

    /// Its process and their children.
    fn family(&self) -> Vec<u32> {
        let mut family = vec![self.child.id()];
        let stats: Vec<(u32, u32)> = fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                // The name before may hold anything but ends in the last parenthesis: then a state, then the parent.
                Some((pid, stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?))
            })
            .collect();
        let mut at = 0;
        while let Some(parent) = family.get(at).copied() {
            family.extend(stats.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
            at += 1;
        }
        family
    }

    /// Memory of all its processes.
    pub(crate) fn memory(&self) -> Result<Memory> {
        let mut memory = Memory::default();
        for pid in self.family() {
            let Ok(text) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { continue };
            let kib = |name: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim().trim_end_matches(" kB").parse::<f64>().ok()
            };
            memory.pss_mib += kib("Pss:").context("no PSS")? / 1024.0;
            memory.rss_mib += kib("Rss:").context("no RSS")? / 1024.0;
        }
        Ok(memory)
    }

    /// Processor time of all its threads, in steps of 10 ms.
    pub(crate) fn cpu(&self) -> Duration {
        let mut ticks = 0;
        for pid in self.family() {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
            // User and system time are the 14th and 15th field of the line, the 12th and 13th behind the name.
            ticks += after_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum::<u64>();
        }
        // Linux tells this file's times in hundredths of a second, whatever its own clock does.
        Duration::from_millis(ticks * 10)
    }

    /// How many files it may open.
    pub(crate) fn open_files(&self) -> Option<u64> {
        let limits = fs::read_to_string(format!("/proc/{}/limits", self.child.id())).ok()?;
        limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, self.end);
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// What processes take.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// Pages that several share are divided among them.
    pub(crate) pss_mib: f64,
    pub(crate) rss_mib: f64,
}

/// An address of this machine that is free.
pub(super) fn free_addr() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

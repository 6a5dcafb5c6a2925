//! This binary once more, as another process: what it says, and its end.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard},
    thread::JoinHandle,
    time::Instant,
};

use tokio::sync::watch;

use super::{
    SOON,
    jobs::{JOB, Runs},
};

/// What a child has said so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) acks: u64,
    pub(super) saw: u64,
}

#[derive(Debug, Default)]
struct Said {
    /// Publisher and number.
    acks: Vec<(usize, u64)>,
    saw: Vec<Vec<u8>>,
}

/// A child. Killed, as with `kill -9`, when dropped.
pub(super) struct Child {
    process: Mutex<std::process::Child>,
    said: std::sync::Arc<Mutex<Said>>,
    counts: watch::Receiver<Counts>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl Child {
    pub(super) fn start(job: &str, runs: Runs, dir: &Path, round: u64) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::jobs::job", "--nocapture", "--test-threads=1"])
            .env(JOB, format!("{job} {} {round} {}", runs.name(), dir.display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::with_capacity(1 << 16, process.stdout.take().unwrap());
        let said = std::sync::Arc::<Mutex<Said>>::default();
        let (sender, counts) = watch::channel(Counts::default());
        let listener = std::thread::spawn({
            let said = std::sync::Arc::clone(&said);
            move || {
                let mut line = Vec::new();
                while stdout.read_until(b'\n', &mut line).unwrap() > 0 {
                    // A line without newline was cut by the kill.
                    if line.ends_with(b"\n") {
                        sender.send_modify(|counts| take(&line, &mut said.lock().unwrap(), counts));
                    }
                    line.clear();
                }
            }
        });
        Self { process: Mutex::new(process), said, counts, listener: Mutex::new(Some(listener)) }
    }

    /// Waits until it has said enough; whether it did, soon.
    pub(super) async fn until(&self, enough: impl FnMut(&Counts) -> bool) -> bool {
        let mut counts = self.counts.clone();
        tokio::time::timeout(SOON, counts.wait_for(enough)).await.is_ok_and(|counts| counts.is_ok())
    }

    pub(super) fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Kills it, and hears all that it had said.
    pub(super) fn kill(&self) {
        let start = Instant::now();
        let mut process = self.process.lock().unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        if let Some(listener) = self.listener.lock().unwrap().take() {
            listener.join().unwrap();
        }
        assert!(start.elapsed() < SOON);
    }

    pub(super) fn take_acks(&self) -> Vec<(usize, u64)> {
        std::mem::take(&mut self.said().acks)
    }

    /// The records that it saw since the last call, each with its newline.
    pub(super) fn take_saw(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.said().saw)
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Ok(mut process) = self.process.lock() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn take(line: &[u8], said: &mut Said, counts: &mut Counts) {
    if let Some(record) = line.strip_prefix(b"saw ") {
        said.saw.push(record.to_vec());
        counts.saw += 1;
    } else if let Some(ack) = line.strip_prefix(b"ack ") {
        let mut numbers = std::str::from_utf8(ack).unwrap().split_whitespace().map(|number| number.parse().unwrap());
        let (publisher, n) = (numbers.next().unwrap(), numbers.next().unwrap());
        said.acks.push((usize::try_from(publisher).unwrap(), n));
        counts.acks += 1;
    }
}

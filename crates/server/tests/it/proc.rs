//! A started process: its lines as they come, and its end.

use std::{
    io::{BufRead as _, BufReader, Read},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{PATIENCE, until};

/// One that runs. Killed when dropped.
pub(crate) struct Proc {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<(SystemTime, String)>,
    /// Lines of standard output that were read.
    pub(crate) seen: Vec<(SystemTime, String)>,
    stderr: Option<JoinHandle<String>>,
}

/// One that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// `None` when a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Proc {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = Vec::new();
            while stdout.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                let text = String::from_utf8(std::mem::take(&mut line)).unwrap();
                if sender.send((SystemTime::now(), text)).is_err() {
                    return;
                }
            }
        });
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, seen: Vec::new(), stderr: Some(stderr) }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
    }

    /// The writing end of its standard input; dropping that is the end of the input.
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.stdin.take().unwrap()
    }

    /// The next line of standard output, without its newline; `None` at the end of it.
    #[track_caller]
    pub(crate) fn line(&mut self) -> Option<String> {
        self.line_within(PATIENCE)
    }

    #[track_caller]
    pub(crate) fn line_within(&mut self, within: Duration) -> Option<String> {
        match self.lines.recv_timeout(within) {
            Ok((at, line)) => {
                let text = line.trim_end_matches('\n').to_owned();
                self.seen.push((at, line));
                Some(text)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line within {within:?} after {:?}", self.seen.last()),
        }
    }

    /// Reads records up to the first that is looked for.
    #[track_caller]
    pub(crate) fn record(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let Some(line) = self.line() else {
                let _ = self.child.kill();
                panic!("no such record in {:#?}\n{}", self.seen, self.stderr.take().unwrap().join().unwrap());
            };
            let record: Value = serde_json::from_str(&line).unwrap();
            if wanted(&record) {
                return record;
            }
        }
    }

    /// Reads records up to a log line that begins so, and returns the whole record.
    #[track_caller]
    pub(crate) fn log(&mut self, start: &str) -> Value {
        self.record(|record| record["text"].as_str().is_some_and(|text| text.starts_with(start)))
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn end(self) -> Done {
        self.end_within(PATIENCE)
    }

    #[track_caller]
    pub(crate) fn end_within(mut self, within: Duration) -> Done {
        let deadline = Instant::now() + within;
        drop(self.stdin.take());
        let status = until("the process ends", within, || self.child.try_wait().unwrap());
        // A process that inherited the pipes would keep them open: that is a failure, too.
        while let Ok((at, line)) = self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.seen.push((at, line));
        }
        until("its standard error ends", within, || self.stderr.as_ref().unwrap().is_finished().then_some(()));
        let stdout = self.seen.iter().map(|(_, line)| line.as_str()).collect();
        Done { code: status.code(), stdout, stderr: self.stderr.take().unwrap().join().unwrap() }
    }
}

impl Drop for Proc {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Done {
    /// Standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// Standard output as one JSON value a line.
    #[track_caller]
    pub(crate) fn records(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

//! `taffrail exec --url`: a command that prints numbered lines until it is told to stop.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use taffrail_mcp_core::{RunId, ThreadId};
use taffrail_transport::client::{Client, ListRuns};
use tokio::time::sleep;

use super::fleet::Fleet;
use crate::world::{PATIENCE, World, until};

/// Prints a few lines ten times a second, in one write, so that it costs little; tells afterwards how many it printed.
const SCRIPT: &str = r#"
n=0
while [ ! -e "$STOP" ]; do
    printf '%s\n' "$NAME $((n + 1))" "$NAME $((n + 2))"
    n=$((n + 2))
    echo $n >>"$PRINTED"
    sleep 0.1
done
"#;

/// One that runs. Killed when dropped.
pub(super) struct Worker {
    slot: usize,
    round: usize,
    thread: ThreadId,
    child: Child,
    files: PathBuf,
}

/// One that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) name: String,
    /// Lines that its command has printed for sure.
    pub(super) printed: u64,
    /// Lines that it has shown as kept.
    pub(super) kept: u64,
    /// What it has said to people.
    pub(super) said: String,
}

impl Worker {
    /// Starts one in a slot; a slot keeps its data directory.
    pub(super) fn start(world: &World, fleet: &Fleet<'_>, slot: usize, thread: &ThreadId) -> Self {
        Self::round(world, fleet, slot, 0, thread)
    }

    /// Starts the next one in its slot, which sends what this one has left.
    pub(super) fn successor(&self, world: &World, fleet: &Fleet<'_>) -> Self {
        Self::round(world, fleet, self.slot, self.round + 1, &self.thread)
    }

    fn round(world: &World, fleet: &Fleet<'_>, slot: usize, round: usize, thread: &ThreadId) -> Self {
        let (data, files) = (world.file(&format!("worker-{slot}")), world.file(&format!("worker-{slot}-{round}")));
        let name = format!("worker-{slot}-{round}");
        let (token, url) = (fleet.token_file.display().to_string(), fleet.balancer.url());
        let data = data.display().to_string();
        let mut command =
            world.command(&["--data-dir", &data, "exec", "--json", "--url", &url, "--token-file", &token]);
        command.args(["--name", &name, "--thread", thread.as_str(), "--", "sh", "-c", SCRIPT]);
        let file = |extension: &str| files.with_extension(extension);
        command.env("NAME", &name).env("STOP", file("stop")).env("PRINTED", file("printed"));
        command.stdin(Stdio::null()).stdout(File::create(file("out")).unwrap());
        let child = command.stderr(File::create(file("err")).unwrap()).spawn().unwrap();
        Self { slot, round, thread: thread.clone(), child, files }
    }

    fn name(&self) -> String {
        format!("worker-{}-{}", self.slot, self.round)
    }

    fn read(&self, extension: &str) -> String {
        fs::read_to_string(self.files.with_extension(extension)).unwrap_or_default()
    }

    /// The id of its run, when a server knows of it.
    pub(super) async fn run(&self, client: &Client) -> RunId {
        let of_thread = ListRuns { thread: Some(self.thread.clone()), ..ListRuns::default() };
        let deadline = Instant::now() + PATIENCE;
        loop {
            // The database may be away.
            let runs = client.runs(&of_thread).await.unwrap_or_default();
            if let Some(snapshot) = runs.into_iter().find(|snapshot| snapshot.playbook == self.name()) {
                return snapshot.run;
            }
            assert!(Instant::now() < deadline, "{} has no run: {}", self.name(), self.read("err"));
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Kills it.
    #[track_caller]
    pub(super) fn kill(&mut self) -> Ended {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.ended()
    }

    /// Lets its command end, and waits until everything is sent.
    #[track_caller]
    pub(super) fn finish(mut self) -> Ended {
        fs::write(self.files.with_extension("stop"), "").unwrap();
        let status = until("a worker ends", PATIENCE, || self.child.try_wait().unwrap());
        assert!(status.success(), "{}: {status}\n{}", self.name(), self.read("err"));
        self.ended()
    }

    fn ended(&self) -> Ended {
        let (printed, out) = (self.read("printed"), self.read("out"));
        let printed = whole_lines(&printed).last().map_or(0, |line| line.parse().unwrap());
        let kept = whole_lines(&out).map(|line| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            u64::from(record["type"] == "log")
        });
        Ended { name: self.name(), printed, kept: kept.sum(), said: self.read("err") }
    }
}

/// The lines of a file whose last line a kill may have torn.
fn whole_lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'))
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

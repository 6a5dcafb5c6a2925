//! A machine that runs commands, and a server that keeps their runs.

use std::{fs, path::PathBuf, process::Command, time::Duration};

use serde_json::Value;

use crate::{
    deployed::Deployed,
    proc::{Done, Proc},
    world::{World, until},
};

/// Prints a line some hundred times a second, `$1` of them, each with its number.
pub(crate) const COUNT: &str =
    r#"i=1; while [ $i -le $1 ]; do echo "line $i"; i=$((i+1)); [ $((i%20)) = 0 ] && sleep 0.05; done; exit ${2:-0}"#;

/// Both of them.
pub(crate) struct There<'a> {
    pub(crate) world: &'a World,
    pub(crate) server: Deployed<'a>,
}

impl<'a> There<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        Self {
            world,
            server: Deployed::start(world, "server", &["--playbooks", &world.playbooks.display().to_string()]),
        }
    }

    /// The command, on the machine, asking the server.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.command(args);
        command.env("TAFFRAIL_URL", self.server.url()).env("TAFFRAIL_TOKEN", self.server.token());
        command
    }

    pub(crate) fn start(&self, args: &[&str]) -> Proc {
        Proc::start(self.command(args))
    }

    #[track_caller]
    pub(crate) fn expect(&self, code: i32, args: &[&str]) -> Done {
        let done = self.start(args).end();
        assert_eq!(done.code, Some(code), "taffrail {}\n{}\n{}", args.join(" "), done.stdout, done.stderr);
        done
    }

    /// The arguments that print so many lines.
    pub(crate) fn count<'b>(before: &[&'b str], lines: &'b str) -> Vec<&'b str> {
        [&["exec"], before, &["--", "sh", "-c", COUNT, "count", lines]].concat()
    }

    /// A run's records, as the server has them.
    #[track_caller]
    pub(crate) fn records(&self, run: &str) -> Vec<Value> {
        self.expect(0, &["logs", run, "--json"]).records()
    }

    /// The id of the server's only run.
    #[track_caller]
    pub(crate) fn only_run(&self) -> String {
        let runs = self.expect(0, &["runs", "--json"]).records();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0]["run"].as_str().unwrap().to_owned()
    }

    /// Waits until no process of this world is left but the server.
    #[track_caller]
    pub(crate) fn until_alone(&self) {
        let is_server = |pid: &i32| {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            command.split(|byte| *byte == 0).any(|word| word == b"serve")
        };
        until("the server is alone", Duration::from_secs(10), || {
            self.world.processes().iter().all(is_server).then_some(())
        });
    }

    /// The folders of runs that are not whole there.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.world.data().join("push")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

/// The id that the records of a run have.
pub(crate) fn run_of(record: &Value) -> String {
    record["run"].as_str().unwrap().to_owned()
}

/// Records as events: without what is of the place where they stand.
pub(crate) fn events(records: &[Value]) -> Vec<Value> {
    let event = |record: &Value| {
        let mut event = record.as_object().unwrap().clone();
        for field in ["seq", "thread", "run", "ts", "ingest", "external"] {
            event.remove(field);
        }
        match event["type"].as_str() {
            // The server does not know what states a run has that happens elsewhere.
            Some("run-start") => _ = event.remove("entry"),
            Some("checkpoint") => event = serde_json::json!({"type": "checkpoint"}).as_object().unwrap().clone(),
            Some("run-finished") => _ = event["usage"].as_object_mut().unwrap().remove("wall_ms"),
            _ => {}
        }
        Value::Object(event)
    };
    records.iter().map(event).collect()
}

/// What is counted and what is there is the same: lines 1 to some number, no other, none twice.
#[track_caller]
pub(crate) fn assert_counts(records: &[Value]) -> usize {
    let texts = crate::records::texts(records, "stdout");
    let expected: Vec<_> = (1..=texts.len()).map(|n| format!("line {n}")).collect();
    assert_eq!(texts, expected);
    let usage = &records.last().unwrap()["usage"];
    assert_eq!(usage["log_lines"].as_u64().unwrap() as usize, texts.len(), "{usage}");
    texts.len()
}

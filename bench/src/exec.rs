//! A child's output: to the durable log and the spool through `taffrail exec`, against pipes to `wc -l` and `cat`.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::{
    peers,
    report::{self, Comparison, Goal},
};

const UNIT: &str = "lines/s";

/// Prints numbered lines in chunks of 2,000.
const FLOOD: &str = r#"
import os, sys
n = int(sys.argv[1])
for i in range(0, n, 2000):
    data = "".join("line %09d the quick brown fox jumps over the lazy dog\n" % k for k in range(i, min(n, i + 2000))).encode()
    while data:
        data = data[os.write(1, data):]
"#;

pub(crate) fn bench(rounds: usize, lines: u64) -> Result<()> {
    let scratch = tempfile::tempdir_in(peers::scratch()?)?;
    let flood = scratch.path().join("flood.py");
    std::fs::write(&flood, FLOOD)?;
    let python = vec!["python3".to_owned(), flood.display().to_string(), lines.to_string()];
    let cat = Peer { pipe: "cat > \"$OUT\"", scratch: scratch.path() };
    let flood = Comparison::new(None, "child in blocks → log + spool", UNIT, "cat > file", Goal::AtLeast(0.3, 0.5));
    compare("exec_flood_vs_cat", flood, &python, lines, rounds, &cat)?;

    let short = short_lines(lines);
    let wc = Peer { pipe: "wc -l > \"$OUT\"", scratch: scratch.path() };
    let blocks = "child, 20 B lines in blocks → log + spool";
    let blocks = Comparison::new(13, blocks, UNIT, "wc -l", Goal::AtLeast(0.04, 0.1));
    compare("exec_blocks_vs_wc", blocks, &short, lines, rounds, &wc)?;
    let few = lines / 10;
    let unbuffered: Vec<String> = ["stdbuf", "-oL", "seq", "-f", "line number %08.0f"].map(str::to_owned).into();
    let unbuffered = [unbuffered, vec![few.to_string()]].concat();
    let writes = "child, a write a line → log + spool";
    let writes = Comparison::new(13, writes, UNIT, "wc -l", Goal::AtLeast(0.4, 0.7));
    compare("exec_writes_vs_wc", writes, &unbuffered, few, rounds, &wc)
}

/// `yes` in blocks: 20 bytes a line.
fn short_lines(lines: u64) -> Vec<String> {
    let script = format!("yes 'twenty bytes a line' | head -n {lines}");
    vec!["sh".into(), "-c".into(), script]
}

struct Peer<'a> {
    /// What stands after the pipe.
    pipe: &'static str,
    scratch: &'a Path,
}

fn compare(
    name: &str,
    mut comparison: Comparison,
    argv: &[String],
    lines: u64,
    rounds: usize,
    peer: &Peer<'_>,
) -> Result<()> {
    let mut rss = 0;
    for _ in 0..rounds {
        let peer = piped(argv, lines, peer)?;
        let (rate, kib) = executed(argv, lines)?;
        comparison.round(rate, Some(peer));
        rss = rss.max(kib);
    }
    report::below("exec: resident MiB", rss as f64 / 1024.0, 96.0);
    comparison.print(name, &[("rss_mib_max", report::round(rss as f64 / 1024.0).into())]);
    Ok(())
}

fn piped(argv: &[String], lines: u64, peer: &Peer<'_>) -> Result<f64> {
    let begin = Instant::now();
    let status = Command::new("sh")
        .args(["-c", &format!("\"$@\" | {}", peer.pipe), "sh"])
        .args(argv)
        .env("OUT", peer.scratch.join("peer.out"))
        .status()?;
    anyhow::ensure!(status.success(), "the peer's pipe failed");
    Ok(lines as f64 / begin.elapsed().as_secs_f64())
}

/// Lines a second, and the largest resident size in KiB. Fails unless every line is in the log.
fn executed(argv: &[String], lines: u64) -> Result<(f64, u64)> {
    let dir = tempfile::tempdir_in(peers::scratch()?)?;
    let taffrail = peers::taffrail()?;
    // GNU time is not everywhere; the kernel tells the same of a child that has ended.
    let errors = dir.path().join("stderr");
    let begin = Instant::now();
    let mut child = Command::new(&taffrail)
        .arg("--data-dir")
        .arg(dir.path().join("data"))
        .args(["exec", "--quiet", "--"])
        .args(argv)
        .stdin(Stdio::null())
        .stderr(File::create(&errors)?)
        .spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    let status = loop {
        if let Ok(text) = std::fs::read_to_string(&status_file)
            && let Some(kib) = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))
        {
            peak = kib.trim().trim_end_matches(" kB").parse().unwrap_or(peak);
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    let seconds = begin.elapsed().as_secs_f64();
    anyhow::ensure!(status.success(), "exec failed: {}", std::fs::read_to_string(&errors)?);
    let runs =
        Command::new(&taffrail).arg("--data-dir").arg(dir.path().join("data")).args(["runs", "--json"]).output()?;
    let snapshot: Value = serde_json::from_slice(runs.stdout.split(|&b| b == b'\n').next().context("no run")?)?;
    let stored = snapshot["usage"]["log_lines"].as_u64().context("no usage")?;
    anyhow::ensure!(stored == lines, "{stored} of {lines} lines are in the log");
    Ok((lines as f64 / seconds, peak))
}

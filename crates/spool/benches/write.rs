//! Appending blocks of 256 KiB (100-byte lines) to a spool, against `cat > file` and s6-log, in one run.
//!
//! `cargo bench -p taffrail-spool [-- ROUNDS [MIB]]`; `SPOOL_BENCH_DIR` names the folder (default: the target folder).
//! Every contender gets the same bytes in the same round, in turn, in a fresh folder; one JSON line tells the medians
//! of the rates and of the ratios of each round.
//!
//! - `file`: [`SpoolFile::append`], rotation and limits included (defaults).
//! - `attached`: the same through [`Spools`] and its task.
//! - `cat`: the bytes written to a pipe in 256 KiB writes, `cat > file` at its other end: what a shell would do.
//! - `cat_file`: `cat < file > file` with the input cached, which copies inside the kernel.
//! - `s6_log`: the same pipe, `s6-log` with files of the same size and number.
#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a bench reports to people")]

use std::{
    env, fs,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use bytes::Bytes;
use taffrail_mcp_core::{BoxFuture, RunId, Seq, Timestamp};
use taffrail_relay::Block;
use taffrail_spool::{BlockSource, Delivery, Drained, Limits, SpoolFile, Spools};

const LINE: usize = 100;
const BLOCK: usize = 256 * 1024;

fn main() {
    let numbers: Vec<usize> = env::args().filter_map(|arg| arg.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(7);
    // Below the point where the kernel makes writers wait for the disk, which would be all that is measured.
    let mib = numbers.get(1).copied().unwrap_or(192);
    let base = env::var_os("SPOOL_BENCH_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/bench-spool")), PathBuf::from);
    let run = RunId::new("0190b3a1").unwrap();
    let blocks = blocks(&run, mib << 20);
    let bytes: usize = blocks.iter().map(|block| block.bytes.len()).sum();
    let input = base.join("input");
    fs::create_dir_all(&base).unwrap();
    write_all(&mut File::create(&input).unwrap(), &blocks);

    let s6 = Command::new("s6-log").arg("-h").stdin(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    let mut names = vec!["file", "attached", "cat", "cat_file"];
    if s6 {
        names.push("s6_log");
    } else {
        eprintln!("s6-log is not installed: not measured");
    }
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); names.len()];
    for round in 0..rounds {
        // Another one begins each time, so that none always runs into what its neighbour left to be written back.
        for turn in 0..names.len() {
            let which = (round + turn) % names.len();
            let folder = base.join("round");
            fs::create_dir_all(&folder).unwrap();
            let begin = Instant::now();
            match names[which] {
                "file" => file(&folder, &run, &blocks),
                "attached" => attached(&folder, &run, &blocks),
                "cat" => piped(Command::new("cat").stdout(File::create(folder.join("cat")).unwrap()), &blocks),
                "cat_file" => {
                    let output = File::create(folder.join("cat")).unwrap();
                    let done = Command::new("cat").stdin(File::open(&input).unwrap()).stdout(output).status().unwrap();
                    assert!(done.success());
                }
                _ => piped(Command::new("s6-log").args(["n16", "s16777216"]).arg(folder.join("s6")), &blocks),
            }
            rates[which].push(bytes as f64 / 1e6 / begin.elapsed().as_secs_f64());
            fs::remove_dir_all(&folder).unwrap();
            // What the last one left dirty is not the next one's burden.
            rustix::fs::sync();
        }
    }
    fs::remove_dir_all(&base).unwrap();

    let of = |name: &str| names.iter().position(|n| *n == name).map(|at| &rates[at]);
    let mut out = format!("{{\"bench\":\"spool-write\",\"rounds\":{rounds},\"mb\":{}", bytes / 1_000_000);
    for (name, rates) in names.iter().zip(&rates) {
        out.push_str(&format!(",\"{name}_mb_s\":{:.0}", median(rates.clone())));
    }
    for ours in ["file", "attached"] {
        for peer in ["cat", "cat_file", "s6_log"] {
            if let (Some(ours_rates), Some(peer_rates)) = (of(ours), of(peer)) {
                let ratios = ours_rates.iter().zip(peer_rates).map(|(ours, peer)| ours / peer).collect();
                out.push_str(&format!(",\"{ours}_to_{peer}\":{:.2}", median(ratios)));
            }
        }
    }
    println!("{out}}}");
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Blocks of the run, records 1, 2, 3, …
fn blocks(run: &RunId, bytes: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut seq = 1;
    for _ in 0..bytes / BLOCK {
        let mut lines = String::with_capacity(BLOCK + LINE);
        let first = Seq(seq);
        while lines.len() + LINE <= BLOCK {
            let head = format!(
                "{{\"seq\":{seq},\"thread\":\"{run}\",\"run\":\"{run}\",\"ts\":\"2026-11-30T07:32:47.123456Z\",\"type\":\"log\",\"text\":\""
            );
            let pad = LINE.saturating_sub(head.len() + 3);
            lines.push_str(&head);
            lines.extend(std::iter::repeat_n('x', pad));
            lines.push_str("\"}\n");
            seq += 1;
        }
        let (count, bytes) = (seq - first.0, Bytes::from(lines));
        blocks.push(Block { run: run.clone(), first, count, ts: Timestamp::default(), bytes });
    }
    blocks
}

fn write_all(to: &mut impl Write, blocks: &[Block]) {
    blocks.iter().for_each(|block| to.write_all(&block.bytes).unwrap());
}

fn file(folder: &Path, run: &RunId, blocks: &[Block]) {
    let mut spool = SpoolFile::open(folder.join("spool"), run, Limits::default()).unwrap();
    blocks.iter().for_each(|block| spool.append(block).unwrap());
}

fn piped(command: &mut Command, blocks: &[Block]) {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    write_all(child.stdin.as_mut().unwrap(), blocks);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

fn attached(folder: &Path, run: &RunId, blocks: &[Block]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let spools = Spools::new(folder.join("spool"), Limits::default());
        let last = blocks.last().unwrap().last();
        spools.attach(run, Memory { blocks: blocks.to_vec(), at: 0 }).await.unwrap();
        assert_eq!(spools.drain(run, last, std::time::Duration::from_secs(600)).await, Drained::Complete);
    });
}

/// Delivers a MiB at a time, as a relay's follower does.
struct Memory {
    blocks: Vec<Block>,
    at: usize,
}

impl BlockSource for Memory {
    type Error = std::convert::Infallible;

    fn start_at(&mut self, after: Seq) {
        self.at = self.blocks.partition_point(|block| block.last() <= after);
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Delivery, Self::Error>> {
        let to = (self.at + 4).min(self.blocks.len());
        let blocks = self.blocks[self.at..to].to_vec();
        self.at = to;
        Box::pin(async move { Ok(if blocks.is_empty() { Delivery::End } else { Delivery::Blocks(blocks) }) })
    }
}

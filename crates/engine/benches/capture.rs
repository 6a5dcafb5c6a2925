//! How fast a child is read: one JSON line a row, peers measured in the same run.
//!
//! `cargo bench -p taffrail-engine --bench capture`. The program also plays the child that writes.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program that only reports")]

use std::{
    io::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use taffrail_engine::process::{Cancel, Command, OutputBudget, Program, Scope, run};
use taffrail_mcp_core::{BoxFuture, Event, EventBatch, EventSink};

const LINES: u64 = 5_000_000;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, child, how, bytes, lines] = args.as_slice()
        && child == "write"
    {
        return write(how, bytes.parse().unwrap(), lines.parse().unwrap());
    }
    // Words select rows by what their names contain.
    let words: Vec<&String> = args.iter().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let me = std::env::current_exe().unwrap().display().to_string();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (name, how, bytes, lines) in [
        ("20-byte lines in blocks", "blocks", 20, 2 * LINES),
        ("52-byte lines in blocks", "blocks", 52, LINES),
        ("200-byte lines in blocks", "blocks", 200, LINES / 4),
        ("20-byte lines, a write each", "each", 20, LINES / 5),
    ] {
        if !wanted(name) {
            continue;
        }
        let child = vec![me.clone(), "write".into(), how.into(), bytes.to_string(), lines.to_string()];
        let peer = word_count(&child);
        let ours = runtime.block_on(capture(&child, lines));
        let ratio = peer.as_secs_f64() / ours.wall.as_secs_f64();
        report(name, lines, &ours, &format!(",\"wc_lines_per_s\":{:.0},\"vs_wc\":{ratio:.3}", per_s(lines, peer)));
    }
    let flood = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/flood.py");
    if flood.exists() && wanted("flood.py") {
        let child = vec!["python3".into(), flood.display().to_string(), LINES.to_string()];
        report("flood.py", LINES, &runtime.block_on(capture(&child, LINES)), "");
    }
    if wanted("true") {
        runtime.block_on(starts());
    }
}

struct Taken {
    wall: Duration,
    cpu: Duration,
}

fn report(name: &str, lines: u64, taken: &Taken, more: &str) {
    let (wall, cpu) = (per_s(lines, taken.wall), per_s(lines, taken.cpu));
    println!(
        "{{\"bench\":\"capture\",\"row\":\"{name}\",\"lines\":{lines},\"lines_per_s\":{wall:.0},\"lines_per_cpu_s\":{cpu:.0}{more}}}"
    );
}

fn per_s(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn cpu() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).try_into().unwrap()
}

fn exec(words: &[String]) -> Command {
    Command::new(Program::Exec(words.iter().map(Into::into).collect()), "/", "build")
}

async fn capture(child: &[String], lines: u64) -> Taken {
    let count = Arc::new(Count::default());
    let sink: Arc<dyn EventSink> = count.clone();
    let (started, used) = (Instant::now(), cpu());
    let budget = OutputBudget::new(1 << 40);
    run(&exec(child), &sink, &budget, &Scope::new("bench"), &Cancel::new()).await.unwrap();
    let taken = Taken { wall: started.elapsed(), cpu: cpu() - used };
    assert_eq!(count.0.load(Ordering::Relaxed), lines);
    taken
}

/// The fastest that reading can be: `wc -l` at the other end of the pipe.
fn word_count(child: &[String]) -> Duration {
    let started = Instant::now();
    let text = format!("{} | wc -l >/dev/null", child.join(" "));
    assert!(std::process::Command::new("sh").arg("-c").arg(text).status().unwrap().success());
    started.elapsed()
}

async fn starts() {
    const TIMES: u32 = 200;
    let sink: Arc<dyn EventSink> = Arc::new(Count::default());
    let (budget, scope, cancel) = (OutputBudget::unlimited(), Scope::new("bench"), Cancel::new());
    let started = Instant::now();
    for _ in 0..TIMES {
        run(&exec(&["true".to_owned()]), &sink, &budget, &scope, &cancel).await.unwrap();
    }
    let ours = started.elapsed() / TIMES;
    let started = Instant::now();
    for _ in 0..TIMES {
        std::process::Command::new("true").status().unwrap();
    }
    let bare = started.elapsed() / TIMES;
    println!("{{\"bench\":\"capture\",\"row\":\"true\",\"us\":{},\"std_us\":{}}}", ours.as_micros(), bare.as_micros());
}

#[derive(Default)]
struct Count(AtomicU64);

impl EventSink for Count {
    fn emit(&self, _: Event) {}

    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        self.0.fetch_add(batch.output().0, Ordering::Relaxed);
        batch.clear();
        Box::pin(std::future::ready(()))
    }
}

/// The child: lines of `bytes` bytes, newline included, 64 KiB at a time or each by itself.
fn write(how: &str, bytes: usize, lines: usize) {
    let line = [&vec![b'x'; bytes - 1][..], b"\n"].concat();
    let at_once = if how == "each" { 1 } else { 65536 / bytes };
    let block = line.repeat(at_once);
    let mut out = std::fs::File::options().write(true).open("/dev/stdout").unwrap();
    for _ in 0..lines / at_once {
        out.write_all(&block).unwrap();
    }
    out.write_all(&line.repeat(lines % at_once)).unwrap();
}

//! What becomes of what processes write.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use taffrail_engine::process::{Cancel, Command, OutputBudget, Scope, run};
use taffrail_mcp_core::{BoxFuture, Event, EventBatch, EventSink, Exit};

use super::harness::{Kept, case, finish, shell, start};

#[tokio::test]
async fn a_fast_failure_loses_nothing() {
    let (outcome, kept) = finish(&case("fastfail.sh", &[])).await;
    assert_eq!(outcome.exit, Exit::Code(3));
    assert_eq!(kept.texts("stderr"), ["first complaint", "second complaint"]);
    let first = kept.events()[0].to_string();
    assert_eq!(first, r#"{"state":"build","stream":"stderr","text":"first complaint","type":"log"}"#);
}

#[tokio::test]
async fn redraws_are_folded() {
    let (outcome, kept) = finish(&case("redraw.sh", &[])).await;
    let logs = kept.logs("stdout");
    assert_eq!(kept.texts("stdout"), ["downloading 100%", "plain after crlf", "last line"]);
    assert_eq!((logs[0].redraw, logs[0].crlf, logs[0].folded), (true, true, 500 * 17 - 16));
    assert_eq!((logs[1].redraw, logs[1].crlf, logs[2].crlf), (false, true, false));
    assert_eq!(logs.iter().map(|log| log.bytes()).sum::<u64>(), outcome.stdout.len() as u64);
}

#[tokio::test]
async fn every_byte_can_be_had_back() {
    let (outcome, kept) = finish(&case("bytes.sh", &[])).await;
    assert_eq!(kept.bytes("stdout"), outcome.stdout);
    let logs = kept.logs("stdout");
    assert_eq!(logs[1].b64.as_deref(), Some("bGF0aW4xIGNhZuk="));
    assert_eq!(logs[2].text.as_deref(), Some("nul \0 inside"));
    assert_eq!(logs[4].text.as_deref(), Some("snow ☃ and rocket 🚀"));
    assert_eq!((logs.len(), logs[6].eol), (7, Some(false)));
    assert!(outcome.stdout.ends_with(b"\xff\xfe\x00\x80\nno newline at the end") && !outcome.truncated);
}

#[tokio::test]
async fn a_long_line_comes_in_pieces() {
    let (outcome, kept) = finish(&case("longline.sh", &[])).await;
    let logs = kept.logs("stdout");
    let line: String = kept.texts("stdout")[..logs.len() - 1].concat();
    assert_eq!(line.chars().count(), 1_000_000);
    assert_eq!((logs[0].text.as_ref().unwrap().len(), logs[0].part, logs[0].more), (65_535, Some(0), true));
    assert!(logs[1].text.as_ref().unwrap().starts_with('é'));
    assert_eq!(logs.last().unwrap().text.as_deref(), Some("short"));
    assert!(logs.iter().all(|log| log.b64.is_none()));
    assert!(outcome.truncated && outcome.stdout.len() == 64 * 1024 && outcome.stdout.ends_with(b"0\nshort\n"));
}

#[tokio::test]
async fn each_stream_keeps_its_order() {
    let (_, kept) = finish(&case("both.sh", &[])).await;
    let numbered = |word: &str| (0..1000).map(|i| format!("{word} {i}")).collect::<Vec<_>>();
    assert_eq!(kept.texts("stdout"), numbered("out"));
    assert_eq!(kept.texts("stderr"), numbered("err"));
}

#[tokio::test]
async fn a_question_meets_the_end_of_input_and_is_seen() {
    let (outcome, kept) = finish(&case("asks.sh", &[])).await;
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_eq!(kept.texts("stdout"), ["Continue? [y/N] ", "no answer"]);
    let (_, kept) = finish(&shell("printf 'Continue? '")).await;
    assert_eq!(kept.logs("stdout")[0].eol, Some(false));
}

#[tokio::test]
async fn a_line_is_seen_at_once() {
    let seen = Arc::new(Latency::default());
    let sink: Arc<dyn EventSink> = seen.clone();
    let slow = case("slow.sh", &["5"]);
    run(&slow, &sink, &OutputBudget::unlimited(), &Scope::new("test"), &Cancel::new()).await.unwrap();
    // The median: a busy machine may delay one, but what waits for more output delays all.
    let mut delays = seen.0.lock().unwrap().clone();
    delays.sort_unstable();
    assert_eq!(delays.len(), 5);
    assert!(delays[2] < Duration::from_millis(100), "{delays:?}");
}

/// Compares the time in a line with the time at which it comes.
#[derive(Default)]
struct Latency(Mutex<Vec<Duration>>);

impl EventSink for Latency {
    fn emit(&self, _: Event) {}

    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        let body = String::from_utf8_lossy(batch.bodies()).into_owned();
        let written: u64 =
            body.split('"').find_map(|text| text.strip_prefix("tick ")?.split(' ').nth(1)?.parse().ok()).unwrap();
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap();
        self.0.lock().unwrap().push(now - Duration::from_nanos(written));
        batch.clear();
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn a_slow_sink_slows_the_process_and_loses_nothing() {
    let slow = Arc::new(Slow::default());
    let sink: Arc<dyn EventSink> = slow.clone();
    let flood = case("flood.sh", &["25000"]);
    let started = Instant::now();
    let outcome = run(&flood, &sink, &OutputBudget::unlimited(), &Scope::new("test"), &Cancel::new()).await.unwrap();
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_eq!(slow.lines.load(Ordering::Relaxed), 25_000);
    assert_eq!(slow.bytes.load(Ordering::Relaxed), 25_000 * 59);
    assert!(
        started.elapsed() > Duration::from_secs(1),
        "what was written before the exit is read, however long it takes"
    );
}

/// Makes room only after a while. A process that has exited must not lose what is still in its pipe.
#[derive(Default)]
struct Slow {
    lines: AtomicU64,
    bytes: AtomicU64,
}

impl EventSink for Slow {
    fn emit(&self, _: Event) {}

    fn send<'a>(&'a self, batch: &'a mut EventBatch) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(150)).await;
            let (lines, bytes) = batch.output();
            self.lines.fetch_add(lines, Ordering::Relaxed);
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            batch.clear();
        })
    }
}

async fn books(command: &Command, budget: &OutputBudget) -> (Arc<Kept>, [(u64, u64); 2]) {
    let kept = Kept::new();
    let sink: Arc<dyn EventSink> = kept.clone();
    run(command, &sink, budget, &Scope::new("test"), &Cancel::new()).await.unwrap();
    let sums = ["stdout", "stderr"].map(|stream| {
        let logs = kept.logs(stream);
        let clipped = kept.of_type("clipped").into_iter().filter(|event| event["stream"] == stream);
        let stored = (logs.iter().map(|log| log.lines()).sum(), logs.iter().map(|log| log.bytes()).sum());
        clipped.fold(stored, |sum: (u64, u64), event| {
            (sum.0 + event["lines"].as_u64().unwrap(), sum.1 + event["bytes"].as_u64().unwrap())
        })
    });
    (kept, sums)
}

#[tokio::test]
async fn past_the_budget_output_is_counted_and_the_run_goes_on() {
    // Less than either stream has, so that both are clipped whichever comes first.
    let budget = OutputBudget::new(1_000_000).already_used(995_000);
    let (kept, sums) = books(&case("both.sh", &[]), &budget).await;
    let bytes = |words: usize| (0..1000).map(|i: u64| words as u64 + 2 + i.to_string().len() as u64).sum::<u64>();
    assert_eq!(sums, [(1000, bytes(3)), (1000, bytes(3))]);
    assert!(budget.is_exhausted() && budget.used() <= 1_000_000 && budget.used() > 999_990);
    let clipped = kept.of_type("clipped");
    assert_eq!(clipped.len(), 2);
    assert_eq!((&clipped[0]["state"], &clipped[0]["reason"]), (&"build".into(), &"run-cap".into()));
    assert!(clipped[0]["from_ts"].as_str() < clipped[0]["to_ts"].as_str());

    let (kept, sums) = books(&case("longline.sh", &[]), &OutputBudget::new(200_000)).await;
    assert_eq!(sums[0], (2, 1_000_008));
    assert_eq!(kept.logs("stdout").len(), 3, "pieces that fit are kept");

    let (kept, sums) = books(&shell("echo one; echo two >&2; printf three"), &OutputBudget::new(0)).await;
    assert_eq!((sums, kept.of_type("log").len()), ([(2, 9), (1, 4)], 0));
}

#[tokio::test]
async fn standard_output_may_be_a_message() {
    let command =
        Command { emit_message: true, index: Some(2), ..shell("echo Hello; printf 'caf\\351'; echo oops >&2") };
    let (outcome, kept) = finish(&command).await;
    let messages = kept.of_type("message");
    assert_eq!(messages[0].to_string(), r#"{"delta":true,"role":"assistant","text":"Hello\n","type":"message"}"#);
    assert_eq!(messages[1]["text"], "caf\u{fffd}");
    assert_eq!((kept.texts("stderr"), kept.of_type("log")[0]["index"].as_u64()), (vec!["oops".to_owned()], Some(2)));
    assert_eq!(outcome.stdout, b"Hello\ncaf\xe9");
}

#[tokio::test]
async fn a_broken_sink_does_not_change_the_outcome() {
    struct Broken;
    impl EventSink for Broken {
        fn emit(&self, _: Event) {}
        fn send<'a>(&'a self, _: &'a mut EventBatch) -> BoxFuture<'a, ()> {
            panic!("the disk is on fire")
        }
    }
    let sink: Arc<dyn EventSink> = Arc::new(Broken);
    let flood = case("flood.sh", &["100000"]);
    let outcome = run(&flood, &sink, &OutputBudget::unlimited(), &Scope::new("test"), &Cancel::new()).await.unwrap();
    assert_eq!(outcome.exit, Exit::Code(0));
    assert!(outcome.stdout.ends_with(b"line 000099999 the quick brown fox jumps over the lazy dog\n"));
}

#[tokio::test]
async fn environment_and_folder_are_the_commands() {
    let (_keep, path) = super::harness::folder();
    let text = "pwd; echo $WHO $WHERE; echo $TAFFRAIL_SCOPE";
    let env = vec![("WHO".into(), "me".into()), ("WHERE".into(), "here".into()), ("WHO".into(), "you".into())];
    let command = Command { env, cwd: path.clone(), ..shell(text) };
    let kept = Kept::new();
    start(&command, &kept, &Cancel::new()).await.unwrap();
    let lines = kept.texts("stdout");
    assert_eq!(lines[..2], [path.canonicalize().unwrap().display().to_string(), "you here".to_owned()]);
    assert!(lines[2].contains("/test/"), "{lines:?}");
}

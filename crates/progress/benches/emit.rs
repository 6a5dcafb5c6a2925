//! What one report costs, beside `indicatif`'s `inc`, in one run.
//!
//! `cargo bench -p taffrail-progress [-- ROUNDS [REPORTS]]`: one JSON line with the medians of the nanoseconds, then one for
//! each goal, with the median of the ratios of the rounds.
//!
//! - `no_token`: [`CountingProgress::emit`] on a request whose client did not ask for progress.
//! - `held_back`: the same with a token, while a thread sends two notifications a second; so nearly all are held back.
//! - `held_back_branch`: the same on one of 64 branches.
//! - `held_back_message`: with words that are ready, of 40 characters.
//! - `no_token_message`: words that go nowhere.
//! - `inc`: `indicatif` with a hidden bar, which never draws.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench reports to people")]

use std::{
    env,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use indicatif::{ProgressBar, ProgressDrawTarget};
use taffrail_progress::{Config, CountingProgress, Next, Outlet, ProgressSource as _, ProgressToken, Source, channel};

const WORDS: &str = "compiled taffrail-progress v0.1.0 (debug)";

fn main() {
    let numbers: Vec<usize> = env::args().filter_map(|arg| arg.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(9);
    let reports = numbers.get(1).copied().unwrap_or(2_000_000);
    let silent = || Source::silent().counting_progress(None);
    let (paced, plain) = Paced::start(|source| source.counting_progress(None));
    let (paced_words, words) = Paced::start(|source| source.counting_progress(None));
    let mut branches = None;
    let (paced_branch, branch) = Paced::start(|source| {
        let parts = source.percent_progress().split(&[1.0; 64]).unwrap();
        let p = parts[7].counting_progress(None);
        branches = Some(parts);
        p
    });
    let (no_token, no_token_words) = (silent(), silent());
    let bar = ProgressBar::with_draw_target(Some(u64::MAX), ProgressDrawTarget::hidden());
    let names = ["inc", "no_token", "held_back", "held_back_branch", "held_back_message", "no_token_message"];
    let mut nanos = vec![Vec::new(); names.len()];
    for round in 0..rounds {
        // Another one begins each time, so that none always meets the same neighbour.
        for turn in 0..names.len() {
            let which = (round + turn) % names.len();
            // A loop for each, so that the call in it is a direct one.
            nanos[which].push(match names[which] {
                "inc" => time(reports, || black_box(&bar).inc(1)),
                "no_token" => time(reports, || emit(&no_token)),
                "held_back" => time(reports, || emit(&plain)),
                "held_back_branch" => time(reports, || emit(&branch)),
                "held_back_message" => time(reports, || say(&words)),
                _ => time(reports, || say(&no_token_words)),
            });
        }
    }
    let sent = paced.end() + paced_words.end() + paced_branch.end();
    let mut out = format!("{{\"bench\":\"progress-emit\",\"rounds\":{rounds},\"reports\":{reports},\"sent\":{sent}");
    for (name, nanos) in names.iter().zip(&nanos) {
        out.push_str(&format!(",\"{name}_ns\":{:.1}", median(nanos.clone())));
    }
    println!("{out}}}");
    let of = |name: &str| names.iter().position(|other| *other == name).map(|at| &nanos[at]).unwrap();
    for name in ["held_back", "held_back_branch"] {
        let ratio = median(of(name).iter().zip(of("inc")).map(|(ours, inc)| ours / inc).collect());
        goal(name, median(of(name).clone()), ("indicatif inc", median(of("inc").clone())), ratio, (0.6, 0.2));
    }
    // What is promised without a peer.
    for (name, limit) in
        [("no_token", 20.0), ("held_back", 100.0), ("held_back_branch", 100.0), ("held_back_message", 100.0)]
    {
        let ours = median(of(name).clone());
        goal(name, ours, ("at most", limit), ours / limit, (1.0, 0.5));
    }
}

/// A line for the table of goals.
fn goal(name: &str, ours: f64, (peer_name, peer): (&str, f64), ratio: f64, (must, aim): (f64, f64)) {
    println!(
        "{{\"bench\":\"progress-emit\",\"row\":14,\"work\":\"progress {name}, {peer_name}\",\"unit\":\"ns\",\"ours\":{ours:.1},\
         \"peer\":{peer:.1},\"peer_name\":\"{peer_name}\",\"ratio\":{ratio:.3},\"must\":{must},\"aim\":{aim},\"sense\":\"at most\"}}"
    );
}

fn emit(p: &CountingProgress) {
    black_box(p).emit().unwrap();
}

fn say(p: &CountingProgress) {
    black_box(p).emit_with(black_box(WORDS)).unwrap();
}

/// Nanoseconds for one.
fn time(reports: usize, one: impl Fn()) -> f64 {
    let begin = Instant::now();
    (0..reports).for_each(|_| one());
    begin.elapsed().as_nanos() as f64 / reports as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A thread that sends, as a driver does, to nobody.
struct Paced {
    ending: Arc<AtomicBool>,
    thread: JoinHandle<usize>,
}

impl Paced {
    fn start<T>(emitter: impl FnOnce(&Source) -> T) -> (Self, T) {
        let ending = Arc::new(AtomicBool::new(false));
        let (hand, take) = std::sync::mpsc::channel::<Outlet>();
        let theirs = Arc::clone(&ending);
        let thread = thread::spawn(move || drive(take.recv().unwrap(), &theirs));
        let sleeper = thread.thread().clone();
        let (source, outlet) = channel(ProgressToken::Number(1), Config::default(), move || sleeper.unpark());
        hand.send(outlet).unwrap();
        (Self { ending, thread }, emitter(&source))
    }

    /// How many were sent.
    fn end(self) -> usize {
        self.ending.store(true, Ordering::SeqCst);
        self.thread.thread().unpark();
        self.thread.join().unwrap()
    }
}

fn drive(mut outlet: Outlet, ending: &AtomicBool) -> usize {
    let mut sent = 0;
    while !ending.load(Ordering::SeqCst) {
        let now = Instant::now();
        match outlet.poll(now) {
            Next::Send(notification) => {
                black_box(notification);
                sent += 1;
            }
            Next::Pause(until) | Next::Sleep(Some(until)) => thread::park_timeout(until - now),
            Next::Sleep(None) => thread::park(),
        }
    }
    sent
}

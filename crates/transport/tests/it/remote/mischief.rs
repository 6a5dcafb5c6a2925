//! Following, through every kind of trouble at once.

use std::{sync::Mutex, time::Duration};

use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{RngAlgorithm, TestRng, TestRunner},
};
use taffrail_mcp_core::{RunStatus, Start};

use super::{
    fake::{Act, Asked, Fake, answer, json, problem, stream_head},
    follow::read,
    run::Run,
};

/// One thing that goes wrong.
#[derive(Debug, Clone)]
enum Mischief {
    None,
    /// The answer is cut off after some of its bytes.
    Cut(usize),
    /// It comes in pieces.
    Pieces(usize),
    Reset(usize),
    Hang(usize),
    /// Others answer.
    Page(u16),
    Busy(u16),
    /// The cursor is not looked at, or an old one.
    Back(usize),
    /// The stream ends in good order, but too soon.
    Short(usize),
    NoContent,
}

fn mischief() -> impl Strategy<Value = Mischief> {
    prop_oneof![
        3 => Just(Mischief::None),
        3 => (0..4000usize).prop_map(Mischief::Cut),
        2 => (1..300usize).prop_map(Mischief::Pieces),
        2 => (0..4000usize).prop_map(Mischief::Reset),
        1 => (0..3000usize).prop_map(Mischief::Hang),
        1 => prop_oneof![Just(200u16), Just(502), Just(504)].prop_map(Mischief::Page),
        1 => prop_oneof![Just(429u16), Just(500), Just(503)].prop_map(Mischief::Busy),
        2 => (0..40usize).prop_map(Mischief::Back),
        2 => (0..12usize).prop_map(Mischief::Short),
        1 => Just(Mischief::NoContent),
    ]
}

fn serve(run: &Run, asked: &Asked, mischief: &Mischief) -> Vec<Act> {
    let good = run.serve(asked);
    let [Act::Send(bytes)] = &good[..] else { return good };
    let first = |n: usize| Act::Send(bytes[..n.min(bytes.len())].to_vec());
    match mischief {
        Mischief::Cut(n) => vec![first(*n)],
        Mischief::Pieces(n) => {
            let pieces = bytes.chunks(*n).map(|piece| Act::Send(piece.to_vec()));
            pieces.flat_map(|piece| [piece, Act::Pause(Duration::ZERO)]).collect()
        }
        Mischief::Reset(n) => vec![first(*n), Act::Reset],
        Mischief::Hang(n) => vec![first(*n), Act::Hang],
        Mischief::Page(status) => answer(*status, "text/html", "", "<html>"),
        Mischief::Busy(status) => problem(*status, "busy", "Retry-After: 0\r\n"),
        Mischief::Back(n) if asked.path.ends_with("/stream") => {
            let frames = run.frames(run.after(asked).saturating_sub(*n)).concat();
            vec![Act::Send([stream_head(), frames.into_bytes()].concat())]
        }
        Mischief::Short(n) if asked.path.ends_with("/stream") => {
            let frames: String = run.frames(run.after(asked)).into_iter().take(*n).collect();
            vec![Act::Send([stream_head(), frames.into_bytes()].concat())]
        }
        // Nobody answers so but for the run's end, or for a stream that somebody keeps to himself.
        Mischief::NoContent if asked.path.ends_with("/stream") && run.after(asked) < run.lines.len() => {
            vec![Act::Send(b"HTTP/1.1 204 X\r\nConnection: close\r\n\r\n".to_vec())]
        }
        _ => good,
    }
}

/// Every record comes once, in order, and the end comes last, whatever happens on the way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_record_comes_once_whatever_happens() {
    for seed in 0..60u8 {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
        let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
        let plan = prop::collection::vec(mischief(), 1..14).new_tree(&mut runner).unwrap().current();
        let run = Run::new(40);
        // While others answer for the stream, the run is going on.
        let (served, troubles, passed) = (run.clone(), plan.clone(), Mutex::new(0));
        let fake = Fake::start(move |asked| {
            let mischief = troubles.get(asked.n).unwrap_or(&Mischief::None);
            let mut passed = passed.lock().unwrap();
            *passed = served.after(asked).max(*passed);
            match asked.path.as_str() {
                "/api/v1/runs/r" if *passed < served.lines.len() => {
                    json(&served.snapshot.replace(r#""status":"done""#, r#""status":"running""#))
                }
                _ => serve(&served, asked, mischief),
            }
        })
        .await;
        let seen = read(fake.client().follow(run.run.clone(), Start::Beginning)).await;
        assert!(seen.error.is_none(), "seed {seed}: {:?} after {plan:?}", seen.error);
        assert_eq!(seen.lines, run.lines, "seed {seed}: {plan:?}");
        assert_eq!(seen.end, Some(RunStatus::Done));
    }
}

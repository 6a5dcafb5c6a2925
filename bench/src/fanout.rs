//! Rows 1, 2 and 3: events delivered a second, from publishers that are as fast as they are answered.
//!
//! One message a request, as Nchan takes no more. A round begins every server anew: Nchan with one worker, ours in
//! memory, Nchan with two workers, ours on disk; the better of the two Nchans counts. The clock runs from the first
//! request to the moment when every subscriber has every event.

use anyhow::Result;

use crate::{
    Rounds,
    load::{FanOut, Load, Target, closed_loop, fan_out},
    peers::{Nchan, Ours, Store},
    report::{Comparison, Goal, median, round},
};

const PEER: &str = "Nchan";
const UNIT: &str = "delivered/s";

/// `(subscribers, publishers)` of each comparison.
const LOADS: [(usize, usize); 5] = [(100, 8), (1000, 8), (10, 1), (100, 1), (1000, 1)];

pub(crate) fn bench(rounds: &Rounds, only: Option<&str>) -> Result<()> {
    for (subscribers, publishers) in LOADS {
        if only.is_none_or(|only| only == format!("{subscribers}/{publishers}")) {
            compare(rounds, subscribers, publishers)?;
        }
    }
    Ok(())
}

fn compare(rounds: &Rounds, subscribers: usize, publishers: usize) -> Result<()> {
    let people = format!("{subscribers} subscribers, {publishers} publisher{}", if publishers == 1 { "" } else { "s" });
    let load = Load { connections: publishers, batch: 1, time: rounds.window, messages: u64::MAX };
    let run = |target: &Target| fan_out(target, subscribers, false, |target| closed_loop(target, &load));
    let eight = publishers > 1;
    let (row, goal) = if eight { (1, Goal::AtLeast(2.5, 4.0)) } else { (3, Goal::AtLeast(0.8, 1.2)) };
    let mut memory = Comparison::new(row, format!("{people}, in memory"), UNIT, PEER, goal);
    let mut disk = Comparison::new(2, format!("{people}, on disk"), UNIT, PEER, Goal::AtLeast(1.2, 2.0));
    let (mut one_worker, mut two_workers) = (Details::default(), Details::default());
    let (mut in_memory, mut on_disk) = (Details::default(), Details::default());
    let nchan = |workers, details: &mut Details| -> Result<Option<f64>> {
        let Some(nchan) = Nchan::start(workers)? else { return Ok(None) };
        Ok(Some(details.keep(&run(&nchan.target())?)))
    };
    for _ in 0..rounds.count {
        let one = nchan(1, &mut one_worker)?;
        let ours = in_memory.keep(&run(&Ours::start(Store::Memory)?.target()?)?);
        let two = nchan(2, &mut two_workers)?;
        let best = one.into_iter().chain(two).reduce(f64::max);
        memory.round(ours, best);
        if eight {
            disk.round(on_disk.keep(&run(&Ours::start(Store::Sqlite)?.target()?)?), best);
        }
    }
    let peers = [
        ("nchan_1_worker", median(&mut one_worker.delivered).into()),
        ("nchan_2_workers", median(&mut two_workers.delivered).into()),
        ("nchan_tool_cores", round(median(&mut two_workers.tool_cores)).into()),
    ];
    memory.print("fanout", &[in_memory.fields().as_slice(), &peers].concat());
    if eight {
        disk.print("fanout", &[on_disk.fields().as_slice(), &peers].concat());
    }
    Ok(())
}

/// What stands beside the figure that counts.
#[derive(Default)]
struct Details {
    delivered: Vec<f64>,
    published: Vec<f64>,
    tool_cores: Vec<f64>,
}

impl Details {
    fn keep(&mut self, run: &FanOut) -> f64 {
        self.delivered.push(run.per_second());
        self.published.push(run.published.per_second());
        self.tool_cores.push(run.tool_cores);
        run.per_second()
    }

    fn fields(&mut self) -> Vec<(&'static str, serde_json::Value)> {
        vec![
            ("published_per_s", round(median(&mut self.published)).into()),
            ("tool_cores", round(median(&mut self.tool_cores)).into()),
        ]
    }
}

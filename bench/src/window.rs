//! Row 9: a window of 200 after a random position of a log of a million, over HTTP, one reader and ten.
//!
//! Each server is filled once and begun anew in every round. Peers are asked in their own protocols, over sockets of
//! the machine, by the same loop that asks ours.

use anyhow::{Context as _, Result, ensure};

use crate::{
    Rounds,
    load::{Exchanged, Load, Protocol, closed_loop, exchange},
    peers::{Ours, Postgres, Redis, Store, scratch},
    report::{Comparison, Goal, median, percentile, round},
};

pub(crate) fn bench(rounds: &Rounds, records: u64) -> Result<()> {
    let dir = || Ok::<_, anyhow::Error>(tempfile::tempdir_in(scratch()?)?);
    let (ours_dir, redis_dir, postgres_dir) = (dir()?, dir()?, dir()?);
    let ours = Ours::start_in(ours_dir.path(), Store::Sqlite)?;
    let run = ours.run("bench")?;
    let load = Load { connections: 8, batch: 1000, time: std::time::Duration::MAX, messages: records };
    closed_loop(&run.target("bench"), &load)?;
    let head = run.head()?;
    ensure!(head > records, "{head} of {records} are stored");
    drop(ours);
    let has_redis = match Redis::start_in(redis_dir.path().to_owned())? {
        Some(redis) => {
            redis.fill(records)?;
            true
        }
        None => false,
    };
    let has_postgres = Postgres::create(postgres_dir.path())?;
    if has_postgres {
        Postgres::start_in(postgres_dir.path())?.fill(records)?;
    }

    let mut ways = [
        (1, Way::new(records, "c1", Goal::AtLeast(0.9, 1.3))),
        (10, Way::new(records, "c10", Goal::AtLeast(1.0, 2.0))),
    ];
    // The last page still has 200.
    let positions = records - 200;
    for _ in 0..rounds.count {
        let ask = |protocol: &dyn Protocol| {
            let ask = |connections| {
                // Warm: what is measured is the way of a page, not of a file into memory.
                exchange(protocol, connections, positions, rounds.window / 8)?;
                exchange(protocol, connections, positions, rounds.window / 2)
            };
            Ok::<_, anyhow::Error>([ask(1)?, ask(10)?])
        };
        let redis = if has_redis {
            let redis = Redis::start_in(redis_dir.path().to_owned())?.context("Redis is gone")?;
            Some(ask(&redis)?)
        } else {
            None
        };
        let mine = {
            let ours = Ours::start_in(ours_dir.path(), Store::Sqlite)?;
            ask(&run.on(&ours))?
        };
        let postgres = if has_postgres { Some(ask(&Postgres::start_in(postgres_dir.path())?)?) } else { None };
        for (at, (_, way)) in ways.iter_mut().enumerate() {
            way.round(mine.get(at), redis.as_ref().and_then(|r| r.get(at)), postgres.as_ref().and_then(|p| p.get(at)));
        }
    }
    for (_, way) in ways {
        way.print();
    }
    Ok(())
}

/// One reader, or ten.
struct Way {
    comparison: Comparison,
    ours_p50: Vec<f64>,
    redis: Vec<f64>,
    redis_p50: Vec<f64>,
    postgres: Vec<f64>,
    postgres_p50: Vec<f64>,
}

impl Way {
    fn new(records: u64, who: &str, goal: Goal) -> Self {
        let work = format!("page of 200 at {records} over HTTP, {who}");
        Self {
            comparison: Comparison::new(9, work, "pages/s", "the better of PostgreSQL and Redis", goal),
            ours_p50: Vec::new(),
            redis: Vec::new(),
            redis_p50: Vec::new(),
            postgres: Vec::new(),
            postgres_p50: Vec::new(),
        }
    }

    fn round(&mut self, ours: Option<&Exchanged>, redis: Option<&Exchanged>, postgres: Option<&Exchanged>) {
        let Some(ours) = ours else { return };
        self.ours_p50.push(percentile(&ours.times_us, 0.5));
        for (from, rates, times) in
            [(redis, &mut self.redis, &mut self.redis_p50), (postgres, &mut self.postgres, &mut self.postgres_p50)]
        {
            if let Some(from) = from {
                rates.push(from.per_second);
                times.push(percentile(&from.times_us, 0.5));
            }
        }
        let best = redis.into_iter().chain(postgres).map(|peer| peer.per_second).reduce(f64::max);
        self.comparison.round(ours.per_second, best);
    }

    fn print(mut self) {
        self.comparison.print(
            "window",
            &[
                ("ours_p50_us", round(median(&mut self.ours_p50)).into()),
                ("redis_per_s", round(median(&mut self.redis)).into()),
                ("redis_p50_us", round(median(&mut self.redis_p50)).into()),
                ("postgres_per_s", round(median(&mut self.postgres)).into()),
                ("postgres_p50_us", round(median(&mut self.postgres_p50)).into()),
            ],
        );
    }
}

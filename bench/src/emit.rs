//! How long `emit` takes: 32 threads of 10,000 on one thread of the log, 50 readers, 10 of them stalled for ever.

use std::{sync::Arc, time::Instant};

use anyhow::Result;
use rustix::time::{ClockId, clock_gettime};
use taffrail_mcp_core::{EventSink, Note, RunId, Start, ThreadId};
use taffrail_relay::{Config, Delivery, Relay};
use taffrail_store_sqlite::SqliteStore;

use crate::{peers, report};

const THREADS: usize = 32;
const EMITS: usize = 10_000;

fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

pub(crate) fn bench() -> Result<()> {
    let dir = tempfile::tempdir_in(peers::scratch()?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (mut wall, cpu_max) = runtime.block_on(async {
        let store = Arc::new(SqliteStore::open(dir.path().join("bench.db"), Default::default())?);
        let relay = Relay::start(store, Config::default())?;
        let thread = ThreadId::new("bench")?;
        let publisher = relay.publisher(&thread, &RunId::new("bench")?).await?;
        publisher.emit(Note::info("first").into());
        publisher.flush().await?;
        let mut stalled = Vec::new();
        for _ in 0..10 {
            let mut follower = relay.follow(&thread, None, Start::Beginning).await?;
            follower.next().await?;
            stalled.push(follower);
        }
        let total = (THREADS * EMITS + 1) as u64;
        let mut readers = Vec::new();
        for _ in 0..40 {
            let mut follower = relay.follow(&thread, None, Start::Beginning).await?;
            readers.push(tokio::spawn(async move {
                let mut bytes = 0;
                while follower.position().0 < total {
                    if let Delivery::Blocks(blocks) = follower.next().await? {
                        bytes += blocks.iter().map(|block| block.bytes.len()).sum::<usize>();
                    }
                }
                Ok::<usize, anyhow::Error>(bytes)
            }));
        }
        let writers: Vec<_> = (0..THREADS)
            .map(|_| {
                let publisher = publisher.clone();
                std::thread::spawn(move || {
                    let (mut wall, mut cpu) = (Vec::with_capacity(EMITS), 0);
                    for i in 0..EMITS {
                        let event = Note::info(format!("note number {i} of a thread that has a lot to say")).into();
                        let (begin, begin_cpu) = (Instant::now(), cpu_ns());
                        publisher.emit(event);
                        cpu = cpu.max(cpu_ns() - begin_cpu);
                        wall.push(begin.elapsed().as_nanos() as f64 / 1000.0);
                    }
                    (wall, cpu)
                })
            })
            .collect();
        let (mut wall, mut cpu_max) = (Vec::new(), 0);
        for writer in writers {
            let (times, cpu) = writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))?;
            wall.extend(times);
            cpu_max = cpu_max.max(cpu);
        }
        for reader in readers {
            reader.await??;
        }
        drop(stalled);
        Ok::<_, anyhow::Error>((wall, cpu_max))
    })?;
    wall.sort_by(f64::total_cmp);
    report::below("emit: slowest, in microseconds of processor time", cpu_max as f64 / 1000.0, 1000.0);
    report::figure(
        "emit",
        &[
            ("wall_us_p50", report::round(report::percentile(&wall, 0.5)).into()),
            ("wall_us_p99", report::round(report::percentile(&wall, 0.99)).into()),
            ("wall_us_p9999", report::round(report::percentile(&wall, 0.9999)).into()),
            ("wall_us_max", report::round(report::percentile(&wall, 1.0)).into()),
            ("cpu_us_max", report::round(cpu_max as f64 / 1000.0).into()),
            ("over_1ms_wall", wall.iter().filter(|us| **us > 1000.0).count().into()),
        ],
    );
    Ok(())
}

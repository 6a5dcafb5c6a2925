use std::{fs, io, sync::atomic::AtomicBool};

use taffrail_mcp_core::BoxFuture;
use taffrail_relay::Block;
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;
use crate::{
    Delivery, SpoolFile, What,
    door::Disk,
    testing::{block, lines, run},
};

const SOON: Duration = Duration::from_secs(20);

/// A log that tests write, and any number of sources on it.
#[derive(Clone)]
struct Log {
    written: watch::Sender<Written>,
}

#[derive(Default)]
struct Written {
    blocks: Vec<Block>,
    kept_from: Seq,
    ended: bool,
    failing: bool,
}

struct LogSource {
    written: watch::Receiver<Written>,
    after: Seq,
}

impl Log {
    fn new() -> Self {
        Self { written: watch::Sender::default() }
    }

    fn write(&self, block: Block) {
        self.written.send_modify(|written| written.blocks.push(block));
    }

    fn end(&self) {
        self.written.send_modify(|written| written.ended = true);
    }

    fn source(&self) -> LogSource {
        LogSource { written: self.written.subscribe(), after: Seq(u64::MAX) }
    }
}

impl BlockSource for LogSource {
    type Error = io::Error;

    fn start_at(&mut self, after: Seq) {
        self.after = after;
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Delivery, io::Error>> {
        Box::pin(async move {
            let after = self.after;
            let news = |written: &Written| {
                written.ended || written.failing || written.blocks.iter().any(|block| block.last() > after)
            };
            let Ok(written) = self.written.wait_for(news).await else {
                return Ok(Delivery::End);
            };
            if written.failing {
                return Err(io::Error::other("the store is away"));
            }
            if after < written.kept_from {
                self.after = written.kept_from;
                return Ok(Delivery::Gap { to: written.kept_from });
            }
            let blocks: Vec<Block> = written.blocks.iter().filter(|block| block.last() > after).cloned().collect();
            Ok(match blocks.last() {
                Some(last) => {
                    self.after = last.last();
                    Delivery::Blocks(blocks)
                }
                None => Delivery::End,
            })
        })
    }
}

/// A disk that can be full: then it takes `7` bytes of a write and no more.
#[derive(Clone, Default)]
struct Fillable(Arc<AtomicBool>);

impl Disk for Fillable {
    fn write(&mut self, file: &mut fs::File, bytes: &[u8]) -> io::Result<usize> {
        use io::{Seek, Write};
        if !self.0.load(Ordering::Relaxed) {
            return file.write(bytes);
        }
        if file.seek(io::SeekFrom::End(0))? % 2 == 0 || bytes.len() < 7 {
            return Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()));
        }
        file.write(&bytes[..7])
    }
}

fn spools(folder: &TempDir) -> Spools {
    Spools::new(folder.path().join("s"), Limits::default())
}

fn records(spools: &Spools) -> String {
    let text = fs::read_to_string(spools.path(&run())).unwrap();
    text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
}

#[tokio::test]
async fn a_run_is_followed_to_its_end() {
    let folder = TempDir::new().unwrap();
    let (spools, log) = (spools(&folder), Log::new());
    log.write(block(1, 2, 120));
    let path = spools.attach(&run(), log.source()).await.unwrap();
    assert!(path.is_absolute() && path.is_file());
    assert_eq!(path, spools.path(&run()));
    assert_eq!(spools.attach(&run(), log.source()).await.unwrap(), path);
    log.write(block(3, 2, 120));
    assert_eq!(spools.drain(&run(), Seq(4), SOON).await, Drained::Complete);
    assert_eq!(records(&spools), lines(1, 4, 120));
    assert_eq!(spools.drain(&run(), Seq(5), Duration::from_millis(20)).await, Drained::Incomplete { cursor: Seq(4) });
    log.write(block(5, 1, 120));
    log.end();
    // At the end of the run there is nothing to wait for, whatever was asked.
    assert_eq!(spools.drain(&run(), Seq(5), SOON).await, Drained::Complete);
    let mut gone = tokio::time::interval(Duration::from_millis(1));
    while spools.is_attached(&run()) {
        gone.tick().await;
    }
    assert_eq!(records(&spools), lines(1, 5, 120));
    assert_eq!(spools.drain(&run(), Seq(5), SOON).await, Drained::Complete);
    assert_eq!(spools.drain(&run(), Seq(6), SOON).await, Drained::Incomplete { cursor: Seq(5) });
}

#[tokio::test]
async fn a_full_disk_pauses_the_spool_and_nothing_is_missing_after() {
    let folder = TempDir::new().unwrap();
    let disk = Fillable::default();
    let (notices, mut told) = mpsc::unbounded_channel();
    let made = disk.clone();
    let spools = Spools::with(
        &folder.path().join("s"),
        Limits::default(),
        Arc::new(move |notice| notices.send(notice).unwrap()),
        Arc::new(move || Box::new(made.clone())),
    );
    let log = Log::new();
    spools.attach(&run(), log.source()).await.unwrap();
    log.write(block(1, 2, 121));
    assert_eq!(spools.drain(&run(), Seq(2), SOON).await, Drained::Complete);
    disk.0.store(true, Ordering::Relaxed);
    log.write(block(3, 3, 121));
    let paused = told.recv().await.unwrap();
    assert!(paused.to_string().starts_with("spool-paused no space left for /"), "{paused}");
    assert_eq!(records(&spools), lines(1, 2, 121));
    log.write(block(6, 1, 121));
    disk.0.store(false, Ordering::Relaxed);
    let resumed = told.recv().await.unwrap();
    assert_eq!(resumed.what, What::Resumed { from: Seq(3) });
    assert_eq!(spools.drain(&run(), Seq(6), SOON).await, Drained::Complete);
    assert_eq!(records(&spools), lines(1, 6, 121));
    insta::assert_snapshot!(
        "notices",
        format!("{}\n{resumed}", paused.to_string().replace(&*spools.path(&run()).to_string_lossy(), "PATH"))
    );
}

#[tokio::test]
async fn a_failing_store_pauses_the_spool_too() {
    let folder = TempDir::new().unwrap();
    let (notices, mut told) = mpsc::unbounded_channel();
    let spools = spools(&folder).on_notice(move |notice| notices.send(notice).unwrap());
    let log = Log::new();
    log.written.send_modify(|written| written.failing = true);
    spools.attach(&run(), log.source()).await.unwrap();
    assert_eq!(told.recv().await.unwrap().what, What::Paused { reason: "the store is away".into() });
    log.write(block(1, 1, 120));
    log.written.send_modify(|written| written.failing = false);
    assert_eq!(told.recv().await.unwrap().what, What::Resumed { from: Seq(1) });
}

#[tokio::test]
async fn what_the_log_lost_is_told() {
    let folder = TempDir::new().unwrap();
    let (notices, mut told) = mpsc::unbounded_channel();
    let spools = spools(&folder).on_notice(move |notice| notices.send(notice).unwrap());
    let log = Log::new();
    log.write(block(8, 2, 120));
    log.written.send_modify(|written| written.kept_from = Seq(7));
    spools.attach(&run(), log.source()).await.unwrap();
    assert_eq!(spools.drain(&run(), Seq(9), SOON).await, Drained::Complete);
    assert_eq!(told.recv().await.unwrap().what, What::Missed { from: Seq(1), to: Seq(7) });
    assert_eq!(records(&spools), lines(8, 2, 120));
}

#[tokio::test]
async fn a_second_writer_stands_by_and_takes_over() {
    let folder = TempDir::new().unwrap();
    let (spools, log) = (spools(&folder), Log::new());
    let mut first = SpoolFile::open(folder.path().join("s"), &run(), Limits::default()).unwrap();
    first.append(&block(1, 2, 120)).unwrap();
    log.write(block(1, 5, 120));
    assert_eq!(spools.attach(&run(), log.source()).await.unwrap(), first.path());
    assert_eq!(spools.drain(&run(), Seq(2), SOON).await, Drained::Complete);
    first.append(&block(3, 1, 120)).unwrap();
    drop(first);
    assert_eq!(spools.drain(&run(), Seq(5), SOON).await, Drained::Complete);
    assert_eq!(records(&spools), lines(1, 5, 120));
}

#[tokio::test]
async fn detached_and_dropped_spools_let_go_of_their_files() {
    let folder = TempDir::new().unwrap();
    let (spools, log) = (spools(&folder), Log::new());
    log.write(block(1, 2, 120));
    spools.attach(&run(), log.source()).await.unwrap();
    spools.drain(&run(), Seq(2), SOON).await;
    spools.detach(&run()).await;
    spools.detach(&run()).await;
    log.write(block(3, 1, 120));
    let mut file = SpoolFile::open(folder.path().join("s"), &run(), Limits::default()).unwrap();
    assert_eq!(file.cursor(), Seq(2));
    file.append(&block(3, 1, 120)).unwrap();
    drop(file);
    spools.attach(&run(), log.source()).await.unwrap();
    assert_eq!(spools.drain(&run(), Seq(3), SOON).await, Drained::Complete);
    drop(spools);
    let mut gone = tokio::time::interval(Duration::from_millis(1));
    while let Err(SpoolError::Busy { .. }) = SpoolFile::open(folder.path().join("s"), &run(), Limits::default()) {
        gone.tick().await;
    }
}

#[tokio::test]
async fn an_unsafe_folder_attaches_nothing() {
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("s")).unwrap();
    let spools = spools(&folder);
    let refused = spools.attach(&run(), Log::new().source()).await;
    assert!(matches!(refused, Err(SpoolError::Unsafe { .. })), "{refused:?}");
    let mut gone = tokio::time::interval(Duration::from_millis(1));
    while spools.is_attached(&run()) {
        gone.tick().await;
    }
}

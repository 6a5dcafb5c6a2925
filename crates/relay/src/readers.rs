//! Who waits for a thread to grow, and when they are woken.
//!
//! At once, usually. Were many woken for each event of a flood, each would send it by itself, and take the processors from
//! those who bring more; so they are woken again when they had the time to send what was there before.

use std::{
    sync::{
        Arc, Mutex, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use taffrail_mcp_core::Seq;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use crate::hot::lock;

/// What waking a reader takes of a processor until it has sent what it was woken for: a write to a socket is 5 µs, on both
/// sides.
const READER_TIME: Duration = Duration::from_micros(10);
/// The same when there was more than a record or two to send. In a flood readers have a part of the processors, not all.
const FLOOD_TIME: Duration = Duration::from_micros(40);
/// Records for each reader that make a flood.
const FLOOD: u64 = 3;
/// So many readers are always woken at once: no timer is as fine as what they take.
const MANY: u32 = 50;
/// They are never woken later than this, however many they are.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// Takes those who are to be woken at a time, for [`pace`].
pub(crate) type Pacer = mpsc::UnboundedSender<(Instant, Weak<Readers>)>;

/// The readers of a thread.
#[derive(Debug)]
pub(crate) struct Readers {
    grown: watch::Sender<()>,
    waking: Mutex<Waking>,
    pacer: Pacer,
    /// Nobody tells them any more that the thread has grown.
    closed: AtomicBool,
}

/// When they were woken last, and whether they will be by the pacer.
#[derive(Debug)]
struct Waking {
    last: Instant,
    due: bool,
    /// How far the thread goes, and how far it went then.
    head: Seq,
    told: Seq,
    /// So many records came with the last waking.
    records: u64,
}

impl Waking {
    fn now(&mut self, now: Instant) {
        let records = self.head.0.saturating_sub(self.told.0);
        *self = Self { last: now, due: false, head: self.head, told: self.head, records };
    }

    /// How long these readers are busy after they were woken last.
    fn rest(&self, readers: u32) -> Duration {
        let each = if self.records >= FLOOD { FLOOD_TIME } else { READER_TIME };
        each.saturating_mul(readers).min(LONGEST_REST)
    }
}

impl Readers {
    pub(crate) fn new(head: Seq, pacer: Pacer) -> Arc<Self> {
        let waking = Waking { last: Instant::now(), due: false, head, told: head, records: 0 };
        Arc::new(Self {
            grown: watch::Sender::new(()),
            waking: Mutex::new(waking),
            pacer,
            closed: AtomicBool::new(false),
        })
    }

    /// Changes when the thread grows.
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.grown.subscribe()
    }

    /// Whether there are any.
    pub(crate) fn are_there(&self) -> bool {
        self.grown.receiver_count() > 0
    }

    /// The thread has grown up to `head`.
    pub(crate) fn wake(self: &Arc<Self>, head: Seq) {
        let readers = u32::try_from(self.grown.receiver_count()).unwrap_or(u32::MAX);
        if readers > MANY && !self.are_closed() {
            let mut waking = lock(&self.waking);
            waking.head = waking.head.max(head);
            if waking.due {
                return;
            }
            let (now, at) = (Instant::now(), waking.last + waking.rest(readers));
            if at > now && self.pacer.send((at, Arc::downgrade(self))).is_ok() {
                waking.due = true;
                return;
            }
            waking.now(now);
        }
        self.grown.send_replace(());
    }

    fn wake_now(&self) {
        lock(&self.waking).now(Instant::now());
        self.grown.send_replace(());
    }

    /// The relay has ended: those who wait are told.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.grown.send_replace(());
    }

    pub(crate) fn are_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

/// Wakes readers at the times that were asked for.
pub(crate) async fn pace(mut due: mpsc::UnboundedReceiver<(Instant, Weak<Readers>)>) {
    while let Some((at, readers)) = due.recv().await {
        tokio::spawn(async move {
            sleep_until(at).await;
            if let Some(readers) = readers.upgrade() {
                readers.wake_now();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_of_a_flood_rest_longer_and_never_for_long() {
        let mut waking = Waking { last: Instant::now(), due: true, head: Seq(11), told: Seq(10), records: 0 };
        waking.now(Instant::now());
        assert_eq!((waking.due, waking.rest(100)), (false, Duration::from_millis(1)));
        waking.head = Seq(14);
        waking.now(Instant::now());
        assert_eq!(waking.rest(100), Duration::from_millis(4));
        assert_eq!(waking.rest(u32::MAX), LONGEST_REST);
    }

    #[tokio::test(start_paused = true)]
    async fn many_are_woken_at_once_first_and_then_together() {
        let (pacer, due) = mpsc::unbounded_channel();
        tokio::spawn(pace(due));
        let readers = Readers::new(Seq(0), pacer);
        let mut watching: Vec<_> = (0..100).map(|_| readers.watch()).collect();
        tokio::time::sleep(LONGEST_REST).await;
        readers.wake(Seq(1));
        assert!(watching.iter().all(|grown| grown.has_changed().unwrap()));
        watching.iter_mut().for_each(|grown| grown.mark_unchanged());
        let begun = Instant::now();
        for head in 2..10 {
            readers.wake(Seq(head));
            assert!(!watching[0].has_changed().unwrap());
        }
        watching[0].changed().await.unwrap();
        assert!((READER_TIME * 100..READER_TIME * 300).contains(&begun.elapsed()), "{:?}", begun.elapsed());
        // That was a flood.
        readers.wake(Seq(10));
        let begun = Instant::now();
        watching[0].changed().await.unwrap();
        assert!(begun.elapsed() >= FLOOD_TIME * 100 - READER_TIME * 300, "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn few_are_always_woken_at_once() {
        let (pacer, _due) = mpsc::unbounded_channel();
        let readers = Readers::new(Seq(0), pacer);
        let mut watching: Vec<_> = (0..MANY).map(|_| readers.watch()).collect();
        for head in 1..10 {
            readers.wake(Seq(head));
            for grown in &mut watching {
                assert!(grown.has_changed().unwrap());
                grown.mark_unchanged();
            }
        }
    }
}

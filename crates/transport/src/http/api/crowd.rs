//! Pages that are asked for at the same time are made side by side.
//!
//! To make one takes a tenth of a millisecond of a processor. One alone is made where its request was read: to wake another
//! thread takes as long. Many at once would leave the other processors idle, and all else on that thread waiting: they are
//! made by threads that do nothing else, and need no waking while there are more.

use std::{
    io,
    panic::{AssertUnwindSafe, resume_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::{runtime::Handle, sync::oneshot};

/// Who asks for one page after the other takes longer than this to read one and ask for the next. Sooner, others wait.
const NEXT: Duration = Duration::from_micros(120);

type Job = BoxFuture<'static, ()>;

/// The pages that are being made.
#[derive(Debug)]
pub(crate) struct Crowd {
    begun: Instant,
    now: AtomicUsize,
    /// When the last one was ready, in microseconds after `begun`.
    last_us: AtomicU64,
    /// Where those go that are made aside; made when it is first needed.
    aside: Mutex<Option<Sender<Job>>>,
}

impl Default for Crowd {
    fn default() -> Self {
        Self { begun: Instant::now(), now: AtomicUsize::new(0), last_us: AtomicU64::new(0), aside: Mutex::default() }
    }
}

impl Crowd {
    /// Makes a page; on another thread while others are being made or wait. `None` when that ended with the server.
    pub(super) async fn make<T: Send + 'static>(&self, page: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let others = self.now.fetch_add(1, Ordering::Relaxed);
        let _made = Made(self);
        let since = self.now_us().saturating_sub(self.last_us.load(Ordering::Relaxed));
        if others == 0 && u128::from(since) >= NEXT.as_micros() {
            return Some(page.await);
        }
        let (ready, made) = oneshot::channel();
        let job: Job = Box::pin(async move {
            // Who has gone does not want it any more.
            let _ = ready.send(AssertUnwindSafe(page).catch_unwind().await);
        });
        if let Err(job) = self.aside(job) {
            job.await;
        }
        match made.await.ok()? {
            Ok(page) => Some(page),
            // Answered as any panic of a request.
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Hands over to the other threads; gives back what they cannot do.
    fn aside(&self, job: Job) -> Result<(), Job> {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        if aside.is_none() {
            *aside = start().ok();
        }
        match &*aside {
            Some(threads) => threads.send(job).map_err(|error| error.0),
            None => Err(job),
        }
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// Starts threads for the processors that the runtime leaves free. They end with what they are sent by.
fn start() -> io::Result<Sender<Job>> {
    let (sender, jobs) = channel::<Job>();
    let jobs = Arc::new(Mutex::new(jobs));
    let processors = thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..processors.div_ceil(2) {
        let (jobs, runtime) = (Arc::clone(&jobs), Handle::current());
        thread::Builder::new().name("taffrail-pages".into()).spawn(move || {
            while let Some(job) = next(&jobs) {
                runtime.block_on(job);
            }
        })?;
    }
    Ok(sender)
}

fn next(jobs: &Mutex<Receiver<Job>>) -> Option<Job> {
    jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

struct Made<'a>(&'a Crowd);

impl Drop for Made<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
        self.0.last_us.store(self.0.now_us(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn one_alone_is_made_here_and_many_at_once_elsewhere() {
        let crowd = Crowd::default();
        tokio::time::sleep(NEXT).await;
        let place = || async { thread::current().id() };
        assert_eq!(crowd.make(place()).await, Some(thread::current().id()));
        tokio::time::sleep(NEXT).await;
        let many = join_all((0..50).map(|_| {
            crowd.make(async {
                tokio::task::yield_now().await;
                thread::current().id()
            })
        }));
        let made = many.await;
        assert!(made.iter().all(Option::is_some));
        assert!(made[1..].iter().all(|place| *place != Some(thread::current().id())));
    }

    #[tokio::test]
    async fn a_panic_is_that_of_the_request_and_the_next_page_is_made() {
        let crowd = Arc::new(Crowd::default());
        for _ in 0..2 {
            let crowd = Arc::clone(&crowd);
            let made = tokio::spawn(async move { crowd.make(async { panic!("made so") }).await });
            let panicked: Result<Option<()>, _> = made.await;
            assert!(panicked.unwrap_err().is_panic());
        }
        assert_eq!(crowd.make(async { 7 }).await, Some(7));
        assert_eq!(crowd.now.load(Ordering::Relaxed), 0);
    }
}

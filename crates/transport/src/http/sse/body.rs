//! The body of a stream: what waits is handed out, and nothing is made before it is asked for.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::Frame;

/// Frames between who makes them and the body that hands them out.
///
/// Both are one task: the lock is never waited for.
#[derive(Debug, Clone, Default)]
pub(super) struct Out(Arc<Mutex<VecDeque<Bytes>>>);

impl Out {
    fn frames(&self) -> std::sync::MutexGuard<'_, VecDeque<Bytes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame.
    pub(super) fn push(&self, frame: Bytes) {
        self.frames().push_back(frame);
    }

    /// Resolves when everything was handed out. Nobody wakes who waits here: the body asks again when it has handed out
    /// the last frame.
    pub(super) async fn taken(&self) {
        poll_fn(|_| if self.frames().is_empty() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

/// A body that is made by a future: it hands out what the future adds to its [`Out`], and ends with it.
///
/// The future is polled only when all frames were handed out and the connection has room for more. So a client that does
/// not read costs what was handed out last, and nobody else anything.
pub(super) struct MadeBody {
    out: Out,
    making: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl MadeBody {
    pub(super) fn new<F: Future<Output = ()> + Send + 'static>(make: impl FnOnce(Out) -> F) -> Self {
        let out = Out::default();
        let making: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(make(out.clone()));
        Self { out, making: Some(making) }
    }
}

impl http_body::Body for MadeBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        loop {
            if let Some(frame) = self.out.frames().pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(frame))));
            }
            let Some(making) = &mut self.making else { return Poll::Ready(None) };
            if making.as_mut().poll(cx).is_ready() {
                self.making = None;
            } else if self.out.frames().is_empty() {
                return Poll::Pending;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use http_body::Body as _;

    use super::*;

    async fn next(body: &mut MadeBody) -> Option<Bytes> {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        frame.unwrap().into_data().ok()
    }

    #[tokio::test]
    async fn nothing_is_made_before_it_is_asked_for() {
        let made = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&made);
        let mut body = MadeBody::new(|out| async move {
            for round in 0..3u8 {
                out.push(vec![round].into());
                out.push(vec![round, round].into());
                count.fetch_add(1, Ordering::Relaxed);
                out.taken().await;
            }
            out.push(Bytes::from_static(b"end"));
        });
        for round in 0..3 {
            assert_eq!(made.load(Ordering::Relaxed), u32::from(round));
            assert_eq!(next(&mut body).await.unwrap(), vec![round]);
            assert_eq!(next(&mut body).await.unwrap(), vec![round, round]);
            assert_eq!(made.load(Ordering::Relaxed), u32::from(round) + 1);
        }
        assert_eq!(next(&mut body).await.unwrap(), "end");
        assert_eq!(next(&mut body).await, None);
        assert_eq!(next(&mut body).await, None);
    }
}

//! Work that a request begins and that is carried to its end.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;

/// A future that is done where it is awaited, and when that is given up, by a task of its own: a client that goes away
/// ends the connection, and with it every future of its requests.
///
/// So what has arrived is stored, and in the usual case no task is made.
pub(super) struct CarriedOut<T: Send + 'static>(Option<Pin<Box<dyn Future<Output = T> + Send>>>);

impl<T: Send + 'static> CarriedOut<T> {
    pub(super) fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for CarriedOut<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Done before means asked again after the end, which nobody does; then it never ends.
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for CarriedOut<T> {
    fn drop(&mut self) {
        // A panic of the work unwinds through here: such work is not gone on with.
        if let Some(work) = self.0.take().filter(|_| !std::thread::panicking())
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn given_up_work_is_done_all_the_same() {
        let (go, gone) = oneshot::channel::<()>();
        let (done, told) = oneshot::channel();
        let work = CarriedOut::new(async move {
            let _ = gone.await;
            let _ = done.send(7);
        });
        assert!(tokio::time::timeout(Duration::from_millis(1), work).await.is_err());
        go.send(()).unwrap();
        assert_eq!(told.await, Ok(7));
    }

    #[tokio::test]
    async fn awaited_work_gives_its_result() {
        assert_eq!(CarriedOut::new(async { 7 }).await, 7);
    }
}

//! A response that begins before the answer is there.
//!
//! The SDK sends nothing, not even a head, before a call's first message: a call that waits for 25 s looks to hosts and
//! proxies like a server that is gone. So when the answer takes its time, a stream of events is begun, with comments in
//! it, and the answer goes into that.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    body::Body,
    http::{HeaderName, header},
    response::{IntoResponse as _, Response},
};
use bytes::{Bytes, BytesMut};
use http_body::Frame;
use tokio::time::{Instant, Sleep};

/// How long an answer may take to choose its own form: nearly all that do not wait are faster, errors with their own
/// status among them; nobody calls this silence.
const HEAD_WITHIN: Duration = Duration::from_millis(300);
/// A comment, which clients pass over.
const COMMENT: &[u8] = b":\n\n";
/// Most that an answer which is no stream is collected to. Ours are below it; what is above was never meant for here.
const COLLECT_MOST: usize = 16 * 1024 * 1024;

/// Answers with what `answering` gives: as it is when that comes soon, else inside a stream of events.
pub(super) async fn respond(
    answering: impl Future<Output = Response> + Send + 'static,
    keep_alive: Duration,
) -> Response {
    let mut answering = Box::pin(answering);
    if let Ok(answer) = tokio::time::timeout(HEAD_WITHIN, answering.as_mut()).await {
        return answer;
    }
    let body =
        Early { state: State::Waiting(answering), comment: Box::pin(tokio::time::sleep(Duration::ZERO)), keep_alive };
    let headers: [(HeaderName, &str); 3] = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::new(body)).into_response()
}

/// The stream.
struct Early {
    state: State,
    /// When the next comment is due, while there is no answer.
    comment: Pin<Box<Sleep>>,
    keep_alive: Duration,
}

enum State {
    Waiting(Pin<Box<dyn Future<Output = Response> + Send>>),
    /// The answer is a stream itself.
    Passing(Body),
    /// The answer is one message, which becomes one event.
    Collecting(Body, BytesMut),
    Ended,
}

impl State {
    fn of(answer: Response) -> Self {
        let form = answer.headers().get(header::CONTENT_TYPE);
        let stream = form.is_some_and(|form| form.as_bytes().starts_with(b"text/event-stream"));
        match stream {
            true => State::Passing(answer.into_body()),
            false => State::Collecting(answer.into_body(), BytesMut::from(&b"data: "[..])),
        }
    }
}

impl http_body::Body for Early {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        loop {
            match &mut self.state {
                State::Waiting(answering) => match answering.as_mut().poll(cx) {
                    Poll::Ready(answer) => self.state = State::of(answer),
                    Poll::Pending => {
                        std::task::ready!(self.comment.as_mut().poll(cx));
                        let next = Instant::now() + self.keep_alive;
                        self.comment.as_mut().reset(next);
                        return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(COMMENT)))));
                    }
                },
                State::Passing(body) => return Pin::new(body).poll_frame(cx),
                State::Collecting(body, event) => match std::task::ready!(Pin::new(body).poll_frame(cx)) {
                    Some(Ok(frame)) => {
                        // A message of ours is one line; whatever else comes stays in one event.
                        let data = frame.data_ref().map(|data| data.iter().filter(|byte| **byte != b'\n').copied());
                        event.extend(data.into_iter().flatten());
                        if event.len() > COLLECT_MOST {
                            self.state = State::Ended;
                        }
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                    None => {
                        event.extend_from_slice(b"\n\n");
                        let event = std::mem::take(event).freeze();
                        self.state = State::Ended;
                        return Poll::Ready(Some(Ok(Frame::data(event))));
                    }
                },
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future;
    use http_body_util::BodyExt as _;

    use super::*;

    async fn after(wait: Duration, answer: Response) -> Response {
        tokio::time::sleep(wait).await;
        answer
    }

    async fn text(response: Response) -> (String, String) {
        let form = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (form, String::from_utf8(body.to_vec()).unwrap())
    }

    fn answer(form: &'static str, text: &'static str) -> Response {
        ([(header::CONTENT_TYPE, form)], text).into_response()
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_soon_comes_as_it_is() {
        let soon = after(Duration::from_millis(200), answer("application/json", "{}"));
        let response = respond(soon, Duration::from_secs(15)).await;
        assert_eq!(text(response).await, ("application/json".into(), "{}".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_its_time_comes_in_a_stream_with_comments() {
        let begun = Instant::now();
        let slow = after(Duration::from_secs(40), answer("text/event-stream", "data: 1\n\n"));
        let response = respond(slow, Duration::from_secs(15)).await;
        assert_eq!(begun.elapsed(), HEAD_WITHIN);
        // At once, and twice in the 40 s.
        let stream = ("text/event-stream".to_owned(), ":\n\n:\n\n:\n\ndata: 1\n\n".to_owned());
        assert_eq!(text(response).await, stream);
        let slow = after(Duration::from_secs(1), answer("application/json", "{\n}"));
        let response = respond(slow, Duration::from_secs(15)).await;
        assert_eq!(text(response).await, ("text/event-stream".into(), ":\n\ndata: {}\n\n".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_goes_away_takes_the_call_with_it() {
        let (gone, told) = tokio::sync::oneshot::channel::<()>();
        let call = async move {
            let _held = gone;
            future::pending().await
        };
        drop(respond(call, Duration::from_secs(15)).await);
        assert!(told.await.is_err());
    }
}

//! The end of a request: counted, and written to the access log.

use std::{
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{body::Body, http::Method, response::Response};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use super::{Chosen, Principal};
use crate::http::app::App;

/// What is told of a request that its client gave up before it was answered; the number is nginx's.
const GIVEN_UP: u16 = 499;

/// What will be told of a request; it is when this is dropped.
pub(super) struct Account {
    app: App,
    pub(super) chosen: Chosen,
    method: Method,
    status: u16,
    started: Instant,
    bytes: u64,
    pub(super) principal: Principal,
    remote: IpAddr,
}

impl Account {
    /// Begins when a request's head is there.
    pub(super) fn new(app: App, method: Method, remote: IpAddr) -> Self {
        Self {
            app,
            chosen: Chosen::default(),
            method,
            status: GIVEN_UP,
            started: Instant::now(),
            bytes: 0,
            principal: Principal::Nobody,
            remote,
        }
    }

    /// Goes on with the response, and ends with its body.
    pub(super) fn respond(mut self, response: Response) -> Response<Told> {
        self.status = response.status().as_u16();
        response.map(|body| Told { body, account: self })
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let elapsed = self.started.elapsed();
        let route = self.chosen.0.get().copied().unwrap_or("none");
        self.app.metrics().answered(route, &self.method, self.status, elapsed);
        tracing::info!(
            target: "taffrail::access",
            method = self.method.as_str(),
            route,
            status = self.status,
            bytes = self.bytes,
            ms = elapsed.as_micros() as f64 / 1000.0,
            principal = self.principal.as_str(),
            remote = %self.remote,
            "request"
        );
    }
}

/// A response's body, which it passes on as it is, with the account of its request.
pub(crate) struct Told {
    body: Body,
    account: Account,
}

impl http_body::Body for Told {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.account.bytes += data.len() as u64;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

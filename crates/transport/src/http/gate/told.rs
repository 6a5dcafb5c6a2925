//! The end of a request: counted, and written to the access log, when its response's body ends.

use std::{
    net::IpAddr,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::Body,
    http::{Method, StatusCode},
    response::Response,
};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Instant;

use super::Principal;
use crate::http::app::App;

/// A response's body that tells of its end. It passes frames on as they are.
pub(crate) struct Told {
    body: Body,
    app: App,
    route: &'static str,
    method: Method,
    status: StatusCode,
    started: Instant,
    bytes: u64,
    principal: Principal,
    remote: IpAddr,
}

impl Told {
    pub(super) fn new(
        body: Body,
        app: App,
        route: &'static str,
        method: Method,
        started: Instant,
        principal: Principal,
        remote: IpAddr,
    ) -> Self {
        Self { body, app, route, method, status: StatusCode::OK, started, bytes: 0, principal, remote }
    }
}

/// Puts a response's body into one that tells of its end.
pub(super) fn respond(response: Response, told: impl FnOnce(Body) -> Told) -> Response<Told> {
    let status = response.status();
    response.map(|body| {
        let mut told = told(body);
        told.status = status;
        told
    })
}

impl http_body::Body for Told {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.bytes += data.len() as u64;
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

impl Drop for Told {
    fn drop(&mut self) {
        let elapsed = self.started.elapsed();
        self.app.metrics().answered(self.route, &self.method, self.status, elapsed);
        tracing::info!(
            target: "taffrail::access",
            method = self.method.as_str(),
            route = self.route,
            status = self.status.as_u16(),
            bytes = self.bytes,
            ms = elapsed.as_micros() as f64 / 1000.0,
            principal = self.principal.as_str(),
            remote = %self.remote,
            "request"
        );
    }
}

//! The HTTP surface: REST, server-sent events, ingest, MCP.
//!
//! [`HttpServer`] is given a [`Service`](taffrail_runs::Service) and serves it until it is told to end. Every request
//! passes one gate (who asks, from where, how often) and then the router; every mistake is answered with
//! `application/problem+json`. TLS is a proxy's business.

mod app;
mod code;
mod config;
mod cursor;
mod ingest;
mod metrics;
mod problem;
mod router;
mod server;
mod sse;

pub use self::{
    config::{HttpConfig, HttpLimits},
    server::{HttpError, HttpServer},
};

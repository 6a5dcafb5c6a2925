//! The HTTP surface: REST, server-sent events, ingest, MCP.
//!
//! [`HttpServer`] is given a [`Service`](taffrail_runs::Service) and serves it until it is told to end. Every request
//! passes one gate (who asks, from where, how often) and then the router; every mistake is answered with
//! `application/problem+json`. TLS is a proxy's business.
//!
//! ```no_run
//! use taffrail_runs::Service;
//! use taffrail_transport::http::{HttpConfig, HttpError, HttpServer, OperatorToken};
//!
//! async fn serve(service: Service) -> Result<(), HttpError> {
//!     let config = HttpConfig { token: Some(OperatorToken::generate()), ..HttpConfig::default() };
//!     let server = HttpServer::bind(service.clone(), config, ([127, 0, 0, 1], 7433).into())?;
//!     server.serve(async { _ = tokio::signal::ctrl_c().await }).await;
//!     service.close().await;
//!     Ok(())
//! }
//! ```

mod api;
mod app;
mod body;
mod code;
mod config;
mod connection;
mod cursor;
#[doc(hidden)]
pub mod entry;
mod gate;
mod health;
mod ingest;
mod linger;
mod login;
mod mcp;
mod measure;
mod metrics;
mod openapi;
mod page;
mod params;
mod paths;
mod problem;
mod router;
mod server;
mod sse;
mod token;

pub use self::{
    config::{HttpConfig, HttpLimits},
    mcp::{McpEndpoint, McpEndpointConfig, only_local},
    measure::{CommitMeter, MeasuredStore},
    openapi::openapi,
    server::{HttpError, HttpServer, HttpService},
    token::{BadToken, OperatorToken},
};
/// What names and URLs of [`HttpConfig`] are made of.
pub use axum::http::{Uri, uri::Authority};

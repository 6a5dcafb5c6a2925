//! Progress as a client sees it: every notification, compared pair by pair.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(feature = "rmcp")]
mod asked;
mod branches;
#[cfg(feature = "tokio")]
mod driven;
mod emitters;
#[cfg(feature = "rmcp")]
mod http;
mod manners;
#[cfg(feature = "rmcp")]
mod served;
mod support;
mod threads;

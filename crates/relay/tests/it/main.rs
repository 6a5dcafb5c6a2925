//! The relay's promises, on the memory store and on stores that misbehave.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod contract;
mod failing;
mod fence;
mod ingest;
mod pages;
mod publish;
mod races;
mod support;
mod unlucky;

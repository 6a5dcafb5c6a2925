//! The relay's promises, on the memory store and on stores that misbehave.

mod contract;
mod failing;
mod pages;
mod publish;
mod races;
mod support;
mod unlucky;

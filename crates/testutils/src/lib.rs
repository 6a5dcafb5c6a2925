//! Shared test helpers of the Taffrail workspace.
//!
//! [`store_suite`] is the contract of [`taffrail_relay::Store`] as tests: every implementation runs the same cases.

pub mod store_suite;

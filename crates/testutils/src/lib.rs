//! Shared test helpers of the Taffrail workspace.
//!
//! [`store_suite`] is the contract of [`taffrail_relay::Store`] as tests: every implementation runs the same cases.
//! [`lease_suite`] is the same for [`taffrail_relay::Leases`], and [`leases`] the implementation in memory.
//! [`postgres`] starts scratch servers for stores that need one, [`browser`] a browser, and [`balancer`] what stands
//! before several servers.

pub mod balancer;
#[cfg(unix)]
pub mod browser;
#[cfg(unix)]
mod debian;
pub mod lease_suite;
pub mod leases;
#[cfg(unix)]
pub mod postgres;
pub mod store_suite;

//! Spools as other programs see them: files, limits, hostile folders, killed writers, full disks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod full;
mod hostile;
mod kept;
mod killed;
mod relayed;
mod rotated;
mod support;

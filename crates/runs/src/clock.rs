//! The one door to the clock.

use std::time::{Duration, SystemTime};

use taffrail_mcp_core::Timestamp;

/// Now.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// How long ago something was; nothing for what is still to come.
pub(crate) fn since(then: Timestamp) -> Duration {
    Duration::from_micros(now().micros().saturating_sub(then.micros()))
}

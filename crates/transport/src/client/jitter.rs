//! The one door to randomness.

use uuid::Uuid;

/// A random number, to spread waits.
pub(super) fn random() -> u64 {
    Uuid::new_v4().as_u64_pair().0
}

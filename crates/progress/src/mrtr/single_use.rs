//! States that are taken once.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

/// Remembers which request states were used.
///
/// Without one, a client may send the same answers again as long as the state has not expired. Where servers share a key,
/// they share this too.
pub trait SingleUse: Send + Sync {
    /// Uses a state up. `false`: it was used before.
    ///
    /// `nonce` is never the same for two states. After `expires_ms` (of the Unix epoch; it is `now_ms` now) the state is
    /// refused anyway, and may be forgotten. Of any number of concurrent calls for one nonce exactly one gets `true`; an
    /// implementation that cannot tell answers `false`.
    fn spend(&self, nonce: [u8; 16], expires_ms: u64, now_ms: u64) -> bool;
}

/// The states used in this process: 24 bytes or so each, until they expire.
#[derive(Debug, Default)]
pub struct SpentStates(Mutex<Spent>);

#[derive(Debug, Default)]
struct Spent {
    expiry_ms: HashMap<[u8; 16], u64>,
    /// Above this many, those that have expired are looked for.
    limit: usize,
}

impl SingleUse for SpentStates {
    fn spend(&self, nonce: [u8; 16], expires_ms: u64, now_ms: u64) -> bool {
        let mut spent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.expiry_ms.len() >= spent.limit {
            spent.expiry_ms.retain(|_, expiry| *expiry > now_ms);
            // Doubling keeps the looking cheap.
            spent.limit = (spent.expiry_ms.len() * 2).max(64);
        }
        spent.expiry_ms.insert(nonce, expires_ms).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_and_forgotten_after_its_time() {
        let spent = SpentStates::default();
        assert!(spent.spend([1; 16], 100, 0));
        assert!(!spent.spend([1; 16], 100, 50));
        assert!(spent.spend([2; 16], 100, 50));
        for index in 0..10_000_u128 {
            assert!(spent.spend((index + 3).to_be_bytes(), 200 + index as u64, 200 + index as u64));
        }
        assert!(spent.0.lock().unwrap().expiry_ms.len() < 200, "what has expired is not kept");
    }
}

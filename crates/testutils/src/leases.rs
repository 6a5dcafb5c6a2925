//! Leases in memory: for tests of what stands on them, and as the shortest example of the contract.

use std::{
    collections::{BTreeMap, HashMap},
    future::ready,
    sync::{Arc, Mutex, PoisonError},
};

use taffrail_mcp_core::BoxFuture;
use taffrail_relay::{Leases, StoreError};

/// Keeps everything in memory. A clone is the same leases.
#[derive(Debug, Clone, Default)]
pub struct MemoryLeases {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    holders: BTreeMap<String, Holder>,
    keys: HashMap<String, String>,
}

#[derive(Debug, Default)]
struct Holder {
    beats: u64,
    revoked: bool,
}

impl MemoryLeases {
    /// Without holders.
    pub fn new() -> Self {
        Self::default()
    }

    fn answer<T: Send + 'static>(&self, f: impl FnOnce(&mut State) -> T) -> BoxFuture<'static, Result<T, StoreError>> {
        let value = f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(ready(Ok(value)))
    }
}

impl State {
    /// A holder that is alive; made known.
    fn alive(&mut self, holder: String) -> Option<&mut Holder> {
        Some(self.holders.entry(holder).or_default()).filter(|holder| !holder.revoked)
    }

    fn take(&mut self, key: String, holder: String) -> bool {
        if self.alive(holder.clone()).is_none() {
            return false;
        }
        let by = self.keys.get(&key).filter(|by| self.holders.get(*by).is_some_and(|by| !by.revoked));
        if by.is_some_and(|by| *by != holder) {
            return false;
        }
        self.keys.insert(key, holder);
        true
    }

    fn revoke(&mut self, holder: &str, beats: u64) -> bool {
        let Some(holder) = self.holders.get_mut(holder) else { return false };
        holder.revoked |= holder.beats == beats;
        holder.revoked
    }
}

impl Leases for MemoryLeases {
    fn take(&self, key: String, holder: String) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.answer(|state| state.take(key, holder))
    }

    fn release(&self, key: String, holder: String) -> BoxFuture<'static, Result<(), StoreError>> {
        self.answer(|state| {
            if state.keys.get(&key) == Some(&holder) {
                state.keys.remove(&key);
            }
        })
    }

    fn holder(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>> {
        self.answer(|state| state.keys.get(&key).cloned())
    }

    fn beat(&self, holder: String) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.answer(|state| {
            let alive = state.alive(holder);
            alive.map(|holder| holder.beats += 1).is_some()
        })
    }

    fn holders(&self) -> BoxFuture<'static, Result<Vec<(String, u64)>, StoreError>> {
        self.answer(|state| {
            let known = state.holders.iter().filter(|(_, holder)| !holder.revoked);
            known.map(|(name, holder)| (name.clone(), holder.beats)).collect()
        })
    }

    fn revoke(&self, holder: String, beats: u64) -> BoxFuture<'static, Result<bool, StoreError>> {
        self.answer(|state| state.revoke(&holder, beats))
    }

    fn leave(&self, holder: String) -> BoxFuture<'static, Result<(), StoreError>> {
        self.answer(|state| {
            // One that was revoked is remembered: it must not come back.
            if state.holders.get(&holder).is_some_and(|known| !known.revoked) {
                state.holders.remove(&holder);
                state.keys.retain(|_, by| *by != holder);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease_suite;

    #[tokio::test(flavor = "multi_thread")]
    async fn memory_leases_keep_the_contract() {
        lease_suite::run_all(|| {
            let leases = MemoryLeases::new();
            (Arc::new(leases.clone()), Arc::new(leases))
        })
        .await;
    }
}

//! The seam to who is alive, for a store that several machines share.

use taffrail_mcp_core::BoxFuture;

use crate::StoreError;

/// Says which living process holds what, where locks of one machine's kernel cannot.
///
/// A *holder* is a process, under a name that is its own for as long as it lives. It says that it is alive by
/// [`Leases::beat`]; whether it is, others judge by their own clocks: a count of beats that stands still for long
/// enough *while the store could be read* belongs to a process that is gone, and may be [revoked](Leases::revoke). So
/// neither clocks that differ nor a database that was away for a minute ends anybody.
///
/// # What callers may assume
///
/// A key has one holder at a time, whichever processes ask. What was answered is durable. A revoked holder never holds
/// again under the same name: its beats and takes answer `false`.
///
/// # What implementors must guarantee
///
/// Each call is one transaction. Futures may be dropped at any time; the call is then carried out whole or not at all.
pub trait Leases: Send + Sync + 'static {
    /// Takes a key. `true` when `holder` has it now; `false` when a holder that is not revoked has it, or this one was
    /// revoked. The first call of a holder makes it known, with no beats.
    fn take(&self, key: String, holder: String) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// Gives a key back; nothing happens when `holder` does not have it.
    fn release(&self, key: String, holder: String) -> BoxFuture<'static, Result<(), StoreError>>;

    /// Who has a key, revoked or not.
    fn holder(&self, key: String) -> BoxFuture<'static, Result<Option<String>, StoreError>>;

    /// Says that a holder is alive; makes it known. `false` when it was revoked: it holds nothing any more.
    fn beat(&self, holder: String) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// All holders that are known and not revoked, with their counts of beats.
    fn holders(&self) -> BoxFuture<'static, Result<Vec<(String, u64)>, StoreError>>;

    /// Ends a holder, unless it has beaten since it was seen with this count. `true` when it is revoked now. Its keys
    /// are free to take.
    fn revoke(&self, holder: String, beats: u64) -> BoxFuture<'static, Result<bool, StoreError>>;

    /// Forgets a holder that leaves in good order, with its keys.
    fn leave(&self, holder: String) -> BoxFuture<'static, Result<(), StoreError>>;
}

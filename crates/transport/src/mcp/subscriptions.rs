//! News of runs: `subscriptions/listen`, and `resources/subscribe` of the revisions before it.
//!
//! Both send `notifications/resources/updated`, which says only that a run changed: what became of it is in the resource.
//! So nothing has to be kept for those who take them slowly.

mod listen;
mod subscribe;

pub(super) use self::{
    listen::{accepted, listen},
    subscribe::{Subscriptions, needs_a_session},
};

/// Most runs of one request to listen, and of one session. Each costs a few KiB while it is listened to.
const MOST_RUNS: usize = 64;

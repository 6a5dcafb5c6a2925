//! Notices that the process which started this one is gone.
//!
//! Hosts kill their servers' launchers, crash, or leave children behind without ever closing their
//! input; a server that only waits for the end of input would then stay for ever.

use std::time::Duration;

use rustix::process::{Pid, getppid};

/// How often the parent is looked up. It costs one system call; the contract is two seconds.
const PERIOD: Duration = Duration::from_millis(250);

/// Remembers the parent at the time it was made.
///
/// Looks at the parent's id rather than at a descriptor of the parent: an orphan is given a new parent at
/// once on every Unix, while pidfds are Linux only and cannot be had for a parent of another user.
#[derive(Debug, Clone, Copy)]
pub struct ParentWatch {
    parent: Option<Pid>,
}

impl ParentWatch {
    /// Remembers the present parent. Call it early: a parent that dies before that is not noticed.
    pub fn new() -> Self {
        Self { parent: getppid() }
    }

    /// Resolves when the remembered parent is gone; never for a process that had none (in a container, the
    /// first one's death ends all others anyway).
    pub async fn gone(self) {
        gone(self.parent, getppid).await;
    }
}

impl Default for ParentWatch {
    fn default() -> Self {
        Self::new()
    }
}

async fn gone<P: PartialEq>(parent: Option<P>, now: impl Fn() -> Option<P>) {
    if parent.is_none() {
        return std::future::pending().await;
    }
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    while now() == parent {
        ticks.tick().await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_changed_parent_is_noticed_within_two_seconds() {
        let start = Instant::now();
        let looks = Cell::new(0);
        gone(Some(7), || {
            looks.set(looks.get() + 1);
            (looks.get() < 5).then_some(7)
        })
        .await;
        assert!(start.elapsed() < Duration::from_secs(2));
        assert_eq!(looks.get(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_without_parent_waits_for_ever() {
        let wait = gone(None::<i32>, || Some(1));
        let hour = Duration::from_secs(3600);
        assert!(tokio::time::timeout(hour, wait).await.is_err());
    }
}

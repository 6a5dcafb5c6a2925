//! Asking processes to end.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// A request to end, in two stages, shared by whoever asks and whatever shall end.
///
/// [`Cancel::cancel`] sends SIGTERM to the process group, waits for the grace and sends SIGKILL; [`Cancel::kill`] sends
/// SIGKILL at once, also in the middle of a grace. Both may be called from any thread, repeatedly, before or after the
/// process runs. Clones are the same request; a [`Cancel::child`] is also ended by its parent, but not the other way.
#[derive(Debug, Clone)]
pub struct Cancel {
    soft: CancellationToken,
    hard: CancellationToken,
    grace: Duration,
}

impl Cancel {
    /// Time between SIGTERM and SIGKILL unless told otherwise.
    pub const GRACE: Duration = Duration::from_secs(5);

    /// A request that nobody has made yet, with the default grace of 5 s.
    pub fn new() -> Self {
        Self { soft: CancellationToken::new(), hard: CancellationToken::new(), grace: Self::GRACE }
    }

    /// The same request with another grace, which also follows a time limit.
    #[must_use]
    pub fn with_grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }

    /// A request of its own that is also made whenever this one is.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { soft: self.soft.child_token(), hard: self.hard.child_token(), grace: self.grace }
    }

    /// Asks for an end in good order.
    pub fn cancel(&self) {
        self.soft.cancel();
    }

    /// Asks for an end at once.
    pub fn kill(&self) {
        self.soft.cancel();
        self.hard.cancel();
    }

    /// Whether either stage was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.soft.is_cancelled()
    }

    /// Whether the second stage was asked for.
    pub fn is_killed(&self) -> bool {
        self.hard.is_cancelled()
    }

    /// Resolves when either stage is asked for. Dropping the future has no effect.
    pub async fn cancelled(&self) {
        self.soft.cancelled().await;
    }

    /// Resolves when the second stage is asked for. Dropping the future has no effect.
    pub async fn killed(&self) {
        self.hard.cancelled().await;
    }

    /// Time between SIGTERM and SIGKILL.
    pub const fn grace(&self) -> Duration {
        self.grace
    }
}

impl Default for Cancel {
    fn default() -> Self {
        Self::new()
    }
}

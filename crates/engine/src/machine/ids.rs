//! Where ids of checkpoints and approvals come from.

/// Makes ids.
///
/// The engine has no randomness of its own. Every id must be new, for ever, and not guessable: knowing the id of an
/// approval is part of deciding it. Called from any thread; must not block or panic.
pub trait IdSource: Send + Sync {
    /// A new id.
    fn next_id(&self) -> String;
}

impl<F: Fn() -> String + Send + Sync> IdSource for F {
    fn next_id(&self) -> String {
        self()
    }
}

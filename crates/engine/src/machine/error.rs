//! Why a run cannot be resumed. In every case nothing has been emitted and the run is as it was.

/// Why a run cannot be resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// A newer program wrote the checkpoint.
    #[error("the checkpoint has version {found}, and this program reads up to {known}; resume it with a newer one")]
    Newer {
        /// Its version.
        found: u64,
        /// The newest version this program reads.
        known: u32,
    },
    /// The checkpoint does not have the shape it should have.
    #[error("the checkpoint cannot be read")]
    Malformed {
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// The checkpoint holds no version or no frame.
    #[error("the checkpoint is empty")]
    Empty,
    /// The run's first checkpoint, which says what it was started with, was not given.
    #[error("the run's first checkpoint is missing; it holds the playbook's source and the inputs")]
    NoOrigin,
    /// A stored source is not a playbook any more.
    #[error("the stored source of playbook {name:?} cannot be used: {message}")]
    Source {
        /// Its name.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// The checkpoint names a playbook or a state that the stored sources do not have.
    #[error("the checkpoint names {what} {name:?}, which its sources do not have")]
    Unknown {
        /// `playbook`, `state` or `gate`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// A state that called a playbook has no step.
    #[error("the checkpoint does not say which step state {state:?} is")]
    NoStep {
        /// The state.
        state: String,
    },
    /// Secret inputs are never stored; they have to be given again.
    #[error("give these secret inputs again, they are not stored: {}", names.join(", "))]
    SecretsNeeded {
        /// Their names.
        names: Vec<String>,
    },
    /// A resume cannot change an input.
    #[error("input {name:?} was fixed when the run was started and cannot be changed")]
    InputFixed {
        /// Its name.
        name: String,
    },
    /// The inputs do not fit the playbook.
    #[error("the inputs do not fit: {message}")]
    Inputs {
        /// What is wrong.
        message: String,
    },
    /// The inputs of a called playbook cannot be computed again.
    #[error("the inputs of playbook {name:?} cannot be computed again: {message}")]
    CallInputs {
        /// The called playbook.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// A decision was given and nothing waits for one.
    #[error("nothing waits for a decision")]
    NotWaiting,
    /// The decision is about another approval.
    #[error("the decision is about approval {given:?}, and the run waits for {pending:?}")]
    OtherApproval {
        /// The one decided.
        given: String,
        /// The one that waits.
        pending: String,
    },
    /// What would happen is not what was decided on.
    #[error("what was approved is not what would happen; look at the approval again (its hash is {hash})")]
    HashMismatch {
        /// The hash of what would happen.
        hash: String,
    },
    /// The answer does not fit its schema.
    #[error("the answer does not fit its schema: {}", problems.join("; "))]
    InvalidAnswer {
        /// What is wrong, each with its place.
        problems: Vec<String>,
    },
}

impl ResumeError {
    /// Whether another answer, or other inputs, would do.
    pub const fn is_about_what_was_given(&self) -> bool {
        matches!(
            self,
            Self::SecretsNeeded { .. } | Self::InputFixed { .. } | Self::Inputs { .. } | Self::InvalidAnswer { .. }
        )
    }
}

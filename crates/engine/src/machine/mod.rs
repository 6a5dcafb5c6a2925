//! The machine: the transition logic of one run, sans IO.
//!
//! [`Machine`] holds where a run stands; it takes [`Fact`]s and gives back [`Effect`]s. It decides everything: which
//! state comes next, what is emitted in which order, which process is started when, and what a resume needs
//! ([`ResumeData`], which stands in every checkpoint). [`crate::Engine`] is the driver that carries effects out.
//!
//! In reading order: `fact` (the vocabulary), `frame` (where a run stands), `step` (the loop), then the life of a state:
//! `enter`, `task`, `fan`, `outcome`, `gates`, `settle`; then what is special: `approval`, `stop`, `resume`, `rest`, `exec`.
//!
//! # What may be surprising
//!
//! - `step` counts every state started, at any depth; an interrupted state that runs again has the same step again.
//! - `attempt` and the counts of `repair` gates belong to one run of a playbook and are not reset when a state is come to
//!   by another way.
//! - Only the budget of the outermost playbook counts.
//! - Inside a fan-out of calls there are no checkpoints: a resume begins the fan-out again.
//! - A secret input is not stored, but a playbook that puts it into a question, a list or an output has told it.
//! - `output` is kept, and seen by the gates as `ctx`, whether or not the state succeeded, so that a repair can read it.

mod approval;
mod books;
mod enter;
mod error;
mod exec;
mod fact;
mod fan;
mod format;
mod frame;
mod gates;
mod ids;
mod language;
mod outcome;
mod rest;
mod resume;
mod settle;
mod step;
mod stop;
mod task;
#[cfg(test)]
mod tests;

pub use books::Books;
pub use error::ResumeError;
pub use exec::{CommandError, EXEC_STATE, for_command};
pub use fact::{Effect, Ended, Fact, Reading, Stop, Task, TaskId};
pub use fan::MAX_BRANCHES;
pub use format::{BudgetData, FrameData, Origin, PendingData, RepairData, ResumeData};
pub use ids::IdSource;
pub use resume::Resolution;
pub use step::{Machine, Setup};
pub(crate) use stop::INTERNAL_ERROR;

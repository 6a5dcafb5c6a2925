//! Playbooks: parse, check and run them, with every step as an event.

mod engine;
mod machine;
pub mod playbook;
pub mod process;

pub use engine::{Engine, Job, Run};
pub use machine::{
    Books, BudgetData, CommandError, EXEC_STATE, Effect, Ended, Fact, FrameData, IdSource, MAX_BRANCHES, Machine,
    Origin, PendingData, Reading, RepairData, Resolution, ResumeData, ResumeError, Setup, Stop, Task, TaskId,
    for_command,
};

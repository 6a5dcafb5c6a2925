//! Playbooks: parse, check and run them, with every step as an event.
//!
//! A *playbook* is a set of states: commands, calls of other playbooks, approvals and questions, with gates that say
//! what follows from what. [`playbook`] is the language, [`Machine`] the logic of one run without any IO, [`process`]
//! how commands are run and captured, and [`Engine`] the driver that brings them together: it takes a [`Job`], emits
//! everything that happens into the job's [`EventSink`](taffrail_mcp_core::EventSink), and says how it [`Ended`].
//!
//! A run that waits for someone, or whose server went away, is not kept in memory: the last checkpoint among its events
//! holds the [`ResumeData`] that any process can go on with. What has happened to a run is what its events say; this
//! crate stores nothing, knows no log, no network and no terminal, and makes no ids.
//!
//! ```
//! use std::sync::Arc;
//! use taffrail_engine::{Engine, Job, playbook::{Library, parse}, process::Cancel};
//! use taffrail_mcp_core::{NullSink, RunId, RunStatus, Usage};
//!
//! let source = "
//! playbook: hello
//! states:
//!   greet: { run: echo hello, output: said }
//!   check: { exec: [test, '{{ ctx.said }}', '=', hello] }
//! ";
//! let playbook = Arc::new(parse(source, "hello.yaml").playbook.ok_or("not a playbook")?);
//! let run = RunId::new("run-1")?;
//! let job = Job {
//!     thread: run.clone().into(),
//!     run,
//!     inputs: serde_json::Map::new(),
//!     cwd: std::env::temp_dir(),
//!     env: Vec::new(),
//!     usage: Usage::default(),
//!     sink: Arc::new(NullSink),
//!     cancel: Cancel::new(),
//!     shutdown: Cancel::new(),
//!     ids: Arc::new(|| "unique in real life".to_owned()),
//! };
//! let engine = Engine::new(Library::new("playbooks"));
//! let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
//! let ended = runtime.block_on(engine.start(&playbook, job));
//! assert_eq!(ended.status, RunStatus::Done);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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

//! The driver: carries out what the machine decides, and decides nothing itself.

mod door;
mod drive;
mod outlet;

use std::{num::NonZero, path::PathBuf, sync::Arc, thread};

use serde_json::{Map, Value};
use taffrail_mcp_core::{Event, EventSink, RunId, ThreadId, Usage};

use crate::{
    machine::{Books, Ended, IdSource, Machine, Reading, Resolution, ResumeData, ResumeError, Setup},
    playbook::{Library, Playbook},
    process::Cancel,
};
use drive::{Opening, Session, explain};

/// Runs playbooks. Cheap to clone; keeps nothing about any run.
#[derive(Debug, Clone)]
pub struct Engine {
    library: Library,
    parallel: usize,
}

/// Where a run gets what it needs, and where its events go.
pub struct Job {
    /// The run; in the environment of its processes as `TAFFRAIL_RUN`.
    pub run: RunId,
    /// Its log; in the environment as `TAFFRAIL_THREAD`.
    pub thread: ThreadId,
    /// For a start: the inputs, checked and completed with defaults here. For a resume: the secret ones again.
    pub inputs: Map<String, Value>,
    /// The base of all working directories. A resume keeps the one it was started with.
    pub cwd: PathBuf,
    /// More environment for every process, such as a run token. Never stored.
    pub env: Vec<(String, String)>,
    /// What the run has used according to its log; zero for a new run. A resume takes the larger of this and what its
    /// checkpoint says, as a session that was interrupted used more than its last checkpoint knows.
    pub usage: Usage,
    /// Takes the events.
    pub sink: Arc<dyn EventSink>,
    /// Made when the run shall end for good: `cancelled`.
    pub cancel: Cancel,
    /// Made when this server shall end: the run is `interrupted` and can be resumed. Of this and `cancel` the first
    /// one made counts; a cancel when both are.
    pub shutdown: Cancel,
    /// Makes ids of checkpoints and approvals.
    pub ids: Arc<dyn IdSource>,
}

/// A run that is ready to go: everything has been checked and nothing emitted.
#[must_use = "a run does nothing until it is driven"]
pub struct Run {
    machine: Machine,
    job: Job,
    name: String,
    used: Reading,
    opening: Option<Opening>,
}

impl Engine {
    /// An engine that finds called playbooks in `library`.
    pub fn new(library: Library) -> Self {
        let parallel = thread::available_parallelism().map_or(1, NonZero::get);
        Self { library, parallel }
    }

    /// Sets how many branches of a fan-out run at the same time where it does not say; default: one a processor.
    #[must_use]
    pub fn with_parallel(self, parallel: usize) -> Self {
        Self { parallel, ..self }
    }

    /// Makes a new run ready: reads all playbooks that it may call, which blocks on the disk.
    ///
    /// What is wrong with inputs or called playbooks is told by the run itself: with inputs that do not fit it halts at
    /// once, and a call of what cannot be had fails its state. A caller that wants to know before checks before.
    pub fn prepare(&self, playbook: &Arc<Playbook>, job: Job) -> Run {
        let setup = Setup {
            books: Books::collect(playbook, |name| self.find(name)),
            cwd: job.cwd.clone(),
            parallel: self.parallel,
            ids: Arc::clone(&job.ids),
        };
        let machine = Machine::new(playbook, &job.inputs, setup);
        let used = Reading::from_usage(&job.usage);
        Run { machine, name: playbook.name.clone(), used, job, opening: None }
    }

    fn find(&self, name: &str) -> Result<Arc<Playbook>, String> {
        self.library.load(name).map(|loaded| loaded.playbook).map_err(|error| explain(&error))
    }

    /// Makes a resume ready: checks the decision, the answer and the secrets. A caller that has to claim a checkpoint
    /// does so between this and [`Run::drive`].
    ///
    /// # Errors
    ///
    /// See [`ResumeError`]; nothing has been emitted, and the run is as it was.
    pub fn prepare_resume(
        &self,
        data: ResumeData,
        resolution: Option<Resolution>,
        mut job: Job,
    ) -> Result<Run, ResumeError> {
        let used = Reading::from_usage(&data.usage).max(Reading::from_usage(&job.usage));
        let name = data.frames.first().map(|frame| frame.playbook.clone()).unwrap_or_default();
        let (inputs, cwd, ids) = (std::mem::take(&mut job.inputs), job.cwd.clone(), Arc::clone(&job.ids));
        let machine = Machine::resume(data, resolution, inputs, cwd, self.parallel, ids)?;
        Ok(Run { machine, name, used, job, opening: None })
    }

    /// Runs a playbook to its end, or to where it waits for someone. See [`Run::drive`].
    pub async fn start(&self, playbook: &Arc<Playbook>, job: Job) -> Ended {
        self.prepare(playbook, job).drive().await
    }

    /// Goes on with a run. See [`Engine::prepare_resume`] and [`Run::drive`].
    ///
    /// # Errors
    ///
    /// See [`ResumeError`]; nothing has been emitted, and the run is as it was.
    pub async fn resume(
        &self,
        data: ResumeData,
        resolution: Option<Resolution>,
        job: Job,
    ) -> Result<Ended, ResumeError> {
        Ok(self.prepare_resume(data, resolution, job)?.drive().await)
    }
}

impl Run {
    /// The events up to the first checkpoint, for a caller that stores them together with a claim: whoever claims a run
    /// then leaves one that can be resumed, wherever its process is killed. Nothing has been done by then but deciding.
    ///
    /// [`Run::drive`] does not emit them again. The same events each time; without this call it emits them itself.
    pub fn opening(&mut self) -> &[Event] {
        self.opening.get_or_insert_with(|| Opening::take(&mut self.machine, &self.used)).events()
    }

    /// Runs to the end, or to where it waits for someone, and says how it ended.
    ///
    /// Exactly one `run-finished` of depth 0 is emitted, as the last event, whatever happens: after a panic of ours it
    /// is a `halt` with `internal-error`, and when this future is dropped in the middle it is `interrupted`. Processes
    /// are ended in both cases.
    pub async fn drive(self) -> Ended {
        let Run { machine, job, name, used, opening } = self;
        Session::new(machine, job, used).drive(name, opening.unwrap_or_default()).await
    }
}

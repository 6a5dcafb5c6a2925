//! Where things are, and how a service behaves.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use taffrail_relay::Retention;
use taffrail_spool::Limits;

use crate::Hosts;

const HOST_SILENCE: Duration = Duration::from_secs(5);
const EXTERNAL_SILENCE: Duration = Duration::from_secs(15 * 60);

/// The places below a data directory. The one home of their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The data directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The embedded store.
    pub fn store(&self) -> PathBuf {
        self.root.join("taffrail.db")
    }

    /// The spool folder.
    pub fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// Locks that the processes hosting runs of the embedded store hold.
    pub fn live(&self) -> PathBuf {
        self.root.join("live")
    }

    /// Logs of runs that were detached from a terminal.
    pub fn detached(&self) -> PathBuf {
        self.root.join("detached")
    }
}

/// How a service behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// The data directory, shared by all processes of one machine.
    pub layout: Layout,
    /// Folder of playbooks that are called by name.
    pub playbooks: PathBuf,
    /// Working directory of runs.
    pub cwd: PathBuf,
    /// Limits of the spool files.
    pub spool_limits: Limits,
    /// Whether runs that are hosted here get a spool file. Default: yes.
    pub spool: bool,
    /// How long processes may take to end after they were asked to. Default 5 s.
    pub grace: Duration,
    /// How long nothing may come from the producer of an external run before the run is `interrupted`. It goes on when
    /// the producer comes back. Default 15 min: a worker may be out of reach for some time, with nothing lost.
    pub external_silence: Duration,
    /// How much of the log is kept by [`crate::Service::tend`]. Default: everything.
    pub retention: Option<Retention>,
    /// How processes that share the store learn which of them are alive. Default: by kernel locks in the data directory.
    pub hosts: Hosts,
    /// How long a process may give no sign of life before the others take it for gone, with [`Hosts::Leases`]. Default
    /// 5 s, with a sign each second: longer than any hiccup, and its runs are `interrupted` within 10 s. All processes
    /// on one store should have the same.
    pub host_silence: Duration,
}

impl Config {
    /// The defaults, for a data directory.
    pub fn new(layout: Layout, playbooks: PathBuf, cwd: PathBuf) -> Self {
        let live = layout.live();
        Self {
            layout,
            playbooks,
            cwd,
            spool_limits: Limits::default(),
            spool: true,
            grace: Duration::from_secs(5),
            external_silence: EXTERNAL_SILENCE,
            retention: None,
            hosts: Hosts::Files(live),
            host_silence: HOST_SILENCE,
        }
    }
}

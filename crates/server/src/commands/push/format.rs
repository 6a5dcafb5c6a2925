//! What a folder says about its run.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use taffrail_mcp_core::{ProducerId, RunId, ThreadId};

/// A run that is sent to a server. No token: whoever sends has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    /// Version of this document.
    version: u32,
    /// The server.
    pub(super) url: String,
    /// The run, here and there.
    pub(super) run: RunId,
    /// Its log there.
    pub(super) thread: ThreadId,
    /// What it is called.
    pub(super) name: String,
    /// The id that the server gave it, once it is made there.
    #[serde(default)]
    pub(super) made: Option<RunId>,
    /// Why nothing of it is sent any more.
    #[serde(default)]
    pub(super) given_up: Option<String>,
}

impl Job {
    /// Version of the document that this program writes.
    ///
    /// - 1: the first.
    const VERSION: u32 = 1;

    pub(super) fn new(url: String, run: RunId, thread: ThreadId, name: String) -> Self {
        Self { version: Self::VERSION, url, run, thread, name, made: None, given_up: None }
    }

    /// The key under which the server knows the start.
    pub(super) fn key(&self) -> String {
        format!("exec:{}", self.run)
    }

    /// Who numbers its events.
    pub(super) fn producer(&self) -> Result<ProducerId> {
        Ok(ProducerId::new(self.run.as_str())?)
    }

    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let job: Self = serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
        if job.version > Self::VERSION {
            bail!(
                "{} was written by a newer version (its format is {}, this program knows up to {}): use that version",
                path.display(),
                job.version,
                Self::VERSION
            );
        }
        Ok(job)
    }

    /// Writes it whole, or not at all; durable on return.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        replace(path, text.as_bytes(), true).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Puts bytes in the place of a file's.
pub(super) fn replace(path: &Path, bytes: &[u8], durable: bool) -> std::io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    if durable {
        file.sync_all()?;
    }
    fs::rename(&fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_read_as_it_was_written_and_a_newer_one_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("job.json");
        let run = RunId::new("r").unwrap();
        let mut job = Job::new("http://h".to_owned(), run.clone(), run.clone().into(), "make".to_owned());
        job.made = Some(run);
        job.write(&path).unwrap();
        assert_eq!(Job::read(&path).unwrap(), job);
        // Fields of a later version do not matter, its number does.
        let old = r#"{"version":1,"url":"u","run":"r","thread":"t","name":"n","more":1}"#;
        fs::write(&path, old).unwrap();
        assert_eq!(Job::read(&path).unwrap().made, None);
        fs::write(&path, old.replace(":1,", ":2,")).unwrap();
        assert!(Job::read(&path).unwrap_err().to_string().contains("newer version"));
        fs::write(&path, "{").unwrap();
        assert!(Job::read(&path).unwrap_err().to_string().contains("damaged"));
    }
}

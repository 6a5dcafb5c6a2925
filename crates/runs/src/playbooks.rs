//! Playbooks: found, listed, checked.

use std::{path::PathBuf, sync::Arc};

use taffrail_engine::playbook::{Contract, LibraryError, Listed, Parsed, Playbook, is_path};

use crate::{RunsError, Service};

/// A playbook to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaybookRef {
    /// By name, in the playbooks folder.
    Name(String),
    /// By path.
    Path(PathBuf),
    /// Its text.
    Source(String),
}

impl Service {
    /// A playbook by name, or by path where `paths` says so.
    ///
    /// # Errors
    ///
    /// When there is none, or it or one that it calls is broken.
    pub async fn find_playbook(&self, name: String, paths: bool) -> Result<Arc<Playbook>, RunsError> {
        let checked = self.blocking(move |library| {
            let loaded = if paths && is_path(&name) { library.find(&name)? } else { library.load(&name)? };
            // What it calls is checked too: a run must not find out half-way that its next state cannot be.
            library.check_path(&loaded.path)
        });
        let Parsed { playbook, diagnostics } = checked.await??;
        Ok(Arc::new(playbook.ok_or(LibraryError::Invalid { diagnostics })?))
    }

    /// The playbooks of the folder, broken ones with what is wrong with them.
    ///
    /// # Errors
    ///
    /// When the folder cannot be read; one that is not there is empty.
    pub async fn playbooks(&self) -> Result<Vec<Listed>, RunsError> {
        Ok(self.blocking(|library| library.list()).await??)
    }

    /// What one playbook promises.
    ///
    /// # Errors
    ///
    /// When there is none of that name, or it is broken.
    pub async fn contract(&self, name: String) -> Result<Contract, RunsError> {
        let playbook = self.find_playbook(name, false).await?;
        Ok(Contract::of(&playbook))
    }

    /// Everything that is wrong with a playbook. A broken one is an answer, not an error.
    ///
    /// # Errors
    ///
    /// When it cannot be found or read.
    pub async fn check(&self, playbook: PlaybookRef) -> Result<Parsed, RunsError> {
        let checked = self.blocking(move |library| match playbook {
            PlaybookRef::Name(name) => match library.load(&name) {
                Ok(loaded) => library.check_path(&loaded.path),
                Err(LibraryError::Invalid { diagnostics }) => Ok(Parsed { playbook: None, diagnostics }),
                Err(error) => Err(error),
            },
            PlaybookRef::Path(path) => library.check_path(&path),
            PlaybookRef::Source(source) => Ok(library.check(&source, "playbook")),
        });
        Ok(checked.await??)
    }

    /// Reads the disk where blocking is allowed.
    async fn blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&taffrail_engine::playbook::Library) -> T + Send + 'static,
    ) -> Result<T, RunsError> {
        let library = self.inner.library.clone();
        tokio::task::spawn_blocking(move || read(&library)).await.map_err(|_| RunsError::Closing)
    }
}

//! Making sure that a file is what its writer believes it is.

use std::fs::File;

use taffrail_mcp_core::{RunId, Seq};

use crate::{
    SpoolError, SpoolFile,
    door::{Disk, SpoolDir, Stat},
    file::Current,
    recover::{self, Found},
};

impl SpoolFile {
    /// Makes sure that the current file is as the last append left it.
    pub(crate) fn settle(&mut self) -> Result<(), SpoolError> {
        if self.current.torn {
            let cut = self.disk.cut(&self.current.file, self.current.len);
            cut.map_err(|e| self.dir.error("cut", &self.name, e))?;
            self.current.torn = false;
        }
        let stat = self.dir.stat(&self.name)?.filter(|stat| stat.identity == self.current.identity);
        match stat {
            Some(stat) if stat.bytes == self.current.len => Ok(()),
            Some(_) => self.look_again(),
            None => self.reopen(),
        }
    }

    /// Somebody else cut the file, or wrote to it.
    fn look_again(&mut self) -> Result<(), SpoolError> {
        tracing::warn!(path = %self.path.display(), "spool file was changed by somebody else");
        let file = self.current.file.try_clone().map_err(|e| self.dir.error("open", &self.name, e))?;
        let (current, found) = adopt(&self.dir, self.disk.as_mut(), &self.run, &self.name, file)?;
        self.current = current;
        self.catch_up(found.cursor().unwrap_or_default());
        Ok(())
    }

    /// Somebody else removed the file, or moved it away.
    fn reopen(&mut self) -> Result<(), SpoolError> {
        tracing::warn!(path = %self.path.display(), "spool file was removed by somebody else");
        let fresh = Self::open(self.dir.folder(), &self.run, self.limits)?;
        self.dir = fresh.dir;
        self.current = fresh.current;
        self.oldest = fresh.oldest;
        self.dropped_to = self.dropped_to.max(fresh.dropped_to);
        self.catch_up(fresh.cursor);
        Ok(())
    }

    /// The file ends at `found`: what is between that and the cursor is lost, what is beyond it is not written again.
    fn catch_up(&mut self, found: Seq) {
        if found < self.cursor {
            self.dropped_to = self.cursor;
            self.after_gap = true;
        } else {
            self.cursor = found;
        }
    }
}

/// Takes a locked file as the current one, and cuts its torn end.
pub(crate) fn adopt(
    dir: &SpoolDir,
    disk: &mut dyn Disk,
    run: &RunId,
    name: &str,
    file: File,
) -> Result<(Current, Found), SpoolError> {
    let failed = |e| dir.error("read", name, e);
    let stat = Stat::of(&file).map_err(failed)?;
    let found = recover::examine(&file, run).map_err(failed)?;
    let found = found.ok_or_else(|| SpoolError::Foreign { path: dir.path(name), run: run.clone() })?;
    if stat.bytes > found.len {
        disk.cut(&file, found.len).map_err(|e| dir.error("cut", name, e))?;
    }
    let current = Current { file, identity: stat.identity, len: found.len, records: found.last.is_some(), torn: false };
    Ok((current, found))
}

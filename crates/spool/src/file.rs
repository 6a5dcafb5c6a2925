//! The spool of one run, as its only writer sees it.

use std::{
    borrow::Cow,
    fmt,
    fs::File,
    io,
    path::{Path, PathBuf},
};

use taffrail_mcp_core::{RunId, Seq};
use taffrail_relay::Block;

use crate::{
    Limits, SpoolError,
    door::{self, Disk, RealDisk, SpoolDir},
    format::SegmentHead,
    name,
    plan::{self, Fill, Place},
    recover::{self, Found},
    rotate,
};

/// The spool of one run, open for writing.
///
/// Only one value, in one process, has a run's spool open. Every call blocks on the file system and on nothing else.
/// Nothing is synced: after a power failure the file may be shorter than [`SpoolFile::cursor`] said, and the next
/// `open` goes on from what is there.
///
/// Dropping it closes the file, which stays, and lets the next writer in. A process that is killed leaves at most a
/// torn last line, which the next `open`, or [`crate::mend`], cuts.
pub struct SpoolFile {
    pub(crate) dir: SpoolDir,
    folder: PathBuf,
    pub(crate) disk: Box<dyn Disk>,
    pub(crate) run: RunId,
    pub(crate) limits: Limits,
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) current: Current,
    pub(crate) cursor: Seq,
    /// For the next first line.
    pub(crate) dropped_to: Seq,
    /// First position in the oldest file, as of the last look: when it grows, something was dropped.
    pub(crate) oldest: Option<Seq>,
    pub(crate) after_gap: bool,
}

/// The file being written.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) file: File,
    pub(crate) identity: (u64, u64),
    /// Bytes of whole lines.
    pub(crate) len: u64,
    pub(crate) records: bool,
    /// More than `len` is in the file, because it could not be cut.
    pub(crate) torn: bool,
}

impl SpoolFile {
    /// Opens, or makes, the spool of `run` in the folder `dir`, which is made when it is not there.
    ///
    /// A torn end is cut, and what a rotation left half done is put right. From then on [`SpoolFile::path`] is a file
    /// that can be read, be it empty. Costs a look at the folder and at both ends of a few files.
    ///
    /// # Errors
    ///
    /// [`SpoolError::Busy`] when somebody else writes it: the path it names can be read. [`SpoolError::Unsafe`] when
    /// the folder or the file is a symbolic link, belongs to somebody else, or the folder can be written by others.
    /// [`SpoolError::Foreign`] when another kind of file has its name. Otherwise [`SpoolError::Full`] and
    /// [`SpoolError::Io`].
    pub fn open(dir: impl AsRef<Path>, run: &RunId, limits: Limits) -> Result<Self, SpoolError> {
        Self::open_on(Box::new(RealDisk), dir.as_ref(), run, limits)
    }

    pub(crate) fn open_on(
        mut disk: Box<dyn Disk>,
        folder: &Path,
        run: &RunId,
        limits: Limits,
    ) -> Result<Self, SpoolError> {
        let Some(dir) = SpoolDir::open(folder, true)? else {
            let source = io::ErrorKind::NotFound.into();
            return Err(SpoolError::Io { action: "open", path: folder.to_path_buf(), source });
        };
        let name = name::segment(run, 0);
        let path = dir.path(&name);
        let _held = dir.hold()?;
        let (file, _) = dir.create(&name)?;
        if !door::lock(&file).map_err(|e| dir.error("lock", &name, e))? {
            return Err(SpoolError::Busy { path });
        }
        rotate::tidy(&dir, run)?;
        let (current, found) = adopt(&dir, disk.as_mut(), run, &name, file)?;
        let past = rotate::past(&dir, run, &found)?;
        Ok(Self {
            dir,
            folder: folder.to_path_buf(),
            disk,
            run: run.clone(),
            limits,
            name,
            path,
            current,
            cursor: past.cursor,
            dropped_to: past.dropped_to,
            oldest: past.oldest,
            after_gap: false,
        })
    }

    /// The file that is being written: absolute, the same from open to drop.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Position of the last record that the spool has, or has passed over; 0 at first. The log goes on after it.
    pub fn cursor(&self) -> Seq {
        self.cursor
    }

    /// Appends the records of a block that come after the cursor, bytes as they are.
    ///
    /// Positions between the cursor and the block belong to other runs in the same thread, or were told by
    /// [`SpoolFile::skip_to`]. One write for a whole block, except where files are rotated: whole lines stay together.
    /// When the file was removed or moved away, a new one is begun.
    ///
    /// # Errors
    ///
    /// [`SpoolError::Full`] and [`SpoolError::Io`]: the file ends with a whole line and the cursor says which; append
    /// the same block again to go on. [`SpoolError::Block`] when the block is not one of this run.
    pub fn append(&mut self, block: &Block) -> Result<(), SpoolError> {
        let whole = block.bytes.last() == Some(&b'\n') && block.count > 0;
        if block.run != self.run || !whole {
            return Err(SpoolError::Block { path: self.path.clone(), run: block.run.clone(), first: block.first });
        }
        let Some(block) = block.after(self.cursor) else {
            return Ok(());
        };
        self.settle()?;
        let (mut lines, mut first) = (&block.bytes[..], block.first);
        while !lines.is_empty() {
            let fill = Fill { bytes: self.current.len, records: self.current.records, after_gap: self.after_gap };
            let place = plan::place(&self.limits, fill, lines);
            let (Place::Here(take) | Place::NewFile(take)) = place;
            let (part, rest) = lines.split_at_checked(take).unwrap_or((lines, &[]));
            // Only a split block needs its lines counted.
            let last = if rest.is_empty() { block.last() } else { last_of(first, part) };
            match place {
                Place::Here(_) => self.write(part, first, last)?,
                Place::NewFile(_) => self.rotate(part, first, last)?,
            }
            (lines, first) = (rest, last.next());
        }
        Ok(())
    }

    /// Passes over records that can no longer be had, up to `to`; the next record begins a new file, whose first line
    /// tells. Does nothing when the cursor is there already.
    pub fn skip_to(&mut self, to: Seq) {
        if to > self.cursor {
            self.cursor = to;
            self.dropped_to = self.dropped_to.max(to);
            self.after_gap = true;
        }
    }

    /// Writes into the current file.
    fn write(&mut self, lines: &[u8], first: Seq, last: Seq) -> Result<(), SpoolError> {
        let head = (self.current.len == 0).then(|| self.head(first));
        let head_len = head.as_ref().map_or(0, Vec::len);
        let bytes = match head {
            // One write, so that a reader never finds a first line alone. Once in a file's life.
            Some(mut head) => {
                head.extend_from_slice(lines);
                Cow::Owned(head)
            }
            None => Cow::Borrowed(lines),
        };
        let current = &mut self.current;
        let Err((written, error)) = write_all(self.disk.as_mut(), &mut current.file, &bytes) else {
            current.len += bytes.len() as u64;
            current.records = true;
            self.cursor = last;
            self.after_gap = false;
            self.oldest = self.oldest.or(Some(first));
            return Ok(());
        };
        let kept = bytes.get(head_len..written).unwrap_or_default();
        let kept = memchr::memrchr(b'\n', kept).and_then(|at| kept.get(..=at)).unwrap_or_default();
        if !kept.is_empty() {
            current.len += (head_len + kept.len()) as u64;
            current.records = true;
            self.cursor = last_of(first, kept);
            self.after_gap = false;
            self.oldest = self.oldest.or(Some(first));
        }
        current.torn = self.disk.cut(&current.file, current.len).is_err();
        Err(SpoolError::from_io("write", self.path.clone(), error))
    }

    pub(crate) fn head(&self, first: Seq) -> Vec<u8> {
        SegmentHead { run: self.run.clone(), first, dropped_to: self.dropped_to }.to_line()
    }

    /// Makes sure that the current file is as the last append left it.
    fn settle(&mut self) -> Result<(), SpoolError> {
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
        let fresh = Self::open(&self.folder, &self.run, self.limits)?;
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

impl fmt::Debug for SpoolFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpoolFile").field("path", &self.path).field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

/// Takes a locked file as the current one, and cuts its torn end.
fn adopt(
    dir: &SpoolDir,
    disk: &mut dyn Disk,
    run: &RunId,
    name: &str,
    file: File,
) -> Result<(Current, Found), SpoolError> {
    let failed = |e| dir.error("read", name, e);
    let stat = door::Stat::of(&file).map_err(failed)?;
    let found = recover::examine(&file, run).map_err(failed)?;
    let found = found.ok_or_else(|| SpoolError::Foreign { path: dir.path(name), run: run.clone() })?;
    if stat.bytes > found.len {
        disk.cut(&file, found.len).map_err(|e| dir.error("cut", name, e))?;
    }
    let current = Current { file, identity: stat.identity, len: found.len, records: found.last.is_some(), torn: false };
    Ok((current, found))
}

/// Writes all of it, or says how much was written.
pub(crate) fn write_all(disk: &mut dyn Disk, file: &mut File, bytes: &[u8]) -> Result<(), (usize, io::Error)> {
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match disk.write(file, rest) {
            Ok(0) => return Err((done, io::ErrorKind::WriteZero.into())),
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err((done, e)),
        }
    }
    Ok(())
}

/// Position of the last of some lines, the first of which is at `first`.
fn last_of(first: Seq, lines: &[u8]) -> Seq {
    first.plus((memchr::memchr_iter(b'\n', lines).count() as u64).saturating_sub(1))
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;

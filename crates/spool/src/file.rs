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
    rotate, settle,
};

/// The spool of one run, open for writing.
///
/// Only one value, in one process, has a run's spool open. Every call blocks on the file system and on nothing else.
/// Nothing is synced, for the log is: after a power failure (not after a crash of the process) the newest file may be
/// shorter than [`SpoolFile::cursor`] said, and the next `open` goes on from what is there; a file rotated within the
/// last half minute before it may have lost its end, which stays lost.
///
/// Dropping it closes the file, which stays, and lets the next writer in. A process that is killed leaves at most a
/// torn last line, which the next `open`, or [`crate::mend`], cuts.
pub struct SpoolFile {
    pub(crate) dir: SpoolDir,
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
    /// that can be read, be it empty. Costs a look at the folder and at both ends of a few files. Folders above `dir` are
    /// trusted: they may be links.
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
        let (current, found) = settle::adopt(&dir, disk.as_mut(), run, &name, file)?;
        let past = rotate::past(&dir, run, &found)?;
        Ok(Self {
            dir,
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
}

impl fmt::Debug for SpoolFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpoolFile").field("path", &self.path).field("cursor", &self.cursor).finish_non_exhaustive()
    }
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

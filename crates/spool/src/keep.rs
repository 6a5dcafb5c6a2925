//! Looking after a folder of spools: limits over all runs, mending, listing, removing.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use taffrail_mcp_core::{RunId, Seq, Timestamp};

use crate::{
    Limits, SpoolError,
    door::{self, SpoolDir, Stat},
    format::SegmentHead,
    name::{self, Number},
    plan::{self, Piece},
    recover, rotate,
};

/// The spool of one run in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The run.
    pub run: RunId,
    /// Its newest file.
    pub path: PathBuf,
    /// Files it has.
    pub files: usize,
    /// Bytes of all of them.
    pub bytes: u64,
    /// When the newest was last written.
    pub modified: Timestamp,
}

/// One file of a run's spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Where it is now; a rotation gives it another name.
    pub path: PathBuf,
    /// Its first line; `None` in a file that has no record yet.
    pub head: Option<SegmentHead>,
    /// Position of its last record; `None` when it has none.
    pub last: Option<Seq>,
    /// Bytes of whole lines, the first included; what the file has beyond is being written, or torn.
    pub bytes: u64,
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What mending found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mended {
    /// Files whose torn end was cut.
    pub files: u64,
    /// Bytes that were cut.
    pub bytes: u64,
}

type Files = BTreeMap<RunId, Vec<(Number, Stat)>>;

/// Every run's files, oldest first.
fn all_files(dir: &SpoolDir) -> Result<Files, SpoolError> {
    let mut runs = Files::new();
    for name in dir.names()? {
        if let Some((run, number)) = name::parse(&name)
            && let Some(stat) = dir.stat(&name)?
            && stat.regular
        {
            runs.entry(run).or_default().push((number, stat));
        }
    }
    for files in runs.values_mut() {
        files.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
    }
    Ok(runs)
}

/// Whether somebody writes this run's spool. Asked under the folder's lock, so that no `open` is turned away by it.
fn is_written(dir: &SpoolDir, run: &RunId) -> Result<bool, SpoolError> {
    let name = name::segment(run, 0);
    match dir.existing(&name)? {
        Some(file) => Ok(!door::lock(&file).map_err(|e| dir.error("lock", &name, e))?),
        None => Ok(false),
    }
}

/// Holds a folder's files to `limits`: those last written longer ago than the age, and the oldest of what is too much.
///
/// Rotated files of finished runs go first, then those of live ones, then the newest files of finished runs; from the
/// oldest, each time. The newest file of a run that `live` knows, or that any process writes, always stays. Call it at
/// start-up and then every few minutes; it looks at every file once, and rotations wait for it.
///
/// # Errors
///
/// As [`crate::SpoolFile::open`]. A folder that is not there is swept.
pub fn sweep(
    dir: impl AsRef<Path>,
    limits: &Limits,
    live: &dyn Fn(&RunId) -> bool,
    now: Timestamp,
) -> Result<Swept, SpoolError> {
    let mut swept = Swept::default();
    let Some(dir) = SpoolDir::open(dir.as_ref(), false)? else {
        return Ok(swept);
    };
    let _held = dir.hold()?;
    let files = all_files(&dir)?;
    let mut pieces = Vec::new();
    let mut names = Vec::new();
    for (index, (run, files)) in files.iter().enumerate() {
        let live = live(run) || is_written(&dir, run).unwrap_or(true);
        for (number, stat) in files {
            pieces.push(Piece { run: index, number: *number, bytes: stat.bytes, modified: stat.modified, live });
            names.push(name::segment(run, *number));
        }
    }
    for index in plan::sweep(limits, now, &pieces) {
        let (Some(piece), Some(name)) = (pieces.get(index), names.get(index)) else {
            continue;
        };
        if dir.unlink(name)? {
            tracing::debug!(file = name, bytes = piece.bytes, "spool file dropped");
            swept.files += 1;
            swept.bytes += piece.bytes;
        }
    }
    Ok(swept)
}

/// Cuts torn ends of files that nobody writes, and puts right what half-done rotations left. For start-up.
///
/// A file that is not a spool file, or cannot be read, is left as it is, with a warning in the diagnostics.
///
/// # Errors
///
/// As [`crate::SpoolFile::open`], for the folder.
pub fn mend(dir: impl AsRef<Path>) -> Result<Mended, SpoolError> {
    let mut mended = Mended::default();
    let Some(dir) = SpoolDir::open(dir.as_ref(), false)? else {
        return Ok(mended);
    };
    let _held = dir.hold()?;
    let names = dir.names()?;
    for run in names.iter().filter_map(|name| name::parse_next(name)) {
        if !is_written(&dir, &run)? {
            rotate::tidy(&dir, &run)?;
        }
    }
    for (run, files) in all_files(&dir)? {
        if is_written(&dir, &run).unwrap_or(true) {
            continue;
        }
        if let Err(error) = mend_run(&dir, &run, &files, &mut mended) {
            tracing::warn!(%run, %error, "spool could not be mended");
        }
    }
    Ok(mended)
}

fn mend_run(dir: &SpoolDir, run: &RunId, files: &[(Number, Stat)], mended: &mut Mended) -> Result<(), SpoolError> {
    rotate::tidy(dir, run)?;
    for (number, _) in files {
        let name = name::segment(run, *number);
        let Some(file) = dir.existing(&name)? else {
            continue;
        };
        let failed = |e| dir.error("mend", &name, e);
        let len = Stat::of(&file).map_err(failed)?.bytes;
        let Some(found) = recover::examine(&file, run).map_err(failed)? else {
            tracing::warn!(path = %dir.path(&name).display(), "not a spool file of its run: left as it is");
            continue;
        };
        if len > found.len {
            file.set_len(found.len).map_err(failed)?;
            mended.files += 1;
            mended.bytes += len - found.len;
        }
    }
    Ok(())
}

/// Lists the spools in a folder, by run. Opens no file.
///
/// # Errors
///
/// As [`crate::SpoolFile::open`]. A folder that is not there has none.
pub fn list(dir: impl AsRef<Path>) -> Result<Vec<Listed>, SpoolError> {
    let Some(dir) = SpoolDir::open(dir.as_ref(), false)? else {
        return Ok(Vec::new());
    };
    let listed = all_files(&dir)?.into_iter().filter_map(|(run, mut files)| {
        files.dedup_by_key(|(_, stat)| stat.identity);
        let (number, newest) = files.last()?;
        Some(Listed {
            path: dir.path(&name::segment(&run, *number)),
            files: files.len(),
            bytes: files.iter().map(|(_, stat)| stat.bytes).sum(),
            modified: newest.modified,
            run,
        })
    });
    Ok(listed.collect())
}

/// The files of a run, oldest first: together, without first lines, they are the run's log from the first file's
/// `dropped_to` on. Empty when it has none.
///
/// Reads both ends of each file. A rotation that comes between this call and the reading of a file renames it: open
/// all files first, or follow the newest one, as `tail -F` does.
///
/// # Errors
///
/// As [`crate::SpoolFile::open`], without `Busy`.
pub fn segments(dir: impl AsRef<Path>, run: &RunId) -> Result<Vec<Segment>, SpoolError> {
    let Some(dir) = SpoolDir::open(dir.as_ref(), false)? else {
        return Ok(Vec::new());
    };
    let _held = dir.hold()?;
    let mut segments = Vec::new();
    for (number, _) in rotate::files_of(&dir, run)? {
        let name = name::segment(run, number);
        let Some(file) = dir.existing(&name)? else {
            continue;
        };
        let found = recover::examine(&file, run).map_err(|e| dir.error("read", &name, e))?;
        let found = found.ok_or_else(|| SpoolError::Foreign { path: dir.path(&name), run: run.clone() })?;
        let last = found.last.map(|last| last.seq);
        let head = found.head.filter(|_| last.is_some());
        segments.push(Segment { path: dir.path(&name), head, last, bytes: found.len });
    }
    Ok(segments)
}

/// Position of the last record in a run's spool, whoever writes it; `None` when it has none.
///
/// # Errors
///
/// As [`segments`].
pub fn last_seq(dir: impl AsRef<Path>, run: &RunId) -> Result<Option<Seq>, SpoolError> {
    Ok(segments(dir, run)?.iter().rev().find_map(|segment| segment.last))
}

/// Removes the spool of a run; how many files it had.
///
/// # Errors
///
/// [`SpoolError::Busy`] when somebody writes it, in which case nothing was removed. Otherwise as
/// [`crate::SpoolFile::open`].
pub fn remove(dir: impl AsRef<Path>, run: &RunId) -> Result<usize, SpoolError> {
    let Some(dir) = SpoolDir::open(dir.as_ref(), false)? else {
        return Ok(0);
    };
    let _held = dir.hold()?;
    if is_written(&dir, run)? {
        return Err(SpoolError::Busy { path: dir.path(&name::segment(run, 0)) });
    }
    rotate::tidy(&dir, run)?;
    let mut removed = 0;
    for (number, _) in rotate::files_of(&dir, run)? {
        removed += usize::from(dir.unlink(&name::segment(run, number))?);
    }
    Ok(removed)
}

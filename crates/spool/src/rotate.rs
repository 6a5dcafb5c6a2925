//! The files of one run: finding them, and beginning a new one.
//!
//! A rotation never leaves the run's path without a file, not even for an instant: the old file gets its second name
//! first (a hard link), then the new one, which already holds its first records, is renamed over it. A crash between
//! any two steps leaves what [`tidy`] puts right.

use std::io;

use taffrail_mcp_core::{RunId, Seq};

use crate::{
    SpoolError, SpoolFile,
    door::{self, SpoolDir, Stat},
    file::{Current, write_all},
    name::{self, Number},
    plan,
    recover::{self, Found},
};

/// The files of a run, oldest first. Symbolic links and the like are not among them, nor is a second name of a file.
pub(crate) fn files_of(dir: &SpoolDir, run: &RunId) -> Result<Vec<(Number, Stat)>, SpoolError> {
    let mut files: Vec<(Number, Stat)> = Vec::new();
    for name in dir.names()? {
        if let Some((owner, number)) = name::parse(&name)
            && owner == *run
            && let Some(stat) = dir.stat(&name)?
            && stat.regular
        {
            files.push((number, stat));
        }
    }
    files.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
    // In the middle of a rotation the newest file has two names, next to each other.
    files.dedup_by(|newer, older| {
        newer.1.identity == older.1.identity && {
            older.0 = newer.0;
            true
        }
    });
    Ok(files)
}

/// Puts right what a rotation left that was cut short. The caller has the current file's lock and the folder's.
pub(crate) fn tidy(dir: &SpoolDir, run: &RunId) -> Result<(), SpoolError> {
    dir.unlink(&name::next(run))?;
    let (current, rotated) = (name::segment(run, 0), name::segment(run, 1));
    if let Some(current) = dir.stat(&current)?
        && current.links > 1
        && dir.stat(&rotated)?.is_some_and(|rotated| rotated.identity == current.identity)
    {
        dir.unlink(&rotated)?;
    }
    Ok(())
}

/// What the files of a run say about where it goes on.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) cursor: Seq,
    pub(crate) dropped_to: Seq,
    pub(crate) oldest: Option<Seq>,
}

/// Reads it; `current` is what the current file holds.
pub(crate) fn past(dir: &SpoolDir, run: &RunId, current: &Found) -> Result<Past, SpoolError> {
    let mut rotated = files_of(dir, run)?;
    rotated.retain(|(number, _)| *number > 0);
    let mut newest = current.cursor().is_some().then(|| current.clone());
    let mut oldest = newest.clone();
    for (number, _) in &rotated {
        if let Some(found) = look(dir, run, *number)?.filter(|found| found.cursor().is_some()) {
            oldest = Some(found);
            break;
        }
    }
    for (number, _) in rotated.iter().rev() {
        if newest.is_some() {
            break;
        }
        newest = look(dir, run, *number)?.filter(|found| found.cursor().is_some());
    }
    let (Some(newest), Some(oldest)) = (newest, oldest) else {
        return Ok(Past::default());
    };
    let first = oldest.head.as_ref().map(|head| head.first);
    let mut dropped_to = newest.head.as_ref().map(|head| head.dropped_to).unwrap_or_default();
    // A sweep may have dropped files since. In a thread of its own a run's first record is 1; in a shared one only
    // a writer that was there before the sweep knows.
    if let (Some(first), Some(last)) = (first, oldest.last)
        && last.own_thread
    {
        dropped_to = dropped_to.max(before(first));
    }
    Ok(Past { cursor: newest.cursor().unwrap_or_default(), dropped_to, oldest: first })
}

fn look(dir: &SpoolDir, run: &RunId, number: Number) -> Result<Option<Found>, SpoolError> {
    let name = name::segment(run, number);
    let Some(file) = dir.existing(&name)? else {
        return Ok(None);
    };
    recover::examine(&file, run).map_err(|e| dir.error("read", &name, e))
}

fn before(seq: Seq) -> Seq {
    Seq(seq.0.saturating_sub(1))
}

impl SpoolFile {
    /// Begins a new file with these lines. On an error the old one is still the current one, unchanged.
    pub(crate) fn rotate(&mut self, lines: &[u8], first: Seq, last: Seq) -> Result<(), SpoolError> {
        let _held = self.dir.hold()?;
        tidy(&self.dir, &self.run)?;
        let keep_current = self.make_room()?;
        let (next, identity, len) = self.prepare(lines, first)?;
        if let Err(error) = self.shift(keep_current) {
            // `next` goes, and a second name of the current file.
            if let Err(leftover) = tidy(&self.dir, &self.run) {
                tracing::warn!(%leftover, "rotation of a spool could not be undone; the next one will");
            }
            return Err(error);
        }
        self.current = Current { file: next, identity, len, records: true, torn: false };
        self.cursor = last;
        self.after_gap = false;
        self.oldest = self.oldest.or(Some(first));
        Ok(())
    }

    /// Drops the oldest files as far as the run's limit asks; whether the current one may be kept.
    fn make_room(&mut self) -> Result<bool, SpoolError> {
        let files = files_of(&self.dir, &self.run)?;
        let sizes: Vec<u64> = files.iter().map(|(_, stat)| stat.bytes).collect();
        let drops = plan::drops(&self.limits, &sizes);
        let mut keep_current = true;
        for (number, _) in files.iter().take(drops) {
            match number {
                0 => keep_current = false,
                n => drop(self.dir.unlink(&name::segment(&self.run, *n))?),
            }
        }
        let oldest = match files.get(drops) {
            Some((number, _)) => look(&self.dir, &self.run, *number)?.and_then(|found| found.head),
            None => None,
        };
        match oldest {
            Some(head) => {
                if self.oldest.is_some_and(|known| head.first > known) {
                    self.dropped_to = self.dropped_to.max(before(head.first));
                }
                self.oldest = Some(head.first);
            }
            None => {
                self.dropped_to = self.dropped_to.max(self.cursor);
                self.oldest = None;
            }
        }
        Ok(keep_current)
    }

    /// Makes the next file, under a name that nobody reads, locked and with its first lines.
    fn prepare(&mut self, lines: &[u8], first: Seq) -> Result<(std::fs::File, (u64, u64), u64), SpoolError> {
        let name = name::next(&self.run);
        let (mut file, _) = self.dir.create(&name)?;
        let mut bytes = self.head(first);
        bytes.extend_from_slice(lines);
        let ready = door::lock(&file)
            .and_then(|locked| if locked { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) })
            .and_then(|()| write_all(self.disk.as_mut(), &mut file, &bytes).map_err(|(_, e)| e))
            .and_then(|()| Stat::of(&file));
        match ready {
            Ok(stat) => Ok((file, stat.identity, bytes.len() as u64)),
            Err(e) => {
                self.dir.unlink(&name)?;
                Err(SpoolError::from_io("write", self.path.clone(), e))
            }
        }
    }

    /// Renames everything to its new place.
    fn shift(&self, keep_current: bool) -> Result<(), SpoolError> {
        let segment = |number| name::segment(&self.run, number);
        let next = name::next(&self.run);
        if !keep_current {
            return self.dir.rename(&next, &self.name);
        }
        // Up to the first free number: a crash in the middle of this leaves one, and the order is right all the same.
        let mut free = 1;
        while self.dir.stat(&segment(free))?.is_some() {
            free += 1;
        }
        for number in (1..free).rev() {
            self.dir.rename(&segment(number), &segment(number + 1))?;
        }
        if self.dir.link(&self.name, &segment(1)) {
            return self.dir.rename(&next, &self.name);
        }
        // A file system without hard links: for an instant the path has no file.
        self.dir.rename(&self.name, &segment(1))?;
        self.dir.rename(&next, &self.name).inspect_err(|_| {
            if let Err(error) = self.dir.rename(&segment(1), &self.name) {
                tracing::warn!(%error, "spool file is left under the name of a rotated one");
            }
        })
    }
}

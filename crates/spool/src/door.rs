//! The one door to the file system and the clock.
//!
//! Everything is reached relative to an open folder that belongs to us and to nobody else, and no symbolic link is
//! followed on the way from it.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags},
    io::Errno,
};
use taffrail_mcp_core::Timestamp;

use crate::SpoolError;

/// Held while files are renamed, added or removed, so that a sweep and a rotation never see each other half done.
const LOCK: &str = ".lock";
/// Everything under that lock takes milliseconds; a process that was stopped in the middle must not stop others.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// Writes and cuts: what a full or failing disk refuses. Tests put faults here.
pub(crate) trait Disk: Send {
    /// Appends some of `bytes` and says how many.
    fn write(&mut self, file: &mut File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    /// Cuts a file.
    fn cut(&mut self, file: &File, len: u64) -> io::Result<()> {
        file.set_len(len)
    }
}

/// The real one.
pub(crate) struct RealDisk;
impl Disk for RealDisk {}

/// What is known of a file from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) regular: bool,
    pub(crate) bytes: u64,
    pub(crate) modified: Timestamp,
    /// Device and inode: two names with the same are one file.
    pub(crate) identity: (u64, u64),
    /// Names it has.
    pub(crate) links: u64,
}

/// A spool folder that was found safe.
#[derive(Debug)]
pub(crate) struct SpoolDir {
    fd: OwnedFd,
    path: PathBuf,
}

impl SpoolDir {
    /// Opens a folder; with `create`, makes it (mode 0700) and those above it first.
    ///
    /// `None` when it is not there. A folder of ours that others can read is closed to them.
    pub(crate) fn open(path: &Path, create: bool) -> Result<Option<Self>, SpoolError> {
        let failed = |path: &Path, e: io::Error| SpoolError::from_io("open", path.to_path_buf(), e);
        // Without `.` and a slash at the end, both of which would follow a link.
        let path: PathBuf = std::path::absolute(path).map_err(|e| failed(path, e))?.components().collect();
        if create {
            use std::os::unix::fs::DirBuilderExt;
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            if let Err(e) = made
                && e.kind() != io::ErrorKind::AlreadyExists
            {
                return Err(failed(&path, e));
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                return Err(SpoolError::Unsafe { path, why: "is a symbolic link or not a folder" });
            }
            Err(e) => return Err(failed(&path, e.into())),
        };
        let stat = rustix::fs::fstat(&fd).map_err(|e| failed(&path, e.into()))?;
        let mode = Mode::from_raw_mode(stat.st_mode);
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(SpoolError::Unsafe { path, why: "belongs to somebody else" });
        }
        if mode.intersects(Mode::WGRP | Mode::WOTH) {
            return Err(SpoolError::Unsafe { path, why: "can be written by others" });
        }
        if mode.intersects(Mode::RWXG | Mode::RWXO) {
            rustix::fs::fchmod(&fd, Mode::RWXU).map_err(|e| failed(&path, e.into()))?;
        }
        Ok(Some(Self { fd, path }))
    }

    /// Its absolute path.
    pub(crate) fn folder(&self) -> &Path {
        &self.path
    }

    /// Absolute path of a name in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Waits for the folder's lock, which is held until the value is dropped.
    pub(crate) fn hold(&self) -> Result<Held, SpoolError> {
        let (file, _) = self.create(LOCK)?;
        let since = Instant::now();
        while !lock(&file).map_err(|e| self.error("lock", LOCK, e))? {
            if since.elapsed() > LOCK_PATIENCE {
                return Err(self.error("lock", LOCK, io::ErrorKind::TimedOut.into()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(Held { _file: file })
    }

    /// Opens a file of ours to read and append, and makes it (mode 0600) when it is not there; whether it did.
    pub(crate) fn create(&self, name: &str) -> Result<(File, bool), SpoolError> {
        loop {
            if let Some(file) = self.existing(name)? {
                return Ok((file, false));
            }
            let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
            match self.openat(name, flags) {
                Ok(file) => return Ok((file, true)),
                // Somebody was faster: take theirs.
                Err(Errno::EXIST) => {}
                Err(e) => return Err(self.error("create", name, e.into())),
            }
        }
    }

    /// Opens a file of ours to read and append, if it is there.
    pub(crate) fn existing(&self, name: &str) -> Result<Option<File>, SpoolError> {
        // Non-blocking, so that a pipe in its place is refused rather than waited for.
        let file = match self.openat(name, OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(self.error("open", name, e.into())),
        };
        let stat = rustix::fs::fstat(&file).map_err(|e| self.error("open", name, e.into()))?;
        let why = if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            "is not a regular file"
        } else if stat.st_uid != rustix::process::geteuid().as_raw() {
            "belongs to somebody else"
        } else {
            let private = Mode::RUSR | Mode::WUSR;
            if Mode::from_raw_mode(stat.st_mode) != private {
                rustix::fs::fchmod(&file, private).map_err(|e| self.error("open", name, e.into()))?;
            }
            return Ok(Some(file));
        };
        Err(SpoolError::Unsafe { path: self.path(name), why })
    }

    fn openat(&self, name: &str, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
    }

    /// What a name stands for, a symbolic link itself included.
    pub(crate) fn stat(&self, name: &str) -> Result<Option<Stat>, SpoolError> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Stat::new(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(self.error("look at", name, e.into())),
        }
    }

    /// All names that are text; ours all are.
    pub(crate) fn names(&self) -> Result<Vec<String>, SpoolError> {
        let failed = |e: Errno| SpoolError::from_io("read", self.path.clone(), e.into());
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            names.extend(entry.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }

    /// Gives a file another name; what had that name is gone.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), SpoolError> {
        rustix::fs::renameat(&self.fd, from, &self.fd, to).map_err(|e| self.error("rename", from, e.into()))
    }

    /// Gives a file a second name; whether the file system can.
    pub(crate) fn link(&self, from: &str, to: &str) -> bool {
        rustix::fs::linkat(&self.fd, from, &self.fd, to, AtFlags::empty()).is_ok()
    }

    /// Removes a name; whether it was there.
    pub(crate) fn unlink(&self, name: &str) -> Result<bool, SpoolError> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(self.error("remove", name, e.into())),
        }
    }

    pub(crate) fn error(&self, action: &'static str, name: &str, source: io::Error) -> SpoolError {
        SpoolError::from_io(action, self.path(name), source)
    }
}

/// The folder's lock; released on drop.
#[must_use]
pub(crate) struct Held {
    _file: File,
}

/// Takes the exclusive lock of an open file, which ends when the file is closed; `false` when it is taken.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

impl Stat {
    /// What is known of an open file.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::new(&rustix::fs::fstat(file)?))
    }

    // Field types differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    fn new(stat: &rustix::fs::Stat) -> Self {
        let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
        Self {
            regular: FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: Timestamp::from_micros(seconds.saturating_mul(1_000_000) + stat.st_mtime_nsec as u64 / 1000),
            identity: (stat.st_dev as u64, stat.st_ino as u64),
            links: stat.st_nlink as u64,
        }
    }
}

/// The time.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

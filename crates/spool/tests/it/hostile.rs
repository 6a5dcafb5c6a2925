//! Folders and files that somebody else prepared.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
};

use taffrail_spool::{Limits, SpoolError, SpoolFile, list, mend, sweep};
use tempfile::TempDir;

use crate::support::{block, records, run};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn refused(dir: &Path) -> &'static str {
    match SpoolFile::open(dir, &run("r"), Limits::default()) {
        Err(SpoolError::Unsafe { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_are_private() {
    let folder = TempDir::new().unwrap();
    let (dir, run) = (folder.path().join("deep/spool"), run("r"));
    let limits = Limits { file_bytes: 500, ..Limits::default() };
    let mut spool = SpoolFile::open(&dir, &run, limits).unwrap();
    assert!(spool.path().is_absolute());
    assert_eq!((mode(&dir), mode(&folder.path().join("deep"))), (0o700, 0o700));
    (1..=4).for_each(|seq| spool.append(&block(&run, seq, &[200])).unwrap());
    for name in ["r.jsonl", "r.1.jsonl", ".lock"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
    // What was opened to others is closed again.
    drop(spool);
    chmod(&dir, 0o755);
    chmod(&dir.join("r.jsonl"), 0o644);
    drop(SpoolFile::open(&dir, &run, limits).unwrap());
    assert_eq!((mode(&dir), mode(&dir.join("r.jsonl"))), (0o700, 0o600));
}

#[test]
fn a_relative_folder_gives_an_absolute_path() {
    // `..` and `.` and slashes in excess change nothing.
    let folder = TempDir::new_in(std::env::current_dir().unwrap()).unwrap();
    let name = folder.path().file_name().unwrap();
    let spool = SpoolFile::open(Path::new("./").join(name).join("s//./"), &run("r"), Limits::default()).unwrap();
    assert_eq!(spool.path(), folder.path().join("s/r.jsonl"));
}

#[test]
fn folders_of_others_are_refused() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("spool");
    fs::create_dir(&dir).unwrap();
    for open in [0o777, 0o770, 0o702, 0o1777] {
        chmod(&dir, open);
        assert_eq!(refused(&dir), "can be written by others");
        assert!(list(&dir).is_err() && mend(&dir).is_err());
        assert_eq!(mode(&dir), open);
    }
    chmod(&dir, 0o700);
    // Root gives the folder away; anybody else tries one of root's.
    let foreign = if chown(&dir, Some(1), None).is_ok() { &dir } else { Path::new("/usr") };
    assert_eq!(refused(foreign), "belongs to somebody else");
    let links = folder.path().join("links");
    symlink(folder.path().join("elsewhere"), &links).unwrap();
    fs::create_dir(folder.path().join("elsewhere")).unwrap();
    for path in [links.clone(), links.join("."), Path::new(&format!("{}/", links.display())).to_path_buf()] {
        assert_eq!(refused(&path), "is a symbolic link or not a folder", "{path:?}");
    }
    assert_eq!(fs::read_dir(folder.path().join("elsewhere")).unwrap().count(), 0);
    fs::write(folder.path().join("file"), "").unwrap();
    assert!(SpoolFile::open(folder.path().join("file"), &run("r"), Limits::default()).is_err());
}

#[test]
fn symbolic_links_are_not_followed() {
    let folder = TempDir::new().unwrap();
    let (dir, run) = (folder.path().join("spool"), run("r"));
    let victim = folder.path().join("victim");
    let limits = Limits { file_bytes: 500, ..Limits::default() };
    drop(SpoolFile::open(&dir, &run, limits).unwrap());
    fs::write(&victim, "precious").unwrap();
    chmod(&victim, 0o644);
    for name in ["r.jsonl", ".lock"] {
        fs::remove_file(dir.join(name)).unwrap();
        for target in [&victim, &folder.path().join("absent")] {
            symlink(target, dir.join(name)).unwrap();
            assert_eq!(refused(&dir), "is a symbolic link");
            fs::remove_file(dir.join(name)).unwrap();
        }
    }
    // Under the names that a rotation uses.
    symlink(&victim, dir.join("r.1.jsonl")).unwrap();
    symlink(&victim, dir.join("r.jsonl.next")).unwrap();
    symlink(&victim, dir.join("other.jsonl")).unwrap();
    let mut spool = SpoolFile::open(&dir, &run, limits).unwrap();
    (1..=9).for_each(|seq| spool.append(&block(&run, seq, &[200])).unwrap());
    assert_eq!(records(&dir, &run).lines().count(), 9);
    drop(spool);
    mend(&dir).unwrap();
    let nothing = Limits { total_bytes: 0, ..limits };
    sweep(&dir, &nothing, &|_| false, taffrail_mcp_core::Timestamp::default()).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(mode(&victim), 0o644);
    assert!(!folder.path().join("absent").exists());
}

#[test]
fn what_is_not_a_file_is_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path();
    let fifo = std::process::Command::new("mkfifo").arg(dir.join("r.jsonl")).status().unwrap();
    assert!(fifo.success());
    assert_eq!(refused(dir), "is not a regular file");
    fs::remove_file(dir.join("r.jsonl")).unwrap();
    fs::create_dir(dir.join("r.jsonl")).unwrap();
    assert!(SpoolFile::open(dir, &run("r"), Limits::default()).is_err());
}

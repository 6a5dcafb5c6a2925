//! Sweeping, mending, listing, removing.

use std::{
    fs,
    os::unix::fs::{MetadataExt, symlink},
    path::Path,
    time::{Duration, SystemTime},
};

use taffrail_mcp_core::{RunId, Seq, Timestamp};
use taffrail_spool::{Limits, SpoolError, SpoolFile, last_seq, list, mend, remove, segments, sweep};
use tempfile::TempDir;

use crate::support::{block, line, records, run};

const SMALL: Limits =
    Limits { file_bytes: 600, run_bytes: 1 << 20, total_bytes: 1 << 20, age: Duration::from_secs(3600) };

/// Three files of one run.
fn fill(dir: &Path, run: &RunId) -> SpoolFile {
    let mut spool = SpoolFile::open(dir, run, SMALL).unwrap();
    (1..=6).for_each(|seq| spool.append(&block(run, seq, &[100])).unwrap());
    assert_eq!(segments(dir, run).unwrap().len(), 3);
    spool
}

fn now() -> Timestamp {
    Timestamp::from_micros(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64)
}

fn make_old(path: &Path) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - SMALL.age * 2).unwrap();
}

fn shown(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != ".lock");
    names.sort();
    names
}

#[test]
fn age_takes_what_nobody_writes_any_more() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path();
    let (done, open, known) = (run("done"), run("open"), run("known"));
    drop(fill(dir, &done));
    drop(fill(dir, &known));
    let _open = fill(dir, &open);
    for run in [&done, &open, &known] {
        segments(dir, run).unwrap().iter().for_each(|segment| make_old(&segment.path));
    }
    drop(fill(dir, &run("young")));
    let swept = sweep(dir, &SMALL, &|run| run.as_str() == "known", now()).unwrap();
    assert_eq!(swept.files, 3 + 2 + 2);
    assert_eq!(shown(dir), ["known.jsonl", "open.jsonl", "young.1.jsonl", "young.2.jsonl", "young.jsonl"]);
    assert_eq!(sweep(dir, &SMALL, &|_| false, now()).unwrap().files, 1);
    assert_eq!(sweep(dir.join("absent"), &SMALL, &|_| false, now()).unwrap().files, 0);
}

#[test]
fn a_total_takes_finished_runs_first_and_never_what_is_written() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path();
    drop(fill(dir, &run("done")));
    let open = fill(dir, &run("open"));
    let bytes = |dir: &Path| list(dir).unwrap().iter().map(|listed| listed.bytes).sum::<u64>();
    let mut seen = Vec::new();
    while sweep(dir, &Limits { total_bytes: bytes(dir) - 1, ..SMALL }, &|_| false, now()).unwrap().files > 0 {
        seen.push(shown(dir).join(" "));
    }
    assert_eq!(
        seen,
        [
            "done.1.jsonl done.jsonl open.1.jsonl open.2.jsonl open.jsonl",
            "done.jsonl open.1.jsonl open.2.jsonl open.jsonl",
            "done.jsonl open.1.jsonl open.jsonl",
            "done.jsonl open.jsonl",
            "open.jsonl",
        ]
    );
    assert_eq!(open.cursor(), Seq(6));
}

#[test]
fn sweeps_and_rotations_at_once_leave_no_hole() {
    let folder = TempDir::new().unwrap();
    let (dir, run) = (folder.path(), run("r"));
    let mut spool = SpoolFile::open(dir, &run, SMALL).unwrap();
    let tight = Limits { total_bytes: 2500, ..SMALL };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (1..=800).for_each(|seq| spool.append(&block(&run, seq, &[100])).unwrap()));
        while !writer.is_finished() {
            sweep(dir, &tight, &|_| true, now()).unwrap();
        }
    });
    let left = records(dir, &run);
    let whole: String = (1..=800).map(|seq| line(&run, seq, 100)).collect();
    assert!(whole.ends_with(&left) && left.ends_with(&line(&run, 800, 100)));
}

#[test]
fn torn_ends_are_mended_at_start_up_except_where_somebody_writes() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path();
    let (left, written, strange) = (run("left"), run("written"), run("strange"));
    drop(fill(dir, &left));
    let _written = fill(dir, &written);
    let tear = |name: &str| {
        use std::io::Write;
        fs::File::options().append(true).open(dir.join(name)).unwrap().write_all(b"{\"seq\":7,\"thr").unwrap();
    };
    ["left.jsonl", "left.1.jsonl", "written.jsonl"].into_iter().for_each(tear);
    fs::write(dir.join("strange.jsonl"), "a diary\n").unwrap();
    fs::write(dir.join("left.jsonl.next"), "half").unwrap();
    fs::write(dir.join("notes.txt"), "not a spool").unwrap();
    let mended = mend(dir).unwrap();
    assert_eq!((mended.files, mended.bytes), (2, 2 * 13));
    assert_eq!(records(dir, &left), (1..=6).map(|seq| line(&left, seq, 100)).collect::<String>());
    assert!(fs::read_to_string(dir.join("written.jsonl")).unwrap().ends_with("\"thr"));
    assert_eq!(fs::read_to_string(dir.join("strange.jsonl")).unwrap(), "a diary\n");
    assert!(!dir.join("left.jsonl.next").exists());
    assert!(dir.join("notes.txt").exists());
    assert!(matches!(SpoolFile::open(dir, &strange, SMALL), Err(SpoolError::Foreign { .. })));
    assert_eq!(mend(dir.join("absent")).unwrap().files, 0);
}

#[test]
fn runs_are_listed_read_and_removed() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path();
    let (one, two) = (run("one"), run("one.1"));
    drop(fill(dir, &one));
    let open = fill(dir, &two);
    symlink("/etc/passwd", dir.join("link.jsonl")).unwrap();
    let listed = list(dir).unwrap();
    assert_eq!(listed.iter().map(|l| (l.run.as_str(), l.files)).collect::<Vec<_>>(), [("one", 3), ("one.1", 3)]);
    assert_eq!(listed[1].path, open.path());
    assert_eq!(listed[0].bytes, segments(dir, &one).unwrap().iter().map(|segment| segment.bytes).sum::<u64>());
    assert_eq!(last_seq(dir, &one).unwrap(), Some(Seq(6)));
    assert_eq!(last_seq(dir, &run("none")).unwrap(), None);
    assert_eq!(remove(dir, &one).unwrap(), 3);
    assert_eq!(remove(dir, &one).unwrap(), 0);
    assert!(matches!(remove(dir, &two), Err(SpoolError::Busy { path }) if path == open.path()));
    drop(open);
    assert_eq!(remove(dir, &two).unwrap(), 3);
    assert_eq!(shown(dir), ["link.jsonl"]);
    assert!(fs::metadata("/etc/passwd").unwrap().len() > 0);
}

#[test]
fn defaults_are_those_of_the_contract() {
    let Limits { file_bytes, run_bytes, total_bytes, age } = Limits::default();
    let mib = 1 << 20;
    assert_eq!((file_bytes, run_bytes, total_bytes), (16 * mib, 256 * mib, 2048 * mib));
    assert_eq!(age, Duration::from_secs(604_800));
    let folder = TempDir::new().unwrap();
    let run = run("r");
    let mut spool = SpoolFile::open(folder.path(), &run, Limits::default()).unwrap();
    let pads = vec![1 << 20; 4];
    (0..5).for_each(|i| spool.append(&block(&run, 1 + i * 4, &pads)).unwrap());
    assert_eq!(segments(folder.path(), &run).unwrap().len(), 2);
    assert!(fs::metadata(spool.path()).unwrap().size() < file_bytes);
}

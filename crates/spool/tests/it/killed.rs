//! A writer that is killed in the middle of its work, again and again.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use taffrail_spool::{Limits, SpoolError, SpoolFile, last_seq, mend};
use tempfile::TempDir;

use crate::support::{block, line, records, run};

const FOLDER: &str = "TAFFRAIL_TEST_SPOOL";
/// Small, so that rotations and drops are among what is cut short.
const LIMITS: Limits =
    Limits { file_bytes: 3 << 20, run_bytes: 20 << 20, total_bytes: 1 << 30, age: Duration::from_secs(3600) };

/// Length of a record's text: no two neighbours are alike, and blocks are large, so that most of the time is writing.
fn pad(seq: u64) -> usize {
    (seq * 37 % 1500) as usize * 60
}

/// Not a test by itself: the process that is killed. Writes for ever.
#[test]
fn child() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let run = run("r");
    let mut spool = SpoolFile::open(folder, &run, LIMITS).unwrap();
    println!("goes on after {}", spool.cursor());
    loop {
        let first = spool.cursor().next().0;
        let pads: Vec<usize> = (first..first + 40).map(pad).collect();
        spool.append(&block(&run, first, &pads)).unwrap();
        println!("wrote {}", spool.cursor());
    }
}

#[test]
fn nothing_is_missing_or_double_after_kills() {
    let folder = TempDir::new().unwrap();
    let (dir, run) = (folder.path().join("spool"), run("r"));
    let mut torn = 0;
    for round in 0..20u64 {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "killed::child", "--nocapture"])
            .env(FOLDER, &dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let told_seq = |line: String| line.rsplit_once("wrote ").and_then(|(_, seq)| seq.parse::<u64>().ok());
        let reached = (0..1 + round * 7 % 60).map(|_| told.by_ref().find_map(told_seq).unwrap()).last().unwrap();
        // It is alive: nobody else may write, everybody may read.
        assert!(matches!(SpoolFile::open(&dir, &run, LIMITS), Err(SpoolError::Busy { path }) if path.exists()));
        assert!(last_seq(&dir, &run).unwrap().unwrap().0 >= reached);
        child.kill().unwrap();
        child.wait().unwrap();
        let whole = fs::read(dir.join("r.jsonl")).unwrap().ends_with(b"\n");
        torn += u32::from(!whole);
        if round % 3 == 0 {
            assert_eq!(mend(&dir).unwrap().files, u64::from(!whole));
        }
        let spool = SpoolFile::open(&dir, &run, LIMITS).unwrap();
        assert!(spool.cursor().0 >= reached, "round {round}");
        check(&dir, spool.cursor().0);
    }
    // For people who read the output; whether a kill hits a write is a matter of luck.
    println!("torn ends: {torn}");
}

/// The files hold the last records up to `last`, each once.
fn check(dir: &Path, last: u64) {
    let run = run("r");
    let records = records(dir, &run);
    let count = records.lines().count() as u64;
    let expected: String = (last + 1 - count..=last).map(|seq| line(&run, seq, pad(seq))).collect();
    assert!(records == expected, "the {count} records up to {last} are not as written");
}

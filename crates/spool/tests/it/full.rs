//! A file that the kernel will not let grow: real partial writes, as on a full disk.
//!
//! The limit on the size of files (`RLIMIT_FSIZE`) works for any user on any file system. Its signal must be ignored,
//! which a shell can do for its child.

use std::{
    env,
    process::{Command, Stdio},
};

use rustix::process::{Resource, Rlimit, setrlimit};
use taffrail_mcp_core::Seq;
use taffrail_spool::{Limits, SpoolError, SpoolFile};
use tempfile::TempDir;

use crate::support::{block, line, records, run};

const FOLDER: &str = "TAFFRAIL_TEST_FULL";

/// Not a test by itself: the process with the limit.
#[test]
fn child() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    let (dir, run) = (folder.as_ref(), run("r"));
    let mut spool = SpoolFile::open(&folder, &run, Limits::default()).unwrap();
    let expected = |count: u64| (1..=count).map(|seq| line(&run, seq, 90)).collect::<String>();
    let pads = [90; 1000];
    let mut limit = 0;
    for round in 1..=10u64 {
        limit += 30_011 * round;
        setrlimit(Resource::Fsize, Rlimit { current: Some(limit), maximum: None }).unwrap();
        let full = loop {
            let first = spool.cursor().next().0;
            if let Err(error) = spool.append(&block(&run, first, &pads)) {
                break error;
            }
        };
        assert!(matches!(&full, SpoolError::Full { path } if path == spool.path()), "{full}");
        let there = records(dir, &run);
        assert!(there == expected(spool.cursor().0), "round {round}");
        assert!(limit - (there.len() as u64) < 400, "what fits is kept");
    }
    setrlimit(Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    let first = spool.cursor().next().0;
    spool.append(&block(&run, first, &pads)).unwrap();
    assert_eq!(spool.cursor(), Seq(first + 999));
    assert!(records(dir, &run) == expected(first + 999));
    println!("went on");
}

#[test]
fn whole_lines_up_to_the_last_byte_and_on_from_there() {
    let folder = TempDir::new().unwrap();
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "full::child", "--nocapture"])
        .env(FOLDER, folder.path())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("went on"));
}

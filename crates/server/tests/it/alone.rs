//! The program alone: no files beside it, no environment, no folder to be in.

use std::{fs, process::Command};

#[test]
fn a_copy_of_the_binary_needs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("elsewhere");
    fs::copy(env!("CARGO_BIN_EXE_taffrail"), &copy).unwrap();
    let taffrail = |args: &[&str]| {
        let mut command = Command::new(&copy);
        command.env_clear().current_dir("/").arg("--data-dir").arg(dir.path().join("data")).args(args);
        command.output().unwrap()
    };
    let done = taffrail(&["exec", "--json", "--", "/bin/sh", "-c", "echo alone; exit 5"]);
    assert_eq!(done.status.code(), Some(5), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(String::from_utf8_lossy(&done.stdout).contains(r#""text":"alone""#));
    for args in [["runs", "--json"], ["schema", "record"], ["doctor", "--json"]] {
        let done = taffrail(&args);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

//! `doctor`, and stores that cannot be used.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::Value;

use crate::{proc::Done, world::World};

/// What was found about one thing.
#[track_caller]
fn finding(done: &Done, what: &str) -> (bool, String) {
    let findings = done.json();
    let found = findings.as_array().unwrap().iter().find(|finding| finding["what"] == what);
    let found = found.unwrap_or_else(|| panic!("{what} in {findings}"));
    (found["ok"].as_bool().unwrap(), found["says"].as_str().unwrap().to_owned())
}

#[test]
fn a_sound_machine_is_fine() {
    let world = World::new();
    world.expect(0, &["run", "small"]);
    let done = world.expect(0, &["doctor", "--json"]);
    let findings = done.json();
    let whats: Vec<_> = findings.as_array().unwrap().iter().map(|finding| finding["what"].as_str().unwrap()).collect();
    assert_eq!(whats, ["data directory", "disk", "store", "runs", "spool", "playbooks", "shell"]);
    assert!(findings.as_array().unwrap().iter().all(|finding| finding["ok"] == true), "{findings}");
    let text = world.expect(0, &["doctor"]).stdout;
    assert_eq!(text.lines().filter(|line| line.starts_with("ok ")).count(), 7, "{text}");
}

#[test]
fn what_is_not_in_order_is_named() {
    let mut world = World::new();
    world.expect(0, &["run", "small"]);
    fs::set_permissions(world.data(), fs::Permissions::from_mode(0o755)).unwrap();
    world.playbooks = world.file("playbooks");
    fs::create_dir(&world.playbooks).unwrap();
    fs::write(world.playbooks.join("bad.yaml"), "playbook: bad\nstates: {}\n").unwrap();
    let done = world.expect(1, &["doctor", "--json"]);
    let (ok, says) = finding(&done, "data directory");
    assert!(!ok && says.contains("chmod 700"), "{says}");
    let (ok, says) = finding(&done, "playbooks");
    assert!(!ok && says.contains("bad.yaml:2"), "{says}");
    assert!(finding(&done, "store").0);
    let text = world.expect(1, &["doctor"]).stdout;
    assert_eq!(text.lines().filter(|line| line.starts_with("FAIL ")).count(), 2, "{text}");
}

#[test]
fn a_missing_playbooks_folder_is_told() {
    let mut world = World::new();
    world.playbooks = world.file("nowhere");
    let (ok, says) = finding(&world.expect(0, &["doctor", "--json"]), "playbooks");
    assert_eq!((ok, says), (true, format!("{}: no such folder", world.playbooks.display())));
}

#[test]
fn a_run_that_lost_its_process_is_found() {
    let world = World::new();
    let mut exec = world.start(&["exec", "--json", "--", "sleep", "1000"]);
    exec.record(|record| record["type"] == "state-start");
    exec.signal(rustix::process::Signal::KILL);
    exec.end();
    let (ok, says) = finding(&world.expect(0, &["doctor", "--json"]), "runs");
    assert!(ok && says.contains("1 had lost their process"), "{says}");
}

/// Every command says what is wrong with the store and which file it is; nothing is changed.
fn unusable(world: &World, words: &[&str]) {
    let db = world.data().join("taffrail.db");
    let before = fs::read(&db).unwrap();
    let done = world.expect(1, &["doctor", "--json"]);
    let (ok, says) = finding(&done, "store");
    assert!(!ok && says.contains(db.to_str().unwrap()), "{says}");
    for word in words {
        assert!(says.contains(word), "{says}");
    }
    assert!(finding(&done, "disk").0 && finding(&done, "shell").0);
    for args in [&["runs"][..], &["run", "small"], &["logs", "x"], &["exec", "--", "true"], &["mcp"]] {
        let done = world.expect(1, args);
        assert!(done.stderr.contains(db.to_str().unwrap()), "{args:?}: {}", done.stderr);
        assert_eq!(done.stdout, "");
    }
    assert_eq!(fs::read(&db).unwrap(), before);
}

#[test]
fn a_corrupt_store_is_named() {
    let world = World::new();
    world.expect(0, &["run", "small"]);
    let db = world.data().join("taffrail.db");
    for side in ["-wal", "-shm"] {
        let _ = fs::remove_file(world.data().join(format!("taffrail.db{side}")));
    }
    fs::write(&db, vec![b'x'; 8192]).unwrap();
    unusable(&world, &["damaged", "move it away"]);
}

#[test]
fn a_store_of_a_newer_version_is_named() {
    let world = World::new();
    world.expect(0, &["run", "small"]);
    let conn = rusqlite::Connection::open(world.data().join("taffrail.db")).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    conn.close().unwrap();
    unusable(&world, &["newer version", "99"]);
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    let world = World::new();
    let file = world.write("file", "");
    let dir = file.join("below");
    let done = world.expect(1, &["--data-dir", dir.to_str().unwrap(), "runs"]);
    assert!(done.stderr.contains(dir.to_str().unwrap()), "{}", done.stderr);
    let json: Value = world.expect(1, &["--data-dir", dir.to_str().unwrap(), "doctor", "--json"]).json();
    assert_eq!(json[0]["ok"], false);
}

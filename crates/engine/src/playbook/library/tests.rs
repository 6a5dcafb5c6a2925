//! Tests of the library, each in a folder of its own.

use std::{fs, path::Path};

use tempfile::TempDir;

use super::*;

struct Folder {
    dir: TempDir,
    library: Library,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().join("playbooks");
        fs::create_dir(&folder).expect("a folder");
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("a file");
        }
        Self { library: Library::new(folder), dir }
    }

    /// Text without the part that differs from run to run.
    fn plain(&self, text: impl ToString) -> String {
        text.to_string().replace(&self.library.folder().display().to_string(), "DIR")
    }

    fn load(&self, name: &str) -> String {
        match self.library.load(name) {
            Ok(loaded) => format!("{} from {}", loaded.playbook.name, self.plain(loaded.path.display())),
            Err(error) => self.plain(error),
        }
    }

    fn check(&self, source: &str) -> String {
        let parsed = self.library.check(source, "p.yaml");
        let told: Vec<String> = parsed.diagnostics.iter().map(|diagnostic| self.plain(diagnostic)).collect();
        format!("{}\n{}", if parsed.playbook.is_some() { "good" } else { "bad" }, told.join("\n"))
    }
}

fn simple(name: &str) -> String {
    format!("playbook: {name}\nstates: {{ s: {{ run: x }} }}\n")
}

fn calling(name: &str, called: &str) -> String {
    format!("playbook: {name}\nstates: {{ s: {{ call: {called} }} }}\n")
}

#[test]
fn playbooks_are_found_by_name() {
    let folder = Folder::new(&[
        ("build.yaml", &simple("build")),
        ("test.yml", &simple("test")),
        ("ship.json", r#"{"playbook":"ship","states":{"s":{"run":"x"}}}"#),
        ("twice.yaml", &simple("twice")),
        ("twice.json", &simple("twice")),
        ("other.yaml", &simple("another")),
        ("bad.yaml", "playbook: bad\nstates: { s: { rum: x } }\n"),
    ]);
    insta::assert_snapshot!(folder.load("build"), @"build from DIR/build.yaml");
    insta::assert_snapshot!(folder.load("test"), @"test from DIR/test.yml");
    insta::assert_snapshot!(folder.load("ship"), @"ship from DIR/ship.json");
    insta::assert_snapshot!(folder.load("biuld"), @"no playbook `biuld` in DIR; did you mean `build`?");
    insta::assert_snapshot!(folder.load("twice"), @"playbook `twice` is there more than once: DIR/twice.yaml, DIR/twice.json");
    insta::assert_snapshot!(folder.load("other"), @r"
    DIR/other.yaml:1:11: error: the playbook is called `another`, its file `other`
      help: the two must be equal: rename the file to `another.yaml`, or the playbook
    ");
    assert!(folder.load("bad").contains("unknown key `rum`"));
}

#[test]
fn names_never_leave_the_folder() {
    let folder = Folder::new(&[]);
    fs::write(folder.dir.path().join("secret.yaml"), simple("secret")).expect("a file");
    for name in ["../secret", "..", "/etc/passwd", "a/b", "a\\b", "", "A", "secret.yaml", "a\0", ".secret", "~", "é"] {
        assert!(matches!(folder.library.load(name), Err(LibraryError::BadName { .. })), "{name:?}");
    }
}

#[test]
fn paths_are_for_callers_on_this_disk() {
    let folder = Folder::new(&[("build.yaml", &simple("build"))]);
    let path = folder.library.folder().join("build.yaml");
    assert!(folder.library.find(&path.display().to_string()).is_ok());
    assert!(folder.library.find("build").is_ok());
    assert!(matches!(folder.library.find("build.yaml"), Err(LibraryError::Io { .. })));
    assert!(matches!(folder.library.load_path(folder.library.folder()), Err(LibraryError::Io { .. })));
    for (text, expected) in [
        ("a", false),
        ("a/b", true),
        ("./a", true),
        ("a.yaml", true),
        ("a.yml", true),
        ("a.json", true),
        (".yaml", false),
        ("ayaml", false),
    ] {
        assert_eq!(is_path(text), expected, "{text}");
    }
}

#[test]
fn a_folder_is_listed_with_what_is_broken() {
    let folder = Folder::new(&[
        ("b.yaml", &simple("b")),
        ("a.yaml", "playbook: a\nstates: {}\n"),
        ("c.yaml", &simple("x")),
        ("notes.txt", "hello"),
    ]);
    fs::write(folder.library.folder().join("d.yaml"), b"playbook: d\n# \xff\n").expect("a file");
    fs::create_dir(folder.library.folder().join("e.yaml")).expect("a folder");
    let listed = folder.library.list().expect("a list");
    let told: Vec<String> = listed
        .iter()
        .map(|listed| match &listed.contract {
            Ok(contract) => format!("{}: {} states", listed.name, contract.states.len()),
            Err(problem) => format!("{}: {}", listed.name, folder.plain(problem)),
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    a: DIR/a.yaml:2:9: error: `states` has no state in it
    b: 1 states
    c: DIR/c.yaml:1:11: error: the playbook is called `x`, its file `c`
      help: the two must be equal: rename the file to `x.yaml`, or the playbook
    d: DIR/d.yaml:2:1: error: this line is not UTF-8
    ");
    assert!(Library::new(Path::new("/nonexistent/playbooks")).list().expect("an empty list").is_empty());
}

#[test]
fn calls_are_checked() {
    let folder = Folder::new(&[
        (
            "deploy-one.yaml",
            "playbook: deploy-one\ninputs: { version: { required: true }, region: {} }\nstates: { s: { run: x } }\n",
        ),
        ("bad.yaml", "playbook: bad\nstates: {}\n"),
    ]);
    insta::assert_snapshot!(
        folder.check("playbook: p\nstates: { s: { call: deploy-one, with: { version: v } } }\n"),
        @"good"
    );
    insta::assert_snapshot!(
        folder.check("playbook: p\nstates:\n  a: { call: deploy-on }\n  b:\n    call: deploy-one\n    with: { regoin: eu }\n  c: { call: bad }\n"),
        @r"
    bad
    p.yaml:3:14: error: no playbook `deploy-on` in DIR
      help: did you mean `deploy-one`?
    p.yaml:5:11: error: playbook `deploy-one` needs the input `version`
      help: add `with: { version: … }`
    p.yaml:6:21: error: playbook `deploy-one` has no input `regoin`
      help: did you mean `region`?
    p.yaml:7:14: error: playbook `bad` cannot run
      help: DIR/bad.yaml:2:9: error: `states` has no state in it
    "
    );
}

#[test]
fn chains_of_calls_are_bounded() {
    let mut files = Vec::new();
    for level in 1..=20 {
        files.push((format!("l{level}.yaml"), calling(&format!("l{level}"), &format!("l{}", level + 1))));
    }
    files.push(("l21.yaml".to_owned(), simple("l21")));
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let folder = Folder::new(&files);
    assert!(folder.check(&calling("p", "l7")).starts_with("good"), "16 with the caller");
    let deep = folder.check(&calling("p", "l6"));
    assert!(deep.starts_with("bad") && deep.contains("calls go deeper than 16"), "{deep}");
}

#[test]
fn calls_that_come_back_are_warned_of() {
    let folder =
        Folder::new(&[("a.yaml", &calling("a", "b")), ("b.yaml", &calling("b", "p")), ("p.yaml", &calling("p", "a"))]);
    insta::assert_snapshot!(folder.check(&calling("p", "a")), @r"
    good
    p.yaml:2:22: warning: calls come back to where they started: p → a → b → p
      help: make sure that a gate ends this; calls deeper than 16 fail
    ");
    assert!(folder.check(&calling("p", "p")).contains("p → p"));
}

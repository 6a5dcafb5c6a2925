//! What the documentation shows is what the parser takes.

use std::{fs, path::PathBuf};

use taffrail_engine::playbook::{Library, parse};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The playbooks in the fenced blocks of a page, each with the line it begins at.
fn playbooks(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut lines = (1..).zip(page.lines());
    while let Some((number, line)) = lines.next() {
        if line != "```yaml" {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        if block.first().is_some_and(|line| line.starts_with("playbook:")) {
            found.push((number + 1, block.join("\n")));
        }
    }
    found
}

/// Checks a page that shows at least `least` playbooks.
fn check(page: &str, least: usize) {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let found = playbooks(&text);
    assert!(found.len() >= least, "{page} has {} playbooks", found.len());
    for (line, source) in found {
        let parsed = parse(&source, page);
        assert!(parsed.diagnostics.is_empty(), "the playbook at line {line}: {:#?}", parsed.diagnostics);
    }
}

#[test]
fn the_pages_show_playbooks_that_parse() {
    check("README.md", 1);
    check("docs/playbooks.md", 10);
}

#[test]
fn the_kept_playbooks_can_run() {
    let library = Library::new(root().join("playbooks"));
    let listed = library.list().unwrap();
    assert!(listed.len() >= 2, "{listed:?}");
    for file in listed {
        let checked = library.check_path(&file.path).unwrap();
        assert!(checked.diagnostics.is_empty(), "{:#?}", checked.diagnostics);
    }
}

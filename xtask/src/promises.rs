//! The promises of `ARCHITECTURE.md`: each names its tests as `path/to/file.rs::name`, and they must be there.

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result, ensure};

use crate::shell;

pub(crate) fn check() -> Result<()> {
    let root = shell::root();
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).context("reading ARCHITECTURE.md")?;
    let named = named(&page);
    ensure!(!named.is_empty(), "ARCHITECTURE.md names no tests");
    let mut missing = Vec::new();
    for (file, test) in &named {
        let source = fs::read_to_string(root.join(file)).unwrap_or_default();
        if !has(&source, test) {
            missing.push(format!("{file}::{test}"));
        }
    }
    ensure!(missing.is_empty(), "ARCHITECTURE.md names tests that are not there:\n  {}", missing.join("\n  "));
    println!("promises: {} named tests are there", named.len());
    Ok(())
}

fn named(page: &str) -> BTreeSet<(&str, &str)> {
    let words = page.split('`').skip(1).step_by(2);
    words.filter_map(|word| word.split_once("::")).filter(|(file, _)| file.ends_with(".rs")).collect()
}

fn has(source: &str, test: &str) -> bool {
    source.split("fn ").skip(1).any(|rest| rest.strip_prefix(test).is_some_and(|rest| rest.starts_with(['(', '<'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_backticks() {
        let page = "text `a/b.rs::one` and `Type::method`, `a/b.rs::two`.";
        assert_eq!(named(page).into_iter().collect::<Vec<_>>(), [("a/b.rs", "one"), ("a/b.rs", "two")]);
    }

    #[test]
    fn a_longer_name_is_another_test() {
        assert!(has("#[test]\nfn one() {}", "one"));
        assert!(has("async fn one<T>() {}", "one"));
        assert!(!has("fn one_more() {}", "one"));
    }
}

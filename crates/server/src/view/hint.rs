//! How a command that we suggest begins, so that it works where it is copied to.

use std::{path::Path, sync::OnceLock};

use super::text;

static PREFIX: OnceLock<String> = OnceLock::new();

/// `taffrail`, or what [`set_hint`] was told.
pub(crate) fn hint() -> &'static str {
    PREFIX.get().map_or("taffrail", String::as_str)
}

/// Takes over how this process was called: its first argument, and the data directory when that was typed as well. Only
/// the first call counts.
pub(crate) fn set_hint(program: &str, data_dir: Option<&Path>) {
    let _ = PREFIX.set(prefix(program, data_dir));
}

/// The same for a command that asks a server, with its URL when that was typed: what could not be sent there waits in the
/// data directory.
pub(crate) fn set_hint_there(program: &str, data_dir: Option<&Path>, url: Option<&str>) {
    let program = prefix(program, data_dir);
    let _ = PREFIX.set(match url {
        Some(url) => text::clean_line(&format!("TAFFRAIL_URL={} {program}", shell_word(url))),
        None => program,
    });
}

fn prefix(program: &str, data_dir: Option<&Path>) -> String {
    let mut prefix = shell_word(program);
    if let Some(dir) = data_dir {
        prefix.push_str(" --data-dir ");
        prefix.push_str(&shell_word(&dir.to_string_lossy()));
    }
    text::clean_line(&prefix)
}

/// A word that a shell takes as one: it will be copied.
pub(super) fn shell_word(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_is_suggested() {
        for (program, data_dir, expected) in [
            ("taffrail", None, "taffrail"),
            ("./target/release/taffrail", Some("../data"), "./target/release/taffrail --data-dir ../data"),
            ("taffrail", Some("my data"), "taffrail --data-dir 'my data'"),
            ("taffrail", Some("it's"), r"taffrail --data-dir 'it'\''s'"),
            ("taffrail", Some("~/x$y"), "taffrail --data-dir '~/x$y'"),
        ] {
            assert_eq!(prefix(program, data_dir.map(Path::new)), expected);
        }
        assert_eq!(hint(), "taffrail");
    }
}

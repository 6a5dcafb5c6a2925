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
pub(crate) fn set_hint() {
    let args = args();
    let _ = PREFIX.set(called(&args));
}

/// The same for a command that asks a server, with its URL when that was typed: what could not be sent there waits in the
/// data directory.
pub(crate) fn set_hint_there(url: &str) {
    let args = args();
    let called = called(&args);
    let _ = PREFIX.set(match typed(&args, "--url") {
        Some(_) => text::clean_line(&format!("TAFFRAIL_URL={} {called}", shell_word(url))),
        None => called,
    });
}

/// What was typed. After `--` nothing is ours.
fn args() -> Vec<String> {
    std::env::args_os().take_while(|arg| arg != "--").map(|arg| arg.to_string_lossy().into_owned()).collect()
}

/// The value of an option that was typed. What comes from the environment is there for the next command, too.
fn typed<'a>(args: &'a [String], option: &str) -> Option<&'a str> {
    args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix(option)? {
        "" => args.get(at + 1).map(String::as_str),
        rest => rest.strip_prefix('='),
    })
}

fn called(args: &[String]) -> String {
    let program = args.first().map_or("taffrail", String::as_str);
    prefix(program, typed(args, "--data-dir").map(Path::new))
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

    #[test]
    fn options_are_found_however_they_are_typed() {
        for (args, expected) in [
            (&["taffrail", "--data-dir", "d", "runs"][..], Some("d")),
            (&["taffrail", "exec", "--data-dir=d"], Some("d")),
            (&["taffrail", "--data-dirs", "d"], None),
            (&["taffrail", "--data-dir"], None),
            (&["taffrail", "runs"], None),
        ] {
            let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(typed(&args, "--data-dir"), expected, "{args:?}");
        }
    }
}

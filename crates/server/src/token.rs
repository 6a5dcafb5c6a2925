//! The operator's token of a data directory.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use taffrail_runs::Layout;
use taffrail_transport::http::OperatorToken;

/// Where a data directory keeps its token.
pub(crate) fn path(layout: &Layout) -> PathBuf {
    layout.root().join("operator-token")
}

/// Reads a token from a file.
pub(crate) fn read(path: &Path) -> Result<OperatorToken> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read the operator token in {}", path.display()))?;
    if fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o077 != 0) {
        tracing::warn!(path = %path.display(), "others can read the operator token: chmod 600 it");
    }
    OperatorToken::new(text.trim()).with_context(|| format!("in {}", path.display()))
}

/// Reads the token at `path`, making it when there is none. Of several processes that do so at once, all get the same.
pub(crate) fn read_or_make(path: &Path) -> Result<OperatorToken> {
    if !path.exists() {
        make(path).with_context(|| format!("cannot write the operator token to {}", path.display()))?;
    }
    read(path)
}

/// Puts a new token at `path`, unless there is one meanwhile.
fn make(path: &Path) -> io::Result<()> {
    // Whole before it has its name, and a name is given only once.
    let fresh = path.with_extension(format!("new-{}", uuid::Uuid::new_v4().simple()));
    let written = write_private(&fresh, OperatorToken::generate().secret()).and_then(|()| fs::hard_link(&fresh, path));
    // Nobody else knows of it.
    let _ = fs::remove_file(&fresh);
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written,
    }
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{text}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_who_come_at_once_get_the_same_token_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("operator-token");
        let tokens: Vec<_> = std::thread::scope(|scope| {
            let make = || scope.spawn(|| read_or_make(&path).unwrap());
            let threads: Vec<_> = (0..16).map(|_| make()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(tokens.windows(2).all(|two| two[0] == two[1]));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_file_that_holds_no_token_is_said_to() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "short\n").unwrap();
        let said = format!("{:#}", read_or_make(&path).unwrap_err());
        assert!(said.contains("operator token has 16 to 512 characters"), "{said}");
        assert!(said.contains(&path.display().to_string()), "{said}");
    }
}

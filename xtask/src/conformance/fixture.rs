//! The fixture server as a process.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::shell;

/// It only has to close its connections.
const END_WITHIN: Duration = Duration::from_secs(20);

/// A running server. It ends with its standard input, so also when this process is killed.
pub(super) struct Fixture {
    child: Child,
    url: String,
}

impl Fixture {
    pub(super) fn start(program: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        let mut url = String::new();
        let out = child.stdout.take().context("the fixture server has no output")?;
        BufReader::new(out).read_line(&mut url).context("reading the fixture server's URL")?;
        if !url.starts_with("http://") {
            bail!("the fixture server ended before it had a URL: {}", child.wait()?);
        }
        Ok(Self { child, url: url.trim().to_owned() })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Ends it, and fails when it had ended already or does not end well.
    pub(super) fn end(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the fixture server ended before the suite did: {status}");
        }
        drop(self.child.stdin.take());
        match shell::wait_at_most(&mut self.child, END_WITHIN)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("the fixture server: {status}"),
            None => bail!("the fixture server did not end with its input"),
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // It is gone already unless something failed on the way.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

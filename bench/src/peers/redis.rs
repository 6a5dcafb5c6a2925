//! Redis Streams, every write synced.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;

use super::{installed, process::Server, scratch};
use crate::load::{MESSAGE_BYTES, Protocol, Stream};

/// A running one.
#[derive(Debug)]
pub(crate) struct Redis {
    _server: Server,
    dir: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl Redis {
    /// Starts an empty one when it is installed.
    pub(crate) fn start() -> Result<Option<Self>> {
        let dir = tempfile::tempdir_in(scratch()?)?;
        let path = dir.path().to_owned();
        Ok(Self::start_in(path)?.map(|redis| Self { _temporary: Some(dir), ..redis }))
    }

    /// Starts one on a folder that may have been used before.
    pub(crate) fn start_in(dir: PathBuf) -> Result<Option<Self>> {
        let (Some(program), Some(_)) = (installed("redis-server"), installed("redis-benchmark")) else {
            return Ok(None);
        };
        let socket = dir.join("redis.sock");
        let mut command = Command::new(program);
        command
            .args(["--port", "0", "--unixsocket"])
            .arg(&socket)
            .args(["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--dir"])
            .arg(&dir);
        let mut server = Server::start(command, &dir, Signal::TERM)?;
        // It listens before it has loaded its file, and says so in its answers.
        server.ready(|| ping(&socket).unwrap_or(false))?;
        Ok(Some(Self { _server: server, dir, _temporary: None }))
    }

    /// XADD of 200 bytes, 50 clients, 16 in flight each; commands a second.
    pub(crate) fn publish(&self, requests: u64) -> Result<f64> {
        let run = Command::new("redis-benchmark")
            .arg("-s")
            .arg(self.socket())
            .args(["-n", &requests.to_string(), "-c", "50", "-P", "16", "--csv"])
            .args(["XADD", "bench", "MAXLEN", "~", "100000", "*", "t", &"x".repeat(MESSAGE_BYTES)])
            .output()?;
        let text = String::from_utf8_lossy(&run.stdout);
        let last = text.lines().last().unwrap_or_default();
        let rate = last.split(',').find_map(|cell| cell.trim_matches('"').parse::<f64>().ok());
        rate.with_context(|| format!("redis-benchmark said {text:?}"))
    }

    /// Adds entries 1 to `count`, 200 bytes each.
    pub(crate) fn fill(&self, count: u64) -> Result<()> {
        let mut socket = UnixStream::connect(self.socket())?;
        // How long this takes is not measured; a sync for every few entries would make it minutes.
        exchange(&mut socket, &[["CONFIG", "SET", "appendfsync", "no"]])?;
        let payload = "x".repeat(MESSAGE_BYTES);
        for first in (1..=count).step_by(1000) {
            let ids: Vec<String> = (first..(first + 1000).min(count + 1)).map(|n| format!("{n}-0")).collect();
            let adds: Vec<[&str; 5]> = ids.iter().map(|id| ["XADD", "window", id, "t", &payload]).collect();
            exchange(&mut socket, &adds)?;
        }
        exchange(&mut socket, &[["CONFIG", "SET", "appendfsync", "always"]])
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("redis.sock")
    }
}

/// Sends commands and waits for as many answers.
fn exchange<'a, C: AsRef<[&'a str]>>(socket: &mut UnixStream, commands: &[C]) -> Result<()> {
    let mut out = Vec::new();
    commands.iter().for_each(|words| command(&mut out, words.as_ref()));
    socket.write_all(&out)?;
    let (mut left, mut answers, mut buffer) = (commands.len(), Vec::new(), [0; 64 * 1024]);
    while left > 0 {
        let read = socket.read(&mut buffer)?;
        ensure!(read > 0, "Redis closed the connection");
        answers.extend_from_slice(buffer.get(..read).unwrap_or_default());
        let mut at = 0;
        while let Some(end) = value(answers.get(at..).unwrap_or_default())? {
            (at, left) = (at + end, left - 1);
        }
        answers.drain(..at);
    }
    Ok(())
}

fn ping(socket: &PathBuf) -> Result<bool> {
    let mut socket = UnixStream::connect(socket)?;
    socket.write_all(b"PING\r\n")?;
    let mut answer = [0; 7];
    socket.read_exact(&mut answer)?;
    Ok(answer == *b"+PONG\r\n")
}

fn command(out: &mut Vec<u8>, words: &[&str]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
}

/// The size of the first value, when it is all there.
fn value(bytes: &[u8]) -> Result<Option<usize>> {
    let (mut at, mut left) = (0, 1u64);
    while left > 0 {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', rest) else { return Ok(None) };
        let line = rest.get(..end).unwrap_or_default().trim_ascii_end();
        at += end + 1;
        left -= 1;
        let number = || std::str::from_utf8(line.get(1..).unwrap_or_default()).unwrap_or_default().parse::<i64>();
        match line.first() {
            Some(b'+' | b':') => {}
            Some(b'$') => at += usize::try_from(number()? + 2).unwrap_or_default(),
            Some(b'*') => left += u64::try_from(number()?).unwrap_or_default(),
            _ => bail!("Redis answers {:?}", String::from_utf8_lossy(line)),
        }
    }
    Ok((at <= bytes.len()).then_some(at))
}

/// `XRANGE … COUNT 200`.
impl Protocol for Redis {
    fn connect(&self) -> Result<Box<dyn Stream>> {
        Ok(Box::new(UnixStream::connect(self.socket())?))
    }

    fn request(&self, after: u64, out: &mut Vec<u8>) {
        command(out, &["XRANGE", "window", &format!("({after}-0"), "+", "COUNT", "200"]);
    }

    fn whole(&self, _after: u64, answer: &[u8]) -> Result<bool> {
        ensure!(answer.len() < 6 || answer.starts_with(b"*200\r\n"), "not 200 entries");
        Ok(value(answer)?.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::value;

    #[test]
    fn values_end_where_they_end() {
        let sent = b"*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nt\r\n$2\r\n\r\n\r\n:5\r\n+OK\r\n";
        let whole = sent.len() - 5;
        for cut in 0..whole {
            assert_eq!(value(&sent[..cut]).unwrap(), None, "{cut}");
        }
        assert_eq!(value(sent).unwrap(), Some(whole));
        assert!(value(b"-ERR no\r\n").is_err());
    }
}

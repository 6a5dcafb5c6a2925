//! NATS JetStream on files. The protocol is text; no client library is needed.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;

use super::{installed, process, process::Server, scratch};
use crate::load::MESSAGE_BYTES;

/// A running one.
#[derive(Debug)]
pub(crate) struct Nats {
    _server: Server,
    addr: SocketAddr,
    _dir: tempfile::TempDir,
}

struct Connection {
    socket: TcpStream,
    lines: BufReader<TcpStream>,
    line: Vec<u8>,
}

impl Nats {
    /// Starts one when it is installed.
    pub(crate) fn start() -> Result<Option<Self>> {
        let Some(program) = installed("nats-server") else { return Ok(None) };
        let dir = tempfile::tempdir_in(scratch()?)?;
        let addr = process::free_addr()?;
        let mut command = Command::new(program);
        command.args(["-js", "-a", "127.0.0.1", "-p", &addr.port().to_string(), "-sd"]).arg(dir.path().join("data"));
        let mut server = Server::start(command, dir.path(), Signal::TERM)?;
        server.listens(addr)?;
        Ok(Some(Self { _server: server, addr, _dir: dir }))
    }

    /// Publishes for some time with so many unacknowledged; messages a second.
    pub(crate) fn publish(&self, in_flight: u64, time: Duration) -> Result<f64> {
        let mut connection = Connection::open(self.addr)?;
        connection.create_stream()?;
        let mut message = format!("PUB bench _INBOX.b.a {MESSAGE_BYTES}\r\n").into_bytes();
        message.resize(message.len() + MESSAGE_BYTES, b'x');
        message.extend_from_slice(b"\r\n");
        let window = message.repeat(in_flight as usize);
        let begin = Instant::now();
        let (mut sent, mut acknowledged) = (0, 0);
        loop {
            let room = if begin.elapsed() < time { in_flight - (sent - acknowledged) } else { 0 };
            connection.socket.write_all(window.get(..room as usize * message.len()).unwrap_or_default())?;
            sent += room;
            if acknowledged == sent {
                return Ok(sent as f64 / begin.elapsed().as_secs_f64());
            }
            // One at least, and all that has come with it.
            loop {
                let answer = connection.message()?;
                ensure!(answer.starts_with(b"{\"stream\""), "JetStream says {}", String::from_utf8_lossy(&answer));
                acknowledged += 1;
                if connection.lines.buffer().is_empty() || acknowledged == sent {
                    break;
                }
            }
        }
    }
}

impl Connection {
    fn open(addr: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(addr)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(30)))?;
        let lines = BufReader::with_capacity(64 * 1024, socket.try_clone()?);
        let mut connection = Self { socket, lines, line: Vec::new() };
        connection.socket.write_all(
            b"CONNECT {\"verbose\":false,\"pedantic\":false,\"lang\":\"bench\",\"version\":\"1\",\"protocol\":1}\r\n\
              SUB _INBOX.b.* 1\r\nPING\r\n",
        )?;
        while connection.line()? != b"PONG" {}
        Ok(connection)
    }

    fn create_stream(&mut self) -> Result<()> {
        let config = r#"{"name":"bench","subjects":["bench"],"storage":"file","num_replicas":1,"retention":"limits"}"#;
        let request = format!("PUB $JS.API.STREAM.CREATE.bench _INBOX.b.c {}\r\n{config}\r\n", config.len());
        self.socket.write_all(request.as_bytes())?;
        let answer = self.message()?;
        ensure!(
            !answer.windows(7).any(|part| part == b"\"error\""),
            "no stream was made: {}",
            String::from_utf8_lossy(&answer)
        );
        Ok(())
    }

    fn line(&mut self) -> Result<&[u8]> {
        self.line.clear();
        self.lines.read_until(b'\n', &mut self.line)?;
        ensure!(!self.line.is_empty(), "NATS closed the connection");
        Ok(self.line.trim_ascii_end())
    }

    /// The content of the next message.
    fn message(&mut self) -> Result<Vec<u8>> {
        loop {
            let line = self.line()?;
            if line == b"PING" {
                self.socket.write_all(b"PONG\r\n")?;
            } else if line.starts_with(b"-ERR") {
                bail!("NATS says {}", String::from_utf8_lossy(line));
            } else if line.starts_with(b"MSG ") {
                let size = line.rsplit(|b| *b == b' ').next().and_then(|n| std::str::from_utf8(n).ok()?.parse().ok());
                let size: usize = size.context("a message without a size")?;
                let mut content = vec![0; size + 2];
                std::io::Read::read_exact(&mut self.lines, &mut content)?;
                content.truncate(size);
                return Ok(content);
            }
        }
    }
}

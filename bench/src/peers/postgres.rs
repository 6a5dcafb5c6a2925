//! PostgreSQL: a scratch cluster, spoken to in its own protocol, so that its client costs no more than ours.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::{fs::chown, net::UnixStream, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Signal, geteuid};

use super::{installed, missing, process::Server};
use crate::load::{MESSAGE_BYTES, Protocol, Stream};

/// PostgreSQL refuses to run as root; then it runs as this user, "nobody" nearly everywhere.
const NOBODY: u32 = 65534;
const STATEMENT: &str = "select seq, data from events where seq > $1 order by seq limit 200";

/// A running one, on a socket in its folder.
#[derive(Debug)]
pub(crate) struct Postgres {
    _server: Server,
    dir: PathBuf,
}

impl Postgres {
    /// Makes a cluster in a folder, when PostgreSQL is installed.
    pub(crate) fn create(dir: &Path) -> Result<bool> {
        let Some(initdb) = program("initdb") else { return Ok(false) };
        if geteuid().is_root() {
            chown(dir, Some(NOBODY), Some(NOBODY))?;
        }
        let mut command = Command::new(initdb);
        as_somebody(&mut command);
        let made = command
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(dir.join("data"))
            .current_dir(dir)
            .stdin(Stdio::null())
            .output()?;
        ensure!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        Ok(true)
    }

    /// Starts the cluster of a folder.
    pub(crate) fn start_in(dir: &Path) -> Result<Self> {
        let mut command = Command::new(program("postgres").context("PostgreSQL is gone")?);
        as_somebody(&mut command);
        command
            .arg("-D")
            .arg(dir.join("data"))
            .arg("-k")
            .arg(dir)
            // Room for the whole table, as it would have in earnest.
            .args(["-c", "listen_addresses=", "-c", "shared_buffers=512MB"])
            .current_dir(dir);
        // Fast shutdown.
        let mut server = Server::start(command, dir, Signal::INT)?;
        let postgres = dir.to_owned();
        server.ready(|| Connection::open(&postgres).is_ok())?;
        Ok(Self { _server: server, dir: dir.to_owned() })
    }

    /// Makes the table with rows 1 to `count`, 200 bytes each.
    pub(crate) fn fill(&self, count: u64) -> Result<()> {
        let mut connection = Connection::open(&self.dir)?;
        for sql in [
            "create table events (seq bigint primary key, data text not null)",
            &format!(
                "insert into events select n, lpad(n::text, {MESSAGE_BYTES}, 'x') from generate_series(1, {count}) n"
            ),
            "vacuum (analyze, freeze) events",
            "checkpoint",
        ] {
            connection.query(sql)?;
        }
        Ok(())
    }
}

/// Distributions keep the server's programs beside their libraries, one folder a version.
fn program(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join(name).is_file())
        .max_by_key(|bin| bin.parent().and_then(|dir| dir.file_name()?.to_str()?.parse::<u32>().ok()));
    match newest {
        Some(bin) => Some(bin.join(name)),
        None => installed(name).or_else(|| {
            missing("PostgreSQL");
            None
        }),
    }
}

fn as_somebody(command: &mut Command) {
    if geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

struct Connection {
    socket: UnixStream,
}

impl Connection {
    fn open(dir: &Path) -> Result<Self> {
        let socket = UnixStream::connect(dir.join(".s.PGSQL.5432"))?;
        let mut connection = Self { socket };
        let settings = b"user\0postgres\0database\0postgres\0\0";
        let mut start = (settings.len() as u32 + 8).to_be_bytes().to_vec();
        start.extend_from_slice(&196_608u32.to_be_bytes());
        start.extend_from_slice(settings);
        connection.socket.write_all(&start)?;
        connection.until_ready()?;
        Ok(connection)
    }

    fn query(&mut self, sql: &str) -> Result<()> {
        let mut out = Vec::new();
        message(&mut out, b'Q', &[sql.as_bytes(), b"\0"]);
        self.socket.write_all(&out)?;
        self.until_ready()
    }

    fn prepare(&mut self) -> Result<()> {
        let mut out = Vec::new();
        message(&mut out, b'P', &[b"window\0", STATEMENT.as_bytes(), b"\0\0\0"]);
        message(&mut out, b'S', &[]);
        self.socket.write_all(&out)?;
        self.until_ready()
    }

    fn until_ready(&mut self) -> Result<()> {
        let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
        while ready(&answer)?.is_none() {
            let read = self.socket.read(&mut buffer)?;
            ensure!(read > 0, "PostgreSQL closed the connection");
            answer.extend_from_slice(buffer.get(..read).unwrap_or_default());
        }
        Ok(())
    }
}

fn message(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let len = parts.iter().map(|part| part.len()).sum::<usize>() + 4;
    out.push(kind);
    out.extend_from_slice(&(len as u32).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// The number of rows, when the answer has come to its end.
fn ready(answer: &[u8]) -> Result<Option<u64>> {
    let (mut rest, mut rows) = (answer, 0);
    while let Some((&kind, tail)) = rest.split_first() {
        let Some(len) = tail.first_chunk().map(|len| u32::from_be_bytes(*len) as usize) else { return Ok(None) };
        let Some(body) = tail.get(4..len) else { return Ok(None) };
        match kind {
            b'D' => rows += 1,
            b'Z' => return Ok(Some(rows)),
            b'E' => bail!("PostgreSQL says {:?}", String::from_utf8_lossy(body)),
            _ => {}
        }
        rest = tail.get(len..).unwrap_or_default();
    }
    Ok(None)
}

/// The prepared statement, values as bytes both ways.
impl Protocol for Postgres {
    fn connect(&self) -> Result<Box<dyn Stream>> {
        let mut connection = Connection::open(&self.dir)?;
        connection.prepare()?;
        Ok(Box::new(connection.socket))
    }

    fn request(&self, after: u64, out: &mut Vec<u8>) {
        const BINARY: &[u8] = b"\0\x01\0\x01";
        // Portal, statement, one format for all arguments, one argument of 8 bytes; one format for all columns.
        message(out, b'B', &[b"\0window\0", BINARY, b"\0\x01\0\0\0\x08", &after.to_be_bytes(), BINARY]);
        message(out, b'E', &[b"\0\0\0\0\0"]);
        message(out, b'S', &[]);
    }

    fn whole(&self, _after: u64, answer: &[u8]) -> Result<bool> {
        let rows = ready(answer)?;
        ensure!(rows.is_none_or(|rows| rows == 200), "{rows:?} rows instead of 200");
        Ok(rows.is_some())
    }
}

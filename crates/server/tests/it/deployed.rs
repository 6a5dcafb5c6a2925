//! `taffrail serve` as it is deployed: started, ended, killed, and started again at the same place.

use std::{
    fs::{self, OpenOptions},
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, ChildStdout, Stdio},
    sync::mpsc,
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use taffrail_transport::client::{Client, ClientConfig, ServerUrl, Token};

use crate::world::{PATIENCE, World, until};

/// A server that is started, or has been. Killed when dropped.
pub(crate) struct Deployed<'a> {
    world: &'a World,
    name: String,
    args: Vec<String>,
    addr: SocketAddr,
    running: Option<Running>,
}

struct Running {
    child: Child,
    /// Nothing more comes, but a closed pipe is not what servers expect.
    _stdout: BufReader<ChildStdout>,
    /// What it said of itself when it began.
    said: Value,
}

/// A line of the access log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) method: String,
    pub(crate) route: String,
    pub(crate) status: u16,
}

impl<'a> Deployed<'a> {
    /// Starts one with a data directory of its own, named `name`, on a port of its own.
    pub(crate) fn start(world: &'a World, name: &str, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let mut server = Self { world, name: name.to_owned(), args, addr: lasting_addr(), running: None };
        server.begin();
        server
    }

    /// Starts it again where it was.
    #[track_caller]
    pub(crate) fn begin(&mut self) {
        assert!(self.running.is_none(), "{} runs", self.name);
        let (data, listen) = (self.data().display().to_string(), self.addr.to_string());
        let mut command = self.world.command(&["--data-dir", &data, "serve", "--json", "--listen", &listen]);
        let log = OpenOptions::new().create(true).append(true).open(self.log_path()).unwrap();
        command.args(&self.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, line) = mpsc::channel();
        thread::spawn(move || {
            let (mut stdout, mut line) = (stdout, String::new());
            let _ = stdout.read_line(&mut line);
            let _ = sender.send((line, stdout));
        });
        let (line, stdout) =
            line.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it does not begin: {}", self.log()));
        let said = serde_json::from_str(&line).unwrap_or_else(|_| panic!("it does not begin: {}", self.log()));
        self.running = Some(Running { child, _stdout: stdout, said });
    }

    /// Tells it to end, and waits until it has.
    #[track_caller]
    pub(crate) fn terminate(&mut self) {
        let status = self.end(Signal::TERM);
        assert!(status.success(), "{status}: {}", self.log());
    }

    /// Kills it.
    #[track_caller]
    pub(crate) fn kill(&mut self) {
        self.end(Signal::KILL);
    }

    #[track_caller]
    fn end(&mut self, signal: Signal) -> std::process::ExitStatus {
        let mut running = self.running.take().unwrap();
        kill_process(Pid::from_child(&running.child), signal).unwrap();
        until("the server ends", PATIENCE, || running.child.try_wait().unwrap())
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The URL that signs a browser in once.
    pub(crate) fn sign_in(&self) -> &str {
        self.running.as_ref().unwrap().said["sign_in"].as_str().unwrap()
    }

    /// The operator's token, as its own file has it.
    pub(crate) fn token(&self) -> String {
        fs::read_to_string(self.data().join("operator-token")).unwrap().trim().to_owned()
    }

    pub(crate) fn client(&self) -> Client {
        client(&self.url(), &self.token())
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.world.file(&self.name)
    }

    fn log_path(&self) -> PathBuf {
        self.world.file(&format!("{}.log", self.name))
    }

    /// What it has written to standard error, over all its lives.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The requests that were answered, over all its lives. What was under way when it was killed is not among them.
    pub(crate) fn access(&self) -> Vec<Access> {
        let field = |line: &str, name: &str| {
            let (_, rest) = line.split_once(&format!(" {name}="))?;
            Some(rest.split(' ').next()?.trim_matches('"').to_owned())
        };
        let access = |line: &str| {
            let status = field(line, "status")?.parse().ok()?;
            Some(Access { method: field(line, "method")?, route: field(line, "route")?, status })
        };
        self.log().lines().filter_map(access).collect()
    }
}

impl Drop for Deployed<'_> {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

/// A client of what is at a URL.
pub(crate) fn client(url: &str, token: &str) -> Client {
    let token = Token::new(token).unwrap();
    Client::new(ClientConfig::new(ServerUrl::new(url).unwrap(), Some(token))).unwrap()
}

/// An address that stays free while nobody listens there: from below the ports that the system gives to whoever asks
/// for any, as connections do.
pub(crate) fn lasting_addr() -> SocketAddr {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let below = range.split_whitespace().next().and_then(|port| port.parse::<u16>().ok()).unwrap_or(32_768);
    let lowest = 10_240;
    assert!(below > lowest + 1000, "this system leaves no ports for servers: {range}");
    loop {
        let random = u16::from_le_bytes(uuid::Uuid::new_v4().as_bytes()[..2].try_into().unwrap());
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, lowest + random % (below - lowest)));
        if TcpListener::bind(addr).is_ok() {
            return addr;
        }
    }
}

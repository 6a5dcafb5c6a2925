//! Nchan: nginx with a module that publishes to event streams. Keeps messages in memory.

use std::{net::SocketAddr, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::{
    installed, missing, process,
    process::{Memory, Server},
    scratch,
};
use crate::load::{Check, Target};

/// Where distributions put nginx' modules.
const MODULES: [&str; 4] = [
    "/usr/lib/nginx/modules/ngx_nchan_module.so",
    "/usr/lib64/nginx/modules/ngx_nchan_module.so",
    "/usr/share/nginx/modules/ngx_nchan_module.so",
    "/etc/nginx/modules/ngx_nchan_module.so",
];

/// A running one.
#[derive(Debug)]
pub(crate) struct Nchan {
    pub(crate) server: Server,
    addr: SocketAddr,
    _dir: tempfile::TempDir,
}

impl Nchan {
    /// Starts one when it is installed.
    pub(crate) fn start(workers: usize) -> Result<Option<Self>> {
        let Some(nginx) = installed("nginx") else { return Ok(None) };
        let Some(module) = MODULES.into_iter().map(PathBuf::from).find(|path| path.is_file()) else {
            missing("the Nchan module of nginx");
            return Ok(None);
        };
        let dir = tempfile::tempdir_in(scratch()?)?;
        let addr = process::free_addr()?;
        let conf = dir.path().join("nginx.conf");
        std::fs::write(&conf, configuration(&module.display().to_string(), workers, addr))?;
        let mut command = Command::new(nginx);
        command.arg("-p").arg(dir.path()).arg("-c").arg(&conf).args(["-e", "error.log"]);
        let mut server = Server::start(command, dir.path(), Signal::TERM)?;
        server.listens(addr)?;
        Ok(Some(Self { server, addr, _dir: dir }))
    }

    /// One channel.
    pub(crate) fn target(&self) -> Target {
        Target {
            addr: self.addr,
            publish: "/publish/bench".into(),
            subscribe: "/subscribe/bench".into(),
            lines: false,
            check: Check::Numbers,
        }
    }

    /// The id of the first message of the channel: a reader that has it gets the others.
    pub(crate) fn first_id(&self) -> Result<String> {
        use std::io::{Read as _, Write as _};
        let mut socket = std::net::TcpStream::connect(self.addr)?;
        write!(socket, "GET /subscribe/bench HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n")?;
        let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let read = socket.read(&mut buffer)?;
            anyhow::ensure!(read > 0, "no message is kept");
            text.extend_from_slice(buffer.get(..read).unwrap_or_default());
            let text = String::from_utf8_lossy(&text);
            if let Some((id, _)) = text.split_once("\nid: ").and_then(|(_, rest)| rest.split_once('\n')) {
                return Ok(id.trim().to_owned());
            }
        }
    }

    pub(crate) fn memory(&self) -> Result<Memory> {
        self.server.memory().context("memory of nginx")
    }
}

/// A configuration in which nothing but Nchan's own work costs anything: no access log, connections are kept for ever,
/// the channel holds more messages than a bench publishes, and each worker has a socket of its own to accept on.
fn configuration(module: &str, workers: usize, addr: SocketAddr) -> String {
    format!(
        r#"load_module {module};
daemon off;
user root;
worker_processes {workers};
worker_rlimit_nofile 20000;
pid nginx.pid;
events {{ worker_connections 15000; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    tcp_nodelay on;
    nchan_shared_memory_size 1024M;
    server {{
        listen {addr} reuseport backlog=4096;
        location /publish/ {{
            nchan_publisher http;
            nchan_channel_id bench;
            nchan_message_buffer_length 200000;
            nchan_message_timeout 1h;
        }}
        location /subscribe/ {{
            nchan_subscriber eventsource;
            nchan_channel_id bench;
            nchan_subscriber_first_message oldest;
        }}
    }}
}}
"#
    )
}

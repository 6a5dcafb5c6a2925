//! Sockets, and how many of them.

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, Result};
use rustix::{
    net::{AddressFamily, SocketType, bind, connect, socket, sockopt},
    process::{Resource, getrlimit, setrlimit},
};

/// Connections from one address of the loopback network; an address has some 28,000 ports to connect from.
const PER_ADDRESS: usize = 5000;

/// A connection from one of several addresses of the loopback network, so that ports do not run out.
///
/// A small receive buffer makes a subscriber that stops reading felt at once. It does not block once it is made.
pub(super) fn open(addr: SocketAddr, number: usize, receive_buffer: Option<usize>) -> Result<TcpStream> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    if let Some(bytes) = receive_buffer {
        sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
    }
    // The first ones are not bound: only then does the kernel reuse ports whose connections have just ended.
    if number >= PER_ADDRESS {
        let last = u8::try_from(number / PER_ADDRESS % 200).unwrap_or_default();
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 1 + last), 0))?;
    }
    connect(&socket, &addr).with_context(|| format!("connecting to {addr}"))?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// A connection that blocks, for one request at a time.
pub(super) fn open_blocking(addr: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(addr).with_context(|| format!("connecting to {addr}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(stream)
}

/// Allows this process, and what it starts, as many open files as the system does.
pub(crate) fn raise_open_files() -> Result<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("raising the limit of open files")?;
    Ok(limit.current.unwrap_or(u64::MAX))
}

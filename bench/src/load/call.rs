//! One request at a time on a connection that blocks: what prepares a bench, and paced publishers.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{Head, chunked::Chunked, socket};

/// A kept connection.
#[derive(Debug)]
pub(crate) struct Connection {
    addr: SocketAddr,
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body of a success.
    pub(crate) fn json(&self) -> Result<Value> {
        self.success()?;
        serde_json::from_slice(&self.body).context("the answer is no JSON")
    }

    pub(crate) fn success(&self) -> Result<()> {
        ensure!(
            (200..300).contains(&self.status),
            "status {}: {}",
            self.status,
            String::from_utf8_lossy(self.body.get(..self.body.len().min(500)).unwrap_or_default())
        );
        Ok(())
    }
}

impl Connection {
    pub(crate) fn open(addr: SocketAddr) -> Result<Self> {
        Ok(Self { addr, stream: socket::open_blocking(addr)?, buffer: vec![0; 64 * 1024] })
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Answer> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.addr);
        self.exchange(request.as_bytes())
    }

    pub(crate) fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> Result<Answer> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            self.addr,
            body.len()
        );
        self.exchange(&[head.as_bytes(), body].concat())
    }

    /// Sends bytes and reads one response.
    pub(crate) fn exchange(&mut self, request: &[u8]) -> Result<Answer> {
        self.stream.write_all(request)?;
        let mut got = Vec::new();
        loop {
            let read = self.stream.read(&mut self.buffer)?;
            ensure!(read > 0, "{} closed the connection", self.addr);
            got.extend_from_slice(self.buffer.get(..read).unwrap_or_default());
            let Some(head) = Head::read(&got)? else { continue };
            let rest = got.get(head.len..).unwrap_or_default();
            if head.chunked {
                let (mut chunked, mut input, mut body) = (Chunked::default(), rest, Vec::new());
                while let Some(data) = chunked.next(&mut input)? {
                    body.extend_from_slice(data);
                }
                if chunked.ended() {
                    return Ok(Answer { status: head.status, body });
                }
            } else {
                let body = head.body.with_context(|| format!("{} does not tell a body's length", self.addr))?;
                if rest.len() >= body {
                    return Ok(Answer { status: head.status, body: rest.to_vec() });
                }
            }
        }
    }
}

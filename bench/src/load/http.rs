//! As much HTTP/1.1 as a load tool needs.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use memchr::memmem;

use super::Target;

/// The head of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    /// Size of the head itself.
    pub(crate) len: usize,
    /// Size of the body, when it is told.
    pub(crate) body: Option<usize>,
    pub(crate) chunked: bool,
}

impl Head {
    /// Reads one; `None` when it is not all there yet.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>> {
        const BEGIN: &[u8] = b"HTTP/1.1 ";
        let Some(end) = memmem::find(bytes, b"\r\n\r\n") else {
            anyhow::ensure!(bytes.len() < 64 * 1024, "a response has no end of its head");
            return Ok(None);
        };
        let text = bytes.get(..end).unwrap_or_default();
        let status = text.strip_prefix(BEGIN).and_then(|rest| std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok());
        let Some(status) = status else { bail!("no HTTP response: {:?}", String::from_utf8_lossy(text)) };
        let mut head = Self { status, len: end + 4, body: None, chunked: false };
        for line in text.split(|b| *b == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|b| *b == b':') else { continue };
            let (name, value) = (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default());
            if name.eq_ignore_ascii_case(b"content-length") {
                let value = std::str::from_utf8(value).unwrap_or_default();
                head.body = Some(value.trim().parse().context("a length that is no number")?);
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                head.chunked = value.trim_ascii().eq_ignore_ascii_case(b"chunked");
            }
        }
        if status == 204 || status == 304 {
            head.body = Some(0);
        }
        Ok(Some(head))
    }

    pub(crate) fn ok(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Whether a whole response with a length is there: its head. Anything but success is an error.
pub(crate) fn whole_response(bytes: &[u8]) -> Result<Option<Head>> {
    let Some(head) = Head::read(bytes)? else { return Ok(None) };
    let Some(body) = head.body else { bail!("a response (status {}) does not tell its length", head.status) };
    if bytes.len() < head.len + body {
        return Ok(None);
    }
    if !head.ok() {
        bail!("status {}: {}", head.status, String::from_utf8_lossy(bytes.get(head.len..).unwrap_or_default()));
    }
    Ok(Some(head))
}

/// The head of a request that posts a body of this size.
pub(crate) fn post(target: &Target, body: usize) -> String {
    format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-ndjson\r\nContent-Length: {body}\r\n\r\n",
        target.publish, target.addr
    )
}

/// A request for a stream, from a position on.
pub(crate) fn subscribe(target: &Target, last_event_id: Option<&str>) -> String {
    let mut request =
        format!("GET {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n", target.subscribe, target.addr);
    if let Some(id) = last_event_id {
        // Writing to a string cannot fail.
        let _ = write!(request, "Last-Event-ID: {id}\r\n");
    }
    request.push_str("\r\n");
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        let bytes = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nX: y\r\n\r\n{}";
        let head = Head { status: 200, len: bytes.len() - 2, body: Some(2), chunked: false };
        assert_eq!(whole_response(bytes).unwrap(), Some(head));
        assert_eq!(whole_response(&bytes[..bytes.len() - 1]).unwrap(), None);
        assert_eq!(Head::read(&bytes[..20]).unwrap(), None);
        let chunked = Head::read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        assert!(chunked.unwrap().chunked);
        assert!(whole_response(b"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(Head::read(b"SSH-2.0\r\n\r\n").is_err());
    }
}

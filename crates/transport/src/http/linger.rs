//! A connection that closes so that its last answer is read.
//!
//! A kernel that closes a connection with bytes in it that nobody has read resets it, and the other side throws away
//! what it had not read itself: the very answer that said why. So what a client still sends is read for a moment, and
//! thrown away.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
    runtime::Handle,
};

/// How long that goes on. A client that has not looked at its answer by then never will.
const LINGER: Duration = Duration::from_secs(2);

/// A connection; see the module.
pub(super) struct Lingering(Option<TcpStream>);

impl Lingering {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Some(stream))
    }

    /// The stream, which is there until the drop.
    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        self.0.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let Some(stream) = self.0.take() else { return };
        // Nothing is waiting, or the other side is gone: the usual case.
        if !stream.try_read(&mut [0; 1]).is_ok_and(|length| length > 0) {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(drain(stream));
        }
    }
}

/// Sends no more, and reads what still comes, for a moment.
pub(super) async fn drain(mut stream: TcpStream) {
    let reading = async {
        stream.shutdown().await?;
        let mut nowhere = vec![0; 64 * 1024];
        while stream.read(&mut nowhere).await? > 0 {}
        Ok::<_, io::Error>(())
    };
    // However it ends, it is over.
    let _ = tokio::time::timeout(LINGER, reading).await;
}

impl AsyncRead for Lingering {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(cx, buf)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }
}

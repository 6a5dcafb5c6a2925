//! The server: accepts connections, and ends in good order.

use std::{future::Future, io, net::SocketAddr};

use axum::Router;
use taffrail_runs::Service;
use tokio::net::TcpListener;

use super::{HttpConfig, app::App, router};

/// Why the server cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The address cannot be listened on.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// A server that is bound to an address and not yet serving.
pub struct HttpServer {
    listener: TcpListener,
    local: SocketAddr,
    app: App,
    router: Router,
}

impl HttpServer {
    /// Binds `addr`; connections wait from then on until [`HttpServer::serve`] takes them.
    ///
    /// # Errors
    ///
    /// [`HttpError::Listen`] when the address cannot be had.
    pub async fn bind(service: Service, config: HttpConfig, addr: SocketAddr) -> Result<Self, HttpError> {
        let failed = |source| HttpError::Listen { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        let app = App::new(service, config);
        let router = router::router(app.clone());
        Ok(Self { listener, local, app, router })
    }

    /// The address it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Serves until `shutdown` resolves and what is under way has ended. The service stays open: closing it is the
    /// caller's business.
    ///
    /// # Errors
    ///
    /// [`HttpError::Listen`] when no more connections can be accepted.
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send + 'static) -> Result<(), HttpError> {
        let Self { listener, local, app, router } = self;
        let closing = app.closing();
        let ended = async move {
            shutdown.await;
            closing.cancel();
        };
        let served = axum::serve(listener, router).with_graceful_shutdown(ended).await;
        served.map_err(|source| HttpError::Listen { addr: local, source })
    }
}

//! A gate for servers that are only for programs of the same machine.

use std::{net::SocketAddr, sync::LazyLock};

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use crate::http::{
    HttpConfig,
    code::Code,
    gate::{Ends, Hosts},
    problem::Problem,
};

/// Lets requests through that call this machine by a name of its own, and refuses those of other sites' pages: a
/// middleware for servers on loopback.
///
/// A page can make a browser send requests to 127.0.0.1, also under a name that its owner points there (DNS rebinding);
/// it cannot choose the `Host` and `Origin` that the browser sends. Who is refused gets a 403 that says why. It is the
/// same check as [`HttpServer`](super::super::HttpServer)'s, which takes other names too.
///
/// See [`McpEndpoint`](super::McpEndpoint) for an example.
pub async fn only_local(request: Request, next: Next) -> Response {
    static HOSTS: LazyLock<Hosts> = LazyLock::new(|| Hosts::new(&HttpConfig::default()));
    let here = SocketAddr::from(([127, 0, 0, 1], 0));
    let admitted = HOSTS
        .check_host(request.uri(), request.headers(), Ends { remote: here, local: here })
        .and_then(|host| HOSTS.check_origin(request.headers(), host));
    match admitted {
        Ok(_) => next.run(request).await,
        Err(problem) => {
            let detail = match problem.code() {
                Code::UnknownOrigin => "pages of other servers may not ask here",
                _ => "only requests to localhost, 127.0.0.1 or [::1] are answered here",
            };
            Problem::new(problem.code(), detail).into_response()
        }
    }
}

//! All routes, put together.

use axum::{
    Router,
    http::{Method, Uri},
    response::{IntoResponse as _, Response},
};

use super::{
    api, app::App, code::Code, health, ingest, login, mcp, openapi, page, params::shown, problem::Problem, sse,
};

/// The router.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .merge(api::routes())
        .merge(sse::routes())
        .merge(ingest::routes())
        .merge(mcp::routes(&app))
        .merge(health::routes())
        .merge(openapi::routes())
        .merge(login::routes())
        .merge(page::routes())
        .fallback(nothing)
        .method_not_allowed_fallback(other_method)
        .with_state(app)
}

async fn nothing(uri: Uri) -> Response {
    let detail = format!("there is nothing at {}: /openapi.json lists what there is", shown(uri.path()));
    Problem::new(Code::NoRoute, detail).into_response()
}

/// Which methods there are stands in `Allow`.
async fn other_method(method: Method, uri: Uri) -> Response {
    let detail = format!("{} does not take {method}: the header Allow says what it takes", shown(uri.path()));
    Problem::new(Code::MethodNotAllowed, detail).into_response()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use taffrail_relay::{MemoryStore, Relay};
    use taffrail_runs::{Config, Layout, Service};

    use super::*;
    use crate::http::{HttpConfig, paths};

    #[tokio::test]
    async fn every_route_has_its_path_from_the_one_home_of_paths() {
        let dir = tempfile::tempdir().unwrap();
        let relay = Relay::start(Arc::new(MemoryStore::new()), Default::default()).unwrap();
        let config = Config::new(Layout::new(dir.path()), dir.path().to_owned(), dir.path().to_owned());
        let app = App::new(Service::open(relay, config).unwrap(), HttpConfig::default());
        // A router does not list its routes, but shows them.
        let shown = format!("{:?}", router(app));
        let quoted = shown.split('"').skip(1).step_by(2).filter(|text| text.starts_with('/'));
        let there: BTreeSet<_> = quoted.filter(|path| !path.contains("__private")).collect();
        assert_eq!(there, BTreeSet::from(paths::ALL));
    }
}

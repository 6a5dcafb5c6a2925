//! Signing a browser in and out.

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use serde::Deserialize;

use super::{app::App, body::Json, code::Code, params::Params, paths, problem::Problem};

/// The routes.
pub(super) fn routes() -> Router<App> {
    Router::new().route(paths::LOGIN, get(by_code).post(by_token)).route(paths::LOGOUT, post(out))
}

/// `POST /login`: the token itself, as the page sends it.
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginBody {
    /// The operator token.
    token: String,
}

/// The URL that was printed: its code works once.
async fn by_code(State(app): State<App>, method: Method, uri: Uri) -> Result<Response, Problem> {
    let mut params = Params::of(&uri)?;
    let code = params.text("code")?.unwrap_or_default();
    params.finish()?;
    // A look without reading must not use the code up.
    if method == Method::HEAD {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    if !app.keys().take_code(&code) {
        let detail = "this link was used before, or is not of this process: start `taffrail serve` again for a new one, \
                      or open / and give the operator token";
        return Err(Problem::new(Code::Unauthorized, detail));
    }
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, paths::PAGE)]).into_response();
    sign(&mut response, app.keys().cookie());
    Ok(response)
}

/// The token, typed into the page.
async fn by_token(State(app): State<App>, Json(body): Json<LoginBody>) -> Result<Response, Problem> {
    if !app.keys().is_token(body.token.trim()) {
        return Err(Problem::new(Code::Unauthorized, "this is not this server's operator token"));
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    sign(&mut response, app.keys().cookie());
    Ok(response)
}

/// Forgets the cookie.
async fn out(State(app): State<App>) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    sign(&mut response, app.keys().no_cookie());
    response
}

fn sign(response: &mut Response, cookie: Option<axum::http::HeaderValue>) {
    let headers: &mut HeaderMap = response.headers_mut();
    headers.extend(cookie.map(|cookie| (header::SET_COOKIE, cookie)));
    headers.insert(header::CACHE_CONTROL, axum::http::HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, axum::http::HeaderValue::from_static("no-referrer"));
}

//! Bodies: read within limits, and said what is wrong with them.

use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts, Request},
    http::{HeaderMap, header, request::Parts},
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::{app::App, code::Code, params::shown, problem::Problem};

/// A JSON body. A missing one is `{}`: for requests of which everything is optional.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, &parts.headers, app.config().limits.body_bytes).await?;
        if bytes.is_empty() {
            return parse(b"{}");
        }
        if !is_json(&parts.headers) {
            return Err(wrong_content_type(&parts.headers));
        }
        parse(&bytes)
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<Json<T>, Problem> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    // serde would take an array for an object whose names were left out.
    if first == Some(&b'[') {
        return Err(Problem::new(Code::BadBody, "the body is a JSON array: send an object"));
    }
    serde_json::from_slice(bytes).map(Json).map_err(|error| {
        let what = if error.is_data() { "the body is not what is wanted here" } else { "the body is not JSON" };
        Problem::new(Code::BadBody, format!("{what}: {error}"))
    })
}

/// Reads a whole body.
///
/// # Errors
///
/// 413 when it is larger than `most`, 400 when it ends too soon.
pub(crate) async fn read(body: Body, headers: &HeaderMap, most: usize) -> Result<Bytes, Problem> {
    let told = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|told| told > most as u64) {
        return Err(too_large(most));
    }
    match Limited::new(body, most).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(most)),
        Err(error) => Err(Problem::new(Code::BadBody, format!("the body did not arrive whole: {error}"))),
    }
}

fn too_large(most: usize) -> Problem {
    let detail = format!("the body is larger than {most} bytes, the most that is taken: send less at once");
    Problem::new(Code::TooLarge, detail).with("limit", most)
}

/// The answer to a body that is not JSON by its own account.
pub(crate) fn wrong_content_type(headers: &HeaderMap) -> Problem {
    let given = headers.get(header::CONTENT_TYPE).map_or_else(
        || "no Content-Type".to_owned(),
        |value| format!("the Content-Type {}", shown(&String::from_utf8_lossy(value.as_bytes()))),
    );
    let detail = format!("the body has {given}: send JSON with Content-Type: application/json");
    Problem::new(Code::WrongContentType, detail)
}

/// Whether a body is JSON by its own account.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// The caller takes JSON: says so, or does not say.
pub(crate) struct TakesJson;

impl FromRequestParts<App> for TakesJson {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        match takes(&parts.headers, "application/json") {
            true => Ok(Self),
            false => Err(not_acceptable("application/json")),
        }
    }
}

/// The answer to a caller who does not take the only form that there is.
pub(crate) fn not_acceptable(form: &str) -> Problem {
    Problem::new(Code::NotAcceptable, format!("this comes as {form} only: let Accept have that, or leave it out"))
}

/// Whether `Accept` allows a media type (RFC 9110, section 12.5.1; weights other than 0 are all the same to us).
pub(crate) fn takes(headers: &HeaderMap, form: &str) -> bool {
    let group = form.split('/').next().unwrap_or_default();
    let mut said = false;
    for value in headers.get_all(header::ACCEPT) {
        said = true;
        let Ok(value) = value.to_str() else { continue };
        for range in value.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let fits = name.eq_ignore_ascii_case(form)
                || name == "*/*"
                || name.strip_suffix("/*").is_some_and(|given| given.eq_ignore_ascii_case(group));
            let refused = parts.any(|part| {
                let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
                weight.and_then(|weight| weight.parse::<f32>().ok()).is_some_and(|weight| weight <= 0.0)
            });
            if fits && !refused {
                return true;
            }
        }
    }
    !said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_is_read_as_it_is_meant() {
        let check = |accept: &[&'static str], expected| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, value.parse().unwrap());
            }
            assert_eq!(takes(&headers, "application/json"), expected, "{accept:?}");
        };
        check(&[], true);
        for yes in
            ["*/*", "application/json", "text/html, */*;q=0.1", "Application/*", "application/json; charset=utf-8"]
        {
            check(&[yes], true);
        }
        for no in ["text/html", "application/json;q=0", "application/json; q=0.0", "", "text/*"] {
            check(&[no], false);
        }
        check(&["text/html", "application/json"], true);
    }
}

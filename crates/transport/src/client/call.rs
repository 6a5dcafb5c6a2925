//! Requests and answers: the one door to the network.

use std::{future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;
use reqwest::{
    Method, RequestBuilder, Response, StatusCode,
    header::{self, HeaderMap},
};
use serde::{Serialize, de::DeserializeOwned};

use super::{ClientConfig, ClientError, ServerUrl, tls, wire};

/// Longest body that is read: a page of the largest records, with room. Whoever sends more is no server of ours.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// The connections of a client, and how they are used.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    http: reqwest::Client,
    config: Arc<ClientConfig>,
}

impl Caller {
    pub(super) fn new(config: ClientConfig) -> Result<Self, ClientError> {
        let setup = |why: String| ClientError::Setup { server: config.url.to_string(), why };
        let builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(config.url.is_https()).map_err(setup)?)
            // A stream that breaks must not take other requests with it, as it does where all share one connection.
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(config.connect_timeout)
            .user_agent(&config.user_agent);
        let http = builder.build().map_err(|error| setup(whole(&error)))?;
        Ok(Self { http, config: Arc::new(config) })
    }

    pub(super) fn server(&self) -> &ServerUrl {
        &self.config.url
    }

    pub(super) fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// A request to something below the base, with the token.
    pub(super) fn request(&self, method: Method, path: &[&str], query: &[(&str, String)]) -> RequestBuilder {
        let mut url = self.config.url.join(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        match self.config.token.as_ref().and_then(|token| token.header()) {
            Some(token) => request.header(header::AUTHORIZATION, token),
            None => request,
        }
    }

    pub(super) fn post<T: Serialize>(&self, path: &[&str], body: &T) -> RequestBuilder {
        // Our own bodies: maps with text keys and numbers, which JSON has.
        let body = serde_json::to_vec(body).unwrap_or_default();
        self.request(Method::POST, path, &[]).header(header::CONTENT_TYPE, "application/json").body(body)
    }

    /// Sends a request and reads a JSON answer. `wait` is what the server may take by intention.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        wait: Duration,
    ) -> Result<T, ClientError> {
        let body = self.body(request.header(header::ACCEPT, "application/json"), wait).await?;
        serde_json::from_slice(&body).map_err(|error| self.malformed(error.to_string()))
    }

    /// Sends a request and reads its whole answer, which must be a success of JSON.
    pub(super) async fn body(&self, request: RequestBuilder, wait: Duration) -> Result<Bytes, ClientError> {
        let answered = async {
            let response = self.send(request).await?;
            let is_json = content_type(response.headers()).is_some_and(|kind| kind.ends_with("json"));
            match is_json {
                true => self.read(response).await,
                false => Err(self.no_taffrail(&response)),
            }
        };
        self.in_time(wait + self.config.answer_timeout, answered).await
    }

    /// Sends a request; anything but a success is an error.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let to = response.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
            let to = wire::said(to.unwrap_or("another address"), 200);
            return Err(ClientError::Redirected { server: self.server().to_string(), to });
        }
        Err(self.refused(status, response).await)
    }

    async fn refused(&self, status: StatusCode, response: Response) -> ClientError {
        let retry_after = retry_after(response.headers(), Timestamp::now());
        let otherwise = self.no_taffrail(&response);
        let Ok(body) = self.read(response).await else { return otherwise };
        match wire::refusal(status.as_u16(), &body) {
            Some(refusal) => ClientError::Refused(Box::new(super::Refusal { retry_after, ..refusal })),
            None => otherwise,
        }
    }

    async fn read(&self, mut response: Response) -> Result<Bytes, ClientError> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            if body.len() + piece.len() > MAX_BODY {
                return Err(self.malformed(format!("an answer of more than {MAX_BODY} bytes")));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.into())
    }

    /// Gives a request this time.
    pub(super) async fn in_time<T>(
        &self,
        limit: Duration,
        answered: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let timed_out = || ClientError::TimedOut { server: self.server().to_string(), waited: limit };
        tokio::time::timeout(limit, answered).await.unwrap_or_else(|_| Err(timed_out()))
    }

    pub(super) fn unreachable(&self, error: reqwest::Error) -> ClientError {
        // Its URL would only repeat the server's.
        ClientError::Unreachable { server: self.server().to_string(), source: Arc::new(error.without_url()) }
    }

    pub(super) fn malformed(&self, what: impl Into<String>) -> ClientError {
        ClientError::Malformed { server: self.server().to_string(), what: what.into() }
    }

    fn no_taffrail(&self, response: &Response) -> ClientError {
        ClientError::NotTaffrail {
            server: self.server().to_string(),
            status: response.status().as_u16(),
            content_type: wire::said(content_type(response.headers()).unwrap_or("no type"), 100),
            retry_after: retry_after(response.headers(), Timestamp::now()),
        }
    }
}

/// The type of a body, without parameters.
pub(super) fn content_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

/// `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

fn whole(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_to_come_back() {
        let now: Timestamp = "2026-11-06T08:49:07Z".parse().unwrap();
        for (value, expected) in [
            ("0", Some(0)),
            ("120", Some(120)),
            ("Fri, 06 Nov 2026 08:49:37 GMT", Some(30)),
            ("Fri, 06 Nov 2026 08:49:00 GMT", Some(0)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, value.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_secs), "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}

//! The header `Mcp-Name` of requests about tasks, where a client left it out.
//!
//! It repeats `params.taskId` for whoever routes by headers (MCP 2026-07-28, tasks extension), and rmcp refuses requests
//! without it. Some clients do not send it, and we route by nothing: so it is filled in. One that is there is left as it
//! is, and rmcp refuses it when it names something else.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Methods whose name is that of a task.
const METHODS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];

#[derive(Deserialize)]
struct Message {
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "taskId")]
    task_id: String,
}

/// Fills the header in, where it is missing and wanted.
pub(super) fn fill(headers: &mut HeaderMap, body: &[u8]) {
    let about_a_task = headers.get(METHOD).is_some_and(|method| METHODS.iter().any(|known| method == known));
    if !about_a_task || headers.contains_key(NAME) {
        return;
    }
    let Ok(Message { params: Params { task_id } }) = serde_json::from_slice(body) else { return };
    // Ids of tasks are ids of runs. What a header cannot hold as it is names none, and keeps rmcp's answer.
    let plain = task_id.bytes().all(|byte| byte.is_ascii_graphic()) && !task_id.starts_with("=?");
    if let Some(name) = plain.then(|| HeaderValue::from_str(&task_id).ok()).flatten() {
        headers.insert(NAME, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, name: Option<&str>, body: &str, expected: Option<&str>) {
        let mut headers = HeaderMap::from_iter([(METHOD, method.parse().unwrap())]);
        if let Some(name) = name {
            headers.insert(NAME, name.parse().unwrap());
        }
        fill(&mut headers, body.as_bytes());
        let got = headers.get(NAME).map(|name| name.to_str().unwrap());
        assert_eq!(got, expected, "{method} {name:?} {body}");
    }

    #[test]
    fn only_what_is_missing_and_known_is_filled_in() {
        let body = r#"{"method":"tasks/get","params":{"taskId":"r1"}}"#;
        for method in METHODS {
            check(method, None, body, Some("r1"));
        }
        check("tasks/get", Some("other"), body, Some("other"));
        check("tools/call", None, body, None);
        check("TASKS/GET", None, body, None);
        for odd in
            ["{}", r#"{"params":{"taskId":7}}"#, r#"{"params":{"taskId":"a\nb"}}"#, r#"{"params":{"taskId":"ä"}}"#]
        {
            check("tasks/get", None, odd, None);
        }
        check("tasks/get", None, r#"{"params":{"taskId":"=?base64?cjE=?="}}"#, None);
    }
}

//! Turns one input line into a message, an answer that refuses it, or nothing.

use std::fmt::Write as _;

use rmcp::model::{ClientJsonRpcMessage, ErrorCode};
use serde_json::Value;

/// What is to be done with one line.
#[derive(Debug)]
pub(super) enum Parsed {
    /// Hand it on.
    Message(Box<ClientJsonRpcMessage>),
    /// Answer with this line (newline included).
    Refuse(String),
    /// Say nothing: an empty line, or a broken notification or response, which JSON-RPC never answers.
    Ignore,
}

/// Reads one line.
///
/// The usual message is parsed once, straight into rmcp's types. Only what those types refuse is looked
/// at again, to tell what is wrong with it and to whom the answer belongs: rmcp's own stdio drops text
/// that is not JSON, and answers everything else without an id, so that the caller waits for ever.
pub(super) fn parse(line: &[u8]) -> Parsed {
    // RFC 8259, 8.1: a parser may ignore a byte order mark.
    let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
    let line = line.trim_ascii();
    if line.is_empty() {
        return Parsed::Ignore;
    }
    match serde_json::from_slice(line) {
        Ok(message) => Parsed::Message(Box::new(message)),
        Err(refused) => match serde_json::from_slice::<Value>(line) {
            Ok(value) => judge(&value, &refused),
            Err(error) => Parsed::Refuse(refusal(
                ErrorCode::PARSE_ERROR,
                &Value::Null,
                &format!("Parse error: {error}; send one JSON-RPC message a line"),
            )),
        },
    }
}

/// The answer to a line of more than `max` bytes.
pub(super) fn too_long(max: usize) -> String {
    let text = format!("Invalid request: a message may hold at most {max} bytes");
    refusal(ErrorCode::INVALID_REQUEST, &Value::Null, &text)
}

/// Well-formed JSON that is no message.
fn judge(value: &Value, refused: &serde_json::Error) -> Parsed {
    let Some(object) = value.as_object() else {
        let what = match value {
            Value::Array(_) => "batches are not supported; send one message a line",
            _ => "a message is a JSON object",
        };
        return refuse(&Value::Null, what);
    };
    let has = |key| object.contains_key(key);
    if !has("method") && (has("result") || has("error")) || has("method") && !has("id") {
        tracing::debug!(%refused, "ignoring a broken notification or response");
        return Parsed::Ignore;
    }
    let id = object.get("id").unwrap_or(&Value::Null);
    let id_ok = id.is_string() || id.is_i64();
    let what = if object.get("jsonrpc") != Some(&Value::from("2.0")) {
        "`jsonrpc` must be \"2.0\""
    } else if !object.get("method").is_some_and(Value::is_string) {
        "`method` must be a string"
    } else if !id_ok {
        "`id` must be a string or an integer"
    } else if has("result") || has("error") {
        "a message is a request or a response, not both"
    } else if object.get("params").is_some_and(|params| !params.is_object()) {
        "`params` must be an object"
    } else {
        "unrecognized message"
    };
    refuse(if id_ok { id } else { &Value::Null }, what)
}

fn refuse(id: &Value, what: &str) -> Parsed {
    let text = format!("Invalid request: {what}");
    Parsed::Refuse(refusal(ErrorCode::INVALID_REQUEST, id, &text))
}

/// An error response. Written by hand because rmcp leaves out an id it does not have, and JSON-RPC wants
/// `null` there.
fn refusal(code: ErrorCode, id: &Value, message: &str) -> String {
    let message = Value::from(message);
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(line, r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{},"message":{message}}}}}"#, code.0);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &str) {
        let seen = match parse(line.as_bytes()) {
            Parsed::Message(message) => match *message {
                ClientJsonRpcMessage::Request(request) => format!("request {}", request.id),
                ClientJsonRpcMessage::Notification(_) => "notification".to_owned(),
                _ => "response".to_owned(),
            },
            Parsed::Refuse(line) => line.trim_end().to_owned(),
            Parsed::Ignore => "nothing".to_owned(),
        };
        assert_eq!(seen, expected, "{line}");
    }

    #[test]
    fn messages_pass() {
        check(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "request 1");
        check("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"x/y\"}\r", "request a");
        check(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notification");
        check(r#"{"jsonrpc":"2.0","method":"whatever","params":{}}"#, "notification");
    }

    #[test]
    fn what_nobody_may_answer_is_ignored() {
        check("", "nothing");
        check(" \r", "nothing");
        check(r#"{"jsonrpc":"2.0","method":5}"#, "nothing");
        check(r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, "nothing");
    }

    #[test]
    fn text_that_is_not_json_is_a_parse_error() {
        check(
            "hello",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: expected value at line 1 column 1; send one JSON-RPC message a line"}}"#,
        );
    }

    #[test]
    fn a_broken_request_is_told_what_is_wrong_under_its_own_id() {
        let refused = |id: &str, what: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":"Invalid request: {what}"}}}}"#)
        };
        check("[]", &refused("null", "batches are not supported; send one message a line"));
        check("5", &refused("null", "a message is a JSON object"));
        check(r#"{"id":7,"method":"ping"}"#, &refused("7", r#"`jsonrpc` must be \"2.0\""#));
        check(r#"{"jsonrpc":"2.0","id":7}"#, &refused("7", "`method` must be a string"));
        check(
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            &refused("null", "`id` must be a string or an integer"),
        );
        check(
            r#"{"jsonrpc":"2.0","id":"x","method":"tools/list","params":[1]}"#,
            &refused("\"x\"", "`params` must be an object"),
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
            &refused("1", "a message is a request or a response, not both"),
        );
    }
}

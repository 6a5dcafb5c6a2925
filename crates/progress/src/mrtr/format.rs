//! What a sealed state holds: the questions so far, by their digests, the answers, and what was done once.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taffrail_mcp_core::{Question, Reply};

use super::seal::digest;

/// One question that was put, in the order of the handler's calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Round {
    /// The digest of the question.
    pub(crate) question: [u8; 32],
    /// Nothing where the client has left it open.
    pub(crate) reply: Option<Reply>,
}

impl Round {
    /// What a question is known by: all of it.
    pub(crate) fn digest(question: &Question) -> [u8; 32] {
        let Question { message, schema } = question;
        digest(&Value::Array(vec![Value::from(message.as_str()), Value::Object(schema.clone())]))
    }
}

/// What earlier calls of a handler have asked and done.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Past {
    /// By the order of the calls of `elicit`.
    pub(crate) rounds: Vec<Round>,
    /// What came of each call of `once`, by their order; nothing for one that was not finished.
    pub(crate) done: Vec<Option<Value>>,
}

#[derive(Serialize, Deserialize)]
struct WrittenPast {
    r: Vec<Written>,
    /// Each with one value or none: `null` is a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    d: Vec<Vec<Value>>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    q: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    a: Option<Answer>,
}

/// An `ElicitResult` (MCP, elicitation).
#[derive(Serialize, Deserialize)]
struct Answer {
    action: Action,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Map<String, Value>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

/// The bytes of `past`.
pub(crate) fn write_past(past: &Past) -> Result<Vec<u8>, serde_json::Error> {
    let r = past.rounds.iter().map(|Round { question, reply }| Written {
        q: BASE64.encode(question),
        a: reply.as_ref().map(|reply| match reply {
            Reply::Accepted(content) => Answer { action: Action::Accept, content: Some(content.clone()) },
            Reply::Declined => Answer { action: Action::Decline, content: None },
            Reply::Dismissed => Answer { action: Action::Cancel, content: None },
        }),
    });
    let d = past.done.iter().map(|value| value.iter().cloned().collect());
    serde_json::to_vec(&WrittenPast { r: r.collect(), d: d.collect() })
}

/// What [`write_past`] has written; `None` for anything else.
pub(crate) fn read_past(bytes: &[u8]) -> Option<Past> {
    let WrittenPast { r, d } = serde_json::from_slice(bytes).ok()?;
    let round = |Written { q, a }| {
        let question = BASE64.decode(q).ok()?.try_into().ok()?;
        Some(Round { question, reply: a.map(reply) })
    };
    Some(Past {
        rounds: r.into_iter().map(round).collect::<Option<_>>()?,
        done: d.into_iter().map(|value| value.into_iter().next()).collect(),
    })
}

/// Reads the answer of a client to an elicitation (`ElicitResult`).
///
/// # Errors
///
/// What such an answer has to be.
pub fn read_answer(value: &Value) -> Result<Reply, &'static str> {
    let shape =
        "an answer is an object with `action` (accept, decline or cancel) and, when accepted, an object `content`";
    Answer::deserialize(value).map(reply).map_err(|_| shape)
}

fn reply(answer: Answer) -> Reply {
    match answer.action {
        Action::Accept => Reply::Accepted(answer.content.unwrap_or_default()),
        Action::Decline => Reply::Declined,
        Action::Cancel => Reply::Dismissed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let content = Map::from_iter([("ok".to_owned(), json!(true))]);
        let replies = [Some(Reply::Accepted(content)), Some(Reply::Declined), Some(Reply::Dismissed), None];
        let rounds = replies.into_iter().map(|reply| Round { question: [9; 32], reply }).collect();
        let past = Past { rounds, done: vec![Some(Value::Null), None, Some(json!({"run": "r"}))] };
        let bytes = write_past(&past).unwrap();
        assert_eq!(read_past(&bytes), Some(past));
        let text = String::from_utf8(bytes).unwrap();
        let end = r#"{"q":"CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk"}],"d":[[null],[],[{"run":"r"}]]}"#;
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn anything_else_is_refused() {
        for bytes in ["", "{}", r#"{"r":[{}]}"#, r#"{"r":[{"q":"AA"}]}"#, r#"{"r":[{"q":"?"}]}"#, r#"{"r":[],"d":[1]}"#]
        {
            assert_eq!(read_past(bytes.as_bytes()), None, "{bytes}");
        }
        for answer in [json!(null), json!({}), json!({"action": "maybe"}), json!({"action": "accept", "content": 1})] {
            assert!(read_answer(&answer).is_err(), "{answer}");
        }
        assert_eq!(read_answer(&json!({"action": "accept", "new": 1})).unwrap(), Reply::Accepted(Map::new()));
    }

    #[test]
    fn a_question_is_known_by_its_words_and_its_schema() {
        let question = |message: &str, kind: &str| Question {
            message: message.to_owned(),
            schema: Map::from_iter([("type".to_owned(), json!(kind))]),
        };
        let known = Round::digest(&question("Sure?", "object"));
        assert_eq!(known, Round::digest(&question("Sure?", "object")));
        assert_ne!(known, Round::digest(&question("Really?", "object")));
        assert_ne!(known, Round::digest(&question("Sure?", "array")));
    }
}

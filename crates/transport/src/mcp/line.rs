//! A record as one line of text for a model.

use std::fmt::{self, Write as _};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::Value;

use super::{backend::Record, snapshot::words};

/// Says what a record says in as few words as possible: who and when is left to `format: "json"`.
///
/// `12 build out| text` for output, `13 build[2] err| text` for that of a branch, `14 assistant| text` for a
/// message, `15 state-done state=build step=1 …` for anything else.
pub(super) fn line(record: &Record) -> String {
    let Ok(fields) = serde_json::from_str::<Fields>(&record.json) else {
        return format!("{} {}", record.seq, record.json);
    };
    let seq = record.seq;
    match fields.text("type") {
        "log" => {
            let stream = if fields.text("stream") == "stderr" { "err" } else { "out" };
            let index = match fields.value("index") {
                Some(index) => format!("[{index}]"),
                None => String::new(),
            };
            // A line that was split goes on in the next record.
            let more = if fields.value("more") == Some(&Value::Bool(true)) { "…" } else { "" };
            let (note, text) = match fields.value("text") {
                Some(_) => ("", fields.text("text")),
                None => ("(not UTF-8, base64) ", fields.text("b64")),
            };
            format!("{seq} {}{index} {stream}| {note}{text}{more}", fields.text("state"))
        }
        "message" => format!("{seq} {}| {}", fields.text("role"), fields.text("text")),
        "gap" => format!(
            "gap: records {} to {} can no longer be had ({})",
            fields.number("from"),
            fields.number("to"),
            fields.text("reason")
        ),
        kind => {
            let mut line = format!("{seq} {kind}");
            for (key, value) in fields.own() {
                // Writing to a string cannot fail.
                let _ = write!(line, " {key}={}", quoted(value));
            }
            line
        }
    }
}

/// A value after `key=`.
fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() || text.contains([' ', '"', '\n', '=']) => value.to_string(),
        Value::Object(_) => format!("{{{}}}", words(value)),
        other => words(other),
    }
}

/// A record's fields in their order.
struct Fields(Vec<(String, Value)>);

impl Fields {
    fn value(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn text(&self, key: &str) -> &str {
        self.value(key).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, key: &str) -> u64 {
        self.value(key).and_then(Value::as_u64).unwrap_or_default()
    }

    /// What is not the same for each record of a run, and says something.
    fn own(&self) -> impl Iterator<Item = &(String, Value)> {
        self.0.iter().filter(|(key, value)| match key.as_str() {
            "seq" | "thread" | "run" | "ts" | "type" => false,
            // What a resume needs is large, and nothing that a model could use.
            "resume" => self.text("type") != "checkpoint",
            "depth" => value.as_u64() != Some(0),
            _ => !value.is_null(),
        })
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a record")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        let record = Record { seq: 7, json: json.into() };
        assert_eq!(line(&record), expected);
    }

    #[test]
    fn output_is_its_text() {
        check(r#"{"seq":7,"type":"log","state":"build","stream":"stdout","text":"a b"}"#, "7 build out| a b");
        check(
            r#"{"seq":7,"type":"log","state":"test","index":2,"stream":"stderr","text":"x","part":0,"more":true}"#,
            "7 test[2] err| x…",
        );
        check(r#"{"type":"log","state":"s","stream":"stdout","b64":"/w=="}"#, "7 s out| (not UTF-8, base64) /w==");
        check(r#"{"type":"message","role":"assistant","text":"hi","delta":true}"#, "7 assistant| hi");
    }

    #[test]
    fn other_records_are_their_own_fields_in_order() {
        check(
            r#"{"seq":7,"thread":"t","run":"r","ts":"x","type":"state-done","machine":"m","depth":0,"state":"b","gate":null,"output":"two words","exit":{"code":0}}"#,
            r#"7 state-done machine=m state=b output="two words" exit={code=0}"#,
        );
        check(
            r#"{"type":"checkpoint","checkpoint":"c","state":"b","step":0,"resume":{"frames":[]}}"#,
            "7 checkpoint checkpoint=c state=b step=0",
        );
        check(r#"{"type":"new-thing","resume":1}"#, "7 new-thing resume=1");
        check(r#"{"type":"new-thing","depth":1,"list":[1,"a"]}"#, r#"7 new-thing depth=1 list=[1,"a"]"#);
    }

    #[test]
    fn a_gap_says_what_is_gone() {
        check(
            r#"{"type":"gap","thread":"t","from":1,"to":7,"reason":"retention","next":7}"#,
            "gap: records 1 to 7 can no longer be had (retention)",
        );
    }

    #[test]
    fn what_is_no_object_is_shown_as_it_is() {
        check("[1]", "7 [1]");
    }
}

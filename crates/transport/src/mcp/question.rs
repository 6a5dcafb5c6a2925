//! What a suspended run waits for, as a question to a person.
//!
//! The same question goes out three ways: in an `InputRequiredResult`, by `elicitation/create`, and in a task that is
//! `input_required`. What comes back is read here too. (MCP 2026-07-28, "Elicitation".)

use rmcp::model::InputRequest;
use serde_json::{Map, Value, json};
use taffrail_mcp_core::{Decision, Question};
use taffrail_progress::rmcp::input_request;

use super::{backend::Decide, form};

/// The field of the form in which a gate is decided. That a form was sent decides nothing by itself.
const DECISION: &str = "decision";

/// A decision or an answer that a run waits for, and that a person can be asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pending {
    run: String,
    /// Its id; no other question has it.
    pub(super) approval: String,
    hash: String,
    /// The thread's head when it was asked.
    pub(super) seen: u64,
    /// It asks for an answer, not for a decision.
    answer: bool,
    /// The question itself.
    pub(super) question: Question,
}

/// Of a snapshot, what [`Pending::of`] looks at.
pub(super) fn asked_in(snapshot: &Value) -> Value {
    let keys = ["run", "playbook", "status", "head", "approval"];
    let fields = keys.into_iter().filter_map(|key| Some((key.to_owned(), snapshot.get(key)?.clone())));
    Value::Object(fields.collect())
}

impl Pending {
    /// What the run of `snapshot` waits for. `None` when it waits for nothing, the decision was made, or the form of the
    /// answer is none that clients show: those are flat objects of texts, numbers, yes or no, and choices.
    pub(super) fn of(snapshot: &Value) -> Option<Self> {
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let approval = snapshot.get("approval")?;
        if snapshot.get("status")?.as_str()? != "suspended" || approval.get(DECISION).is_some_and(|it| !it.is_null()) {
            return None;
        }
        let run = text(snapshot, "run")?;
        let what = text(approval, "message")?;
        let place = format!("{} waits at {}, run {run}", text(snapshot, "playbook")?, text(approval, "state")?);
        let schema = approval.get("schema").and_then(Value::as_object);
        let form = match schema {
            Some(schema) => form::of(schema)?,
            None => decision_schema(&what),
        };
        let question = Question { message: format!("{what}\n\n({place})"), schema: form };
        let pending = Self {
            run,
            approval: text(approval, "approval")?,
            hash: text(approval, "hash")?,
            seen: snapshot.get("head")?.as_u64()?,
            answer: schema.is_some(),
            question,
        };
        pending.request().is_some().then_some(pending)
    }

    /// Whether the inputs of a resume hold a decision, or an answer.
    pub(super) fn is_given_in(&self, inputs: &Map<String, Value>) -> bool {
        if self.answer { !inputs.is_empty() } else { inputs.contains_key(DECISION) }
    }

    /// The question as a request of MCP.
    pub(super) fn request(&self) -> Option<InputRequest> {
        input_request(&self.question).ok()
    }

    /// What a form that was sent comes to.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn decide(&self, content: Map<String, Value>, inputs: Map<String, Value>) -> Result<Decide, String> {
        let (decision, content) = match self.answer {
            true => (Decision::Approve, Some(content)),
            false => {
                let given = content.get(DECISION).cloned().unwrap_or(Value::Null);
                let decision = serde_json::from_value(given.clone());
                (decision.map_err(|_| format!("`{DECISION}` is {given}: it must be \"approve\" or \"reject\""))?, None)
            }
        };
        let Self { run, approval, hash, seen, .. } = self.clone();
        Ok(Decide { run, approval, hash, seen, decision, content, inputs })
    }
}

fn decision_schema(what: &str) -> Map<String, Value> {
    let decision = json!({
        "type": "string",
        "title": "Decision",
        "description": what,
        "oneOf": [
            { "const": "approve", "title": "Approve: the run goes on" },
            { "const": "reject", "title": "Reject: it does not" },
        ],
    });
    let schema = json!({ "type": "object", "properties": { DECISION: decision }, "required": [DECISION] });
    match schema {
        Value::Object(schema) => schema,
        // What is written above is an object.
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspended(approval: Value) -> Value {
        json!({ "run": "r", "playbook": "p", "status": "suspended", "head": 7, "approval": approval })
    }

    fn gate() -> Value {
        json!({ "approval": "a", "state": "s", "message": "Deploy?", "hash": "00", "by": "human" })
    }

    fn ask(schema: Value) -> Value {
        let mut approval = gate();
        approval["schema"] = schema;
        suspended(approval)
    }

    #[test]
    fn a_gate_is_a_choice_of_two_words() {
        let pending = Pending::of(&asked_in(&suspended(gate()))).unwrap();
        assert_eq!(pending.question.message, "Deploy?\n\n(p waits at s, run r)");
        let decide = |content: Value| pending.decide(content.as_object().cloned().unwrap(), Map::new());
        let decided = decide(json!({ "decision": "reject" })).unwrap();
        assert_eq!((decided.decision, decided.content, decided.seen), (Decision::Reject, None, 7));
        assert_eq!(decide(json!({ "decision": "approve" })).unwrap().decision, Decision::Approve);
        for wrong in [json!({}), json!({ "decision": true }), json!({ "decision": "yes" })] {
            assert!(decide(wrong).unwrap_err().contains("must be \"approve\" or \"reject\""));
        }
    }

    #[test]
    fn an_answer_is_what_was_written() {
        let region = json!({ "type": "string", "enum": ["eu", "us"] });
        let schema = json!({ "type": "object", "properties": { "region": region }, "required": ["region"] });
        let pending = Pending::of(&ask(schema)).unwrap();
        let content = json!({ "region": "eu" }).as_object().cloned().unwrap();
        let decided = pending.decide(content.clone(), Map::new()).unwrap();
        assert_eq!((decided.decision, decided.content), (Decision::Approve, Some(content)));
    }

    #[test]
    fn what_no_form_can_ask_is_not_asked() {
        let nested = json!({ "type": "object", "properties": { "x": { "type": "object", "properties": {} } } });
        assert_eq!(Pending::of(&ask(nested)), None);
        assert_eq!(Pending::of(&ask(json!({ "type": "string" }))), None);
    }

    #[test]
    fn who_waits_for_nothing_asks_nothing() {
        let mut decided = gate();
        decided["decision"] = json!("approve");
        assert_eq!(Pending::of(&suspended(decided)), None);
        let mut running = suspended(gate());
        running["status"] = json!("running");
        assert_eq!(Pending::of(&running), None);
        assert_eq!(Pending::of(&json!({})), None);
    }
}

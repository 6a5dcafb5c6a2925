//! Asking a person in the middle of work.

use serde_json::{Map, Value};

use crate::BoxFuture;

/// A question with the shape of its answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What is asked; one or two sentences.
    pub message: String,
    /// JSON Schema of the answer: an object with primitive properties (MCP, elicitation).
    pub schema: Map<String, Value>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// An answer that fits the schema.
    Accepted(Map<String, Value>),
    /// The person said no to being asked.
    Declined,
    /// The question was closed, or there was nobody to ask. Decides nothing.
    Dismissed,
}

/// Puts questions to a person.
///
/// Implementors check answers against the schema before they return them. Dropping the future withdraws the question.
/// Where nobody can be asked the reply is [`Reply::Dismissed`], at once: work must always have another way.
pub trait Elicitor: Send + Sync {
    /// Asks, and waits for the reply.
    fn elicit(&self, question: Question) -> BoxFuture<'_, Reply>;
}

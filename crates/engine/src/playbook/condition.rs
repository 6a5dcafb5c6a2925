//! Conditions: CEL over what a state did, or the literal `otherwise`.
//!
//! CEL has no loops but comprehensions, and those are bounded by what they range over; so the limits here are on the
//! text: its length, its depth and how far comprehensions nest. The interpreter is foreign code on a path that must not
//! fall over, so a panic in it is an error of the condition.

#[cfg(test)]
mod tests;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
    thread,
};

use cel::{Context, Env, ExecutionError, Program, Value as CelValue};
use serde_json::Value;

use super::{
    cel_tree::{self, Reference},
    scope::{CONDITION_VARIABLES, Scope, Variable},
};

/// Longest condition, in bytes: one that needs more belongs in a script whose exit code says the answer.
pub(crate) const MAX_SOURCE_BYTES: usize = 4 * 1024;
/// Deepest expression: evaluation recurses, and worker threads have small stacks.
const MAX_DEPTH: usize = 64;
/// Most comprehensions inside one another: each one multiplies the work.
const MAX_NESTED_LOOPS: usize = 3;
/// Stack of the thread that parses: enough for any text of [`MAX_SOURCE_BYTES`], reserved, not touched.
const PARSER_STACK_BYTES: usize = 64 * 1024 * 1024;

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled condition. Shareable between threads.
pub struct Condition {
    text: String,
    /// `None` is `otherwise`.
    program: Option<Compiled>,
}

struct Compiled {
    program: Program,
    references: Vec<Reference>,
    functions: Vec<String>,
}

/// Why a text is not a condition. Messages are fragments without a trailing stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// Not CEL.
    #[error("bad condition: {message}")]
    Syntax {
        /// What is wrong, on one line.
        message: String,
    },
    /// Longer than a condition may be.
    #[error("condition is {bytes} bytes long; the limit is {MAX_SOURCE_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Nested deeper than a condition may be.
    #[error("condition nests too deeply; the limit is {MAX_DEPTH} levels and {MAX_NESTED_LOOPS} comprehensions")]
    TooDeep,
    /// The machine has no thread left for the parser.
    #[error("cannot start the condition parser: {message}")]
    Thread {
        /// What the system said.
        message: String,
    },
}

/// Why a condition has no answer. Values are left out of the messages: they may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The expression failed.
    #[error("condition `{condition}` failed: {message}")]
    Failed {
        /// The condition.
        condition: String,
        /// What went wrong.
        message: String,
    },
    /// The answer is not `true` or `false`.
    #[error("condition `{condition}` gives {kind}, not true or false")]
    NotBool {
        /// The condition.
        condition: String,
        /// What it gives.
        kind: String,
    },
}

impl Condition {
    /// The literal fallback.
    pub const OTHERWISE: &'static str = "otherwise";

    /// Compiles a condition.
    ///
    /// # Errors
    /// When the text is not CEL or passes a limit.
    pub fn compile(text: &str) -> Result<Self, ConditionError> {
        let text = text.trim();
        if text == Self::OTHERWISE {
            return Ok(Self { text: text.to_owned(), program: None });
        }
        if text.len() > MAX_SOURCE_BYTES {
            return Err(ConditionError::TooLong { bytes: text.len() });
        }
        if text.is_empty() {
            return Err(ConditionError::Syntax { message: "it is empty".to_owned() });
        }
        if cel_tree::bracket_depth(text) > MAX_DEPTH {
            return Err(ConditionError::TooDeep);
        }
        // The parser recurses over its own tree: it gets a stack of its own, and only trees that are shallow enough for
        // any thread leave it.
        let source = text.to_owned();
        let program = thread::Builder::new()
            .name("condition-parser".to_owned())
            .stack_size(PARSER_STACK_BYTES)
            .spawn(move || compile_here(&source))
            .map_err(|error| ConditionError::Thread { message: error.to_string() })?
            .join()
            .unwrap_or_else(|_| Err(ConditionError::Syntax { message: "the parser cannot read it".to_owned() }))?;
        Ok(Self { text: text.to_owned(), program: Some(program) })
    }

    /// The text as written, without space around it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether this is the literal `otherwise`.
    #[must_use]
    pub fn is_otherwise(&self) -> bool {
        self.program.is_none()
    }

    /// Answers the condition. Variables that are absent are null, and so are absent members of `inputs` and `ctx`.
    ///
    /// # Errors
    /// When the expression fails (a comparison of text with a number, a missing member) or gives anything but a
    /// boolean.
    pub fn eval(&self, scope: &Scope) -> Result<bool, EvalError> {
        let Some(compiled) = &self.program else { return Ok(true) };
        let result = catch_unwind(AssertUnwindSafe(|| compiled.program.execute(&compiled.context(scope))));
        match result {
            Ok(Ok(CelValue::Bool(answer))) => Ok(answer),
            Ok(Ok(other)) => {
                Err(EvalError::NotBool { condition: self.text.clone(), kind: other.type_of().to_string() })
            }
            Ok(Err(error)) => Err(EvalError::Failed { condition: self.text.clone(), message: explain(&error) }),
            Err(_) => Err(EvalError::Failed {
                condition: self.text.clone(),
                message: "the interpreter gave up on it".to_owned(),
            }),
        }
    }

    /// The variables it uses, for the checker.
    pub(crate) fn references(&self) -> &[Reference] {
        self.program.as_ref().map_or(&[], |compiled| &compiled.references)
    }

    /// The functions it calls by name, for the checker.
    pub(crate) fn functions(&self) -> &[String] {
        self.program.as_ref().map_or(&[], |compiled| &compiled.functions)
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.text).finish()
    }
}

impl Compiled {
    fn context(&self, scope: &Scope) -> Context<'_, '_> {
        let mut context = Context::with_env(Arc::clone(&ENV));
        for name in CONDITION_VARIABLES {
            if !self.references.iter().any(|reference| reference.root == *name) {
                continue;
            }
            let value = match scope.variable(name) {
                None => CelValue::Null,
                Some(Variable::Number(number)) => CelValue::Int(i64::try_from(number).unwrap_or(i64::MAX)),
                Some(Variable::Value(value)) => cel_tree::to_cel(value),
                Some(Variable::Object(map)) => self.object(name, map),
            };
            context.add_variable_from_value(*name, value);
        }
        context
    }

    /// `inputs` or `ctx`, with null for members the condition reads and nobody has set, unless it asks for one with
    /// `has()`, which would then always say yes.
    fn object(&self, name: &str, map: &serde_json::Map<String, Value>) -> CelValue {
        let of_map = || self.references.iter().filter(|reference| reference.root == name);
        let missing: Vec<&str> = of_map()
            .filter(|reference| !reference.tested)
            .filter_map(|reference| reference.member.as_deref())
            .filter(|member| !map.contains_key(*member))
            .filter(|member| !of_map().any(|other| other.tested && other.member.as_deref() == Some(member)))
            .collect();
        cel_tree::to_cel_map(
            map.iter()
                .map(|(key, value)| (key.as_str(), value))
                .chain(missing.into_iter().map(|key| (key, &Value::Null))),
        )
    }
}

/// Runs on the parser's thread.
fn compile_here(source: &str) -> Result<Compiled, ConditionError> {
    let program = ENV.compile(source).map_err(|errors| ConditionError::Syntax { message: first_line(&errors) })?;
    let shape = cel_tree::shape(program.expression());
    if shape.depth > MAX_DEPTH || shape.nested_loops > MAX_NESTED_LOOPS {
        return Err(ConditionError::TooDeep);
    }
    let (references, functions) = cel_tree::references(program.expression());
    Ok(Compiled { program, references, functions })
}

/// The first complaint, without the list of every token that could have come instead; the rest mostly follow from it.
fn first_line(errors: &cel::ParseErrors) -> String {
    let Some(error) = errors.errors.first() else { return "it cannot be read".to_owned() };
    let message = error.msg.split(" expecting ").next().unwrap_or_default();
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message).trim();
    let message = message.replace("input '<EOF>'", "end of text");
    format!("{message} (at character {})", error.pos.1.max(1))
}

fn explain(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such member: {key}"),
        ExecutionError::NoSuchOverload(_)
        | ExecutionError::UndeclaredReference(_)
        | ExecutionError::InvalidArgumentCount { .. }
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::MissingArgumentOrTarget => lower_first(&error.to_string()),
        ExecutionError::ValuesNotComparable(..) => "its values cannot be compared".to_owned(),
        ExecutionError::UnsupportedBinaryOperator(operator, ..) => {
            format!("operator {operator} does not work on these values")
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => "division by zero".to_owned(),
        ExecutionError::Overflow(operator, ..) => format!("overflow in {operator}"),
        ExecutionError::IndexOutOfBounds(_) => "index out of bounds".to_owned(),
        ExecutionError::FunctionError { function, .. } => format!("{function} failed"),
        _ => "its values do not fit the expression".to_owned(),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

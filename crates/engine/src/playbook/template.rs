//! Templates: minijinja, compiled when the playbook is read, rendered with limits.
//!
//! A template always gives one value; nothing here ever builds shell text. Undefined variables are errors: an empty
//! string in place of a missing version is how wrong things get deployed.

#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use minijinja::{AutoEscape, Environment, Error, ErrorKind, Expression, UndefinedBehavior, value::Value as JinjaValue};
use serde_json::{Map, Value};

use super::{
    model::TemplateValue,
    plain::{object_to_jinja, to_jinja, to_json, write_plain},
    scope::{Scope, Variable},
};

/// Longest template source, in bytes: a template is a value, not a document.
pub(crate) const MAX_SOURCE_BYTES: usize = 64 * 1024;
/// Largest rendered value, in bytes: larger data belongs in files.
pub(crate) const MAX_RENDERED_BYTES: usize = 1024 * 1024;
/// minijinja's unit of work: about one instruction or 64 bytes of data, so that a render allocates at most some 32 MB
/// and ends in well under a second.
const FUEL: u64 = 500_000;
/// Most statements that bind a name. Values share their parts, so each binding can double what a value stands for
/// (`{% set a = [a, a] %}`), and minijinja writes such a value whole before it counts the work.
const MAX_BINDINGS: usize = 12;
/// The only template of its environment.
const NAME: &str = "template";

static BASE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    env.set_fuel(Some(FUEL));
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_formatter(write_plain);
    env
});

/// A compiled template. Cheap to clone and to share between threads.
#[derive(Clone)]
pub struct Template {
    source: Arc<str>,
    kind: Arc<Kind>,
    /// Names it looks up, dotted where an attribute is read at once: `inputs.version`.
    references: Arc<[String]>,
}

enum Kind {
    /// No markup at all.
    Literal,
    /// Exactly one `{{ expression }}`: its value keeps its type.
    Expression(Expression<'static, 'static>),
    /// Text with markup in it.
    Text(Environment<'static>),
}

/// Why a template cannot be compiled or rendered. Messages are fragments without a trailing stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The source is not a template.
    #[error("bad template: {message}")]
    Syntax {
        /// What is wrong.
        message: String,
    },
    /// The source is longer than a template may be.
    #[error("template is {bytes} bytes long; the limit is {MAX_SOURCE_BYTES}")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// It binds more names than a template may.
    #[error("template has {count} `for`, `set` and `with` statements; the limit is {MAX_BINDINGS}")]
    TooManyBindings {
        /// How many it has.
        count: usize,
    },
    /// It cannot be rendered with these variables.
    #[error("cannot render `{template}`: {message}")]
    Render {
        /// The template's source, shortened.
        template: String,
        /// What is wrong.
        message: String,
    },
    /// The result is larger than a value may be.
    #[error("rendering `{template}` gives more than {MAX_RENDERED_BYTES} bytes")]
    TooLarge {
        /// The template's source, shortened.
        template: String,
    },
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// When the source is too long or not minijinja.
    pub fn compile(source: &str) -> Result<Self, TemplateError> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(TemplateError::TooLong { bytes: source.len() });
        }
        let count = bindings(source);
        if count > MAX_BINDINGS {
            return Err(TemplateError::TooManyBindings { count });
        }
        let (kind, names) = if !["{{", "{%", "{#"].iter().any(|mark| source.contains(mark)) {
            (Kind::Literal, Vec::new())
        } else if let Some(expression) =
            single_expression(source).and_then(|inner| BASE.compile_expression_owned(inner.to_owned()).ok())
        {
            let names = expression.undeclared_variables(true);
            (Kind::Expression(expression), names.into_iter().collect())
        } else {
            let mut env = BASE.clone();
            // minijinja drops one trailing newline by default; a value keeps every byte of what was written.
            env.set_syntax(keep_newline()?);
            env.add_template_owned(NAME, source.to_owned()).map_err(|error| syntax(&error))?;
            let names = env.get_template(NAME).map_err(|error| syntax(&error))?.undeclared_variables(true);
            (Kind::Text(env), names.into_iter().collect())
        };
        Ok(Self { source: source.into(), kind: Arc::new(kind), references: sorted(names).into() })
    }

    /// The source text.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names it looks up, sorted; dotted where an attribute is read at once.
    pub(crate) fn references(&self) -> &[String] {
        &self.references
    }

    /// Whether it is exactly one `{{ expression }}`, so that its value need not be text.
    pub(crate) fn is_expression(&self) -> bool {
        matches!(*self.kind, Kind::Expression(_))
    }

    /// Whether it has no markup at all.
    pub(crate) fn is_literal(&self) -> bool {
        matches!(*self.kind, Kind::Literal)
    }

    /// Whether every template can use the name: a function such as `range`.
    pub(crate) fn is_builtin(name: &str) -> bool {
        matches!(name, "loop" | "self") || BASE.globals().any(|(global, _)| global == name)
    }

    /// Renders to one string. Numbers and booleans are plain, lists and objects are JSON, null is `null`.
    ///
    /// # Errors
    /// When a variable is undefined, an operation fails, or a limit on work or size is passed.
    pub fn render(&self, scope: &Scope) -> Result<String, TemplateError> {
        match &*self.kind {
            Kind::Literal => Ok(self.source.to_string()),
            Kind::Text(env) => {
                let text = env
                    .get_template(NAME)
                    .and_then(|template| template.render(self.context(scope)))
                    .map_err(|error| self.failed(&error))?;
                self.bounded(text)
            }
            Kind::Expression(_) => match self.render_value(scope)? {
                Value::String(text) => Ok(text),
                other => self.bounded(other.to_string()),
            },
        }
    }

    /// Renders to one JSON value: a template that is exactly one `{{ expression }}` keeps the type of its value, any
    /// other gives a string.
    ///
    /// # Errors
    /// As [`Template::render`].
    pub fn render_value(&self, scope: &Scope) -> Result<Value, TemplateError> {
        let Kind::Expression(expression) = &*self.kind else {
            return self.render(scope).map(Value::String);
        };
        let value = expression.eval(self.context(scope)).map_err(|error| self.failed(&error))?;
        if value.is_undefined() {
            return Err(self.failed(&Error::from(ErrorKind::UndefinedError)));
        }
        if let Some(text) = value.as_str() {
            return self.bounded(text.to_owned()).map(Value::String);
        }
        to_json(&value, MAX_RENDERED_BYTES).map_err(|error| match error {
            Some(message) => self.failed(&Error::new(ErrorKind::BadSerialization, message)),
            None => TemplateError::TooLarge { template: self.short() },
        })
    }

    /// Only what the template uses is converted: `output` may be large.
    fn context(&self, scope: &Scope) -> JinjaValue {
        let mut names: Vec<&str> = self.references.iter().map(|name| name.split('.').next().unwrap_or(name)).collect();
        names.dedup();
        JinjaValue::from_pairs(names.into_iter().filter_map(|name| {
            let value = match scope.variable(name)? {
                Variable::Object(map) => object_to_jinja(map),
                Variable::Value(value) => to_jinja(value),
                Variable::Number(number) => JinjaValue::from(number),
            };
            Some((name, value))
        }))
    }

    fn bounded(&self, text: String) -> Result<String, TemplateError> {
        if text.len() > MAX_RENDERED_BYTES {
            return Err(TemplateError::TooLarge { template: self.short() });
        }
        Ok(text)
    }

    fn failed(&self, error: &Error) -> TemplateError {
        let message = match error.kind() {
            ErrorKind::OutOfFuel => "it takes more work than a template may".to_owned(),
            ErrorKind::UndefinedError => match error.detail() {
                Some(detail) => format!("a value it uses is undefined ({detail})"),
                None => format!("a value it uses is undefined; it uses {}", self.references.join(", ")),
            },
            kind => describe(kind, error.detail()),
        };
        TemplateError::Render { template: self.short(), message }
    }

    /// The source, cut to what fits a message.
    fn short(&self) -> String {
        const MAX_CHARS: usize = 80;
        match self.source.char_indices().nth(MAX_CHARS) {
            Some((cut, _)) => format!("{}…", &self.source[..cut]),
            None => self.source.to_string(),
        }
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source).finish()
    }
}

impl TemplateValue {
    /// Renders every template in the value; the shape stays as written.
    ///
    /// # Errors
    /// The first error of any template in it.
    pub fn render(&self, scope: &Scope) -> Result<Value, TemplateError> {
        match self {
            Self::Text(template) => template.render_value(scope),
            Self::Plain(value) => Ok(value.clone()),
            Self::List(items) => {
                items.iter().map(|item| item.render(scope)).collect::<Result<_, _>>().map(Value::Array)
            }
            Self::Object(fields) => fields
                .iter()
                .map(|(name, value)| Ok((name.clone(), value.render(scope)?)))
                .collect::<Result<Map<_, _>, _>>()
                .map(Value::Object),
        }
    }
}

/// The inside of a text that may be exactly one `{{ … }}`; whether it is, only the compiler can tell.
fn single_expression(source: &str) -> Option<&str> {
    let inner = source.strip_prefix("{{")?.strip_suffix("}}")?;
    // `{{-` and `-}}` trim the text around them; here there is none.
    let inner = inner.strip_prefix(['-', '+']).unwrap_or(inner);
    Some(inner.strip_suffix(['-', '+']).unwrap_or(inner))
}

/// Counts the statements that bind names; those in quotes or `raw` too, which does no harm.
fn bindings(source: &str) -> usize {
    source
        .split("{%")
        .skip(1)
        .map(|rest| rest.trim_start_matches(['-', '+']).trim_start())
        .filter(|rest| ["for", "set", "with", "filter"].iter().any(|word| rest.starts_with(word)))
        .count()
}

fn keep_newline() -> Result<minijinja::syntax::SyntaxConfig, TemplateError> {
    minijinja::syntax::SyntaxConfig::builder().keep_trailing_newline(true).build().map_err(|error| syntax(&error))
}

fn syntax(error: &Error) -> TemplateError {
    TemplateError::Syntax { message: describe(error.kind(), error.detail()) }
}

fn describe(kind: ErrorKind, detail: Option<&str>) -> String {
    match (kind, detail) {
        (ErrorKind::SyntaxError, Some(detail)) => detail.to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

//! Words for what a route takes and answers.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::{
    Content, ContentBuilder, HttpMethod, ObjectBuilder, PathsBuilder, Ref, Required, ResponseBuilder,
    path::{Operation, OperationBuilder, ParameterBuilder, ParameterIn, PathItem},
    request_body::RequestBodyBuilder,
    schema::{ArrayBuilder, Schema, Type},
    security::SecurityRequirement,
};

use super::schemas::reference;
use crate::http::{code::Code, paths};

/// Problems that every route may answer with.
const ALWAYS: [Code; 7] = [
    Code::Unauthorized,
    Code::UnknownHost,
    Code::UnknownOrigin,
    Code::TooManyRequests,
    Code::HeadTooLarge,
    Code::TooSlow,
    Code::Internal,
];

/// One route.
pub(super) struct Route {
    path: &'static str,
    method: HttpMethod,
    operation: OperationBuilder,
    problems: Vec<Code>,
}

impl Route {
    /// Begins with its name in programs, and what it does in a sentence. The ids in the path are taken from it.
    pub(super) fn new(method: HttpMethod, path: &'static str, id: &str, summary: &str) -> Self {
        let mut operation = OperationBuilder::new().operation_id(Some(id)).summary(Some(summary));
        for name in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            let schema = ObjectBuilder::new().schema_type(Type::String);
            let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).schema(Some(schema));
            operation = operation.parameter(parameter.required(Required::True));
        }
        let open = paths::OPEN.contains(&path);
        if open {
            // A requirement of nothing.
            operation = operation.security(SecurityRequirement::default());
        }
        let problems = ALWAYS.into_iter().filter(|code| !open || *code != Code::Unauthorized).collect();
        Self { path, method, operation, problems }
    }

    /// More about it.
    pub(super) fn about(mut self, text: &str) -> Self {
        self.operation = self.operation.description(Some(text));
        self
    }

    fn parameter(mut self, place: ParameterIn, name: &str, schema: Schema, about: &str) -> Self {
        let parameter = ParameterBuilder::new().name(name).parameter_in(place).required(Required::False);
        self.operation = self.operation.parameter(parameter.schema(Some(schema)).description(Some(about)));
        self
    }

    /// A number in the query.
    pub(super) fn number(self, name: &str, least: u64, most: u64, usual: Option<u64>, about: &str) -> Self {
        // The numbers of limits are small.
        #[expect(clippy::cast_precision_loss, reason = "limits are below 2^53")]
        let object = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(least as f64));
        #[expect(clippy::cast_precision_loss, reason = "limits are below 2^53")]
        let object = if most == u64::MAX { object } else { object.maximum(Some(most as f64)) };
        self.parameter(ParameterIn::Query, name, object.default(usual.map(Value::from)).into(), about)
    }

    /// A text in the query.
    pub(super) fn text(self, name: &str, about: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        self.parameter(ParameterIn::Query, name, schema.into(), about)
    }

    /// One of a few words in the query.
    pub(super) fn word(self, name: &str, words: &[&str], about: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.iter().copied()));
        self.parameter(ParameterIn::Query, name, schema.into(), about)
    }

    /// Words with commas between, in the query.
    pub(super) fn list(mut self, name: &str, about: &str) -> Self {
        let schema = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::String));
        let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query).required(Required::False);
        let parameter = parameter.schema(Some(schema)).explode(Some(false)).description(Some(about));
        self.operation = self.operation.parameter(parameter);
        self
    }

    /// A header of the request.
    pub(super) fn header(self, name: &str, about: &str) -> Self {
        let schema = ObjectBuilder::new().schema_type(Type::String);
        self.parameter(ParameterIn::Header, name, schema.into(), about)
    }

    /// A body in JSON, of a component's shape.
    pub(super) fn body(self, component: &str, required: bool) -> Self {
        self.body_as("application/json", content(component), required)
    }

    /// A body of some other kind.
    pub(super) fn body_as(mut self, form: &str, content: Content, required: bool) -> Self {
        let required = if required { Required::True } else { Required::False };
        let body = RequestBodyBuilder::new().content(form, content).required(Some(required)).build();
        self.operation = self.operation.request_body(Some(body));
        self
    }

    /// An answer in JSON, of a component's shape.
    pub(super) fn answers(self, status: u16, component: &str, about: &str) -> Self {
        self.answers_as(status, &[("application/json", content(component))], about)
    }

    /// An answer of some other kind; of none, without a body.
    pub(super) fn answers_as(mut self, status: u16, forms: &[(&str, Content)], about: &str) -> Self {
        let mut response = ResponseBuilder::new().description(about);
        for (form, content) in forms {
            response = response.content(*form, content.clone());
        }
        self.operation = self.operation.response(status.to_string(), response.build());
        self
    }

    /// Problems that this route has besides those of all.
    pub(super) fn problems(mut self, codes: &[Code]) -> Self {
        self.problems.extend(codes);
        self
    }

    /// Puts it among the others.
    pub(super) fn add(self, paths: PathsBuilder) -> PathsBuilder {
        let Self { path, method, mut operation, problems } = self;
        let mut by_status = BTreeMap::<u16, Vec<&str>>::new();
        for code in problems {
            by_status.entry(code.status().as_u16()).or_default().push(code.as_str());
        }
        for (status, codes) in by_status {
            let about = codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ");
            let response = ResponseBuilder::new().description(about);
            let response = response.content("application/problem+json", content("Problem"));
            operation = operation.response(status.to_string(), response.build());
        }
        let operation: Operation = operation.build();
        paths.path(path, PathItem::new(method, operation))
    }
}

/// A component as content.
pub(super) fn content(component: &str) -> Content {
    ContentBuilder::new().schema(Some(Ref::new(reference(component)))).build()
}

/// Text as content.
pub(super) fn text() -> Content {
    ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build()
}

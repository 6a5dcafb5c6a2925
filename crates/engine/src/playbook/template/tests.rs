//! Tests of templates.

use serde_json::json;

use super::*;

fn scope() -> Scope {
    let mut scope = Scope { attempt: 2, index: Some(3), item: Some(json!(null)), ..Scope::default() };
    scope.inputs =
        json!({ "version": "1.2", "n": 4, "ok": true, "list": ["a", 1], "rate": 1.5 }).as_object().cloned().unwrap();
    scope.output = Some(json!({ "b": 1, "a": [null] }));
    scope
}

fn check(source: &str, expected: Result<Value, &str>) {
    let result = Template::compile(source).and_then(|template| {
        let text = template.render(&scope())?;
        let value = template.render_value(&scope())?;
        if let Value::String(value) = &value {
            assert_eq!(value, &text, "{source}");
        }
        Ok(value)
    });
    match (result, expected) {
        (Ok(value), Ok(expected)) => assert_eq!(value, expected, "{source}"),
        (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{source}: {error}"),
        (result, expected) => panic!("{source}: got {result:?}, expected {expected:?}"),
    }
}

#[test]
fn one_expression_keeps_its_type_and_text_stays_text() {
    check("plain", Ok(json!("plain")));
    check("keeps its newline {{ inputs.n }}\n", Ok(json!("keeps its newline 4\n")));
    check("{{ inputs.n }}", Ok(json!(4)));
    check("{{- inputs.ok -}}", Ok(json!(true)));
    check("{{ inputs.list }}", Ok(json!(["a", 1])));
    check("{{ inputs.rate }}", Ok(json!(1.5)));
    check("{{ item }}", Ok(json!(null)));
    check("{{ index + attempt }}", Ok(json!(5)));
    check("{{ inputs.n }}{{ inputs.n }}", Ok(json!("44")));
    check("v{{ inputs.version }}", Ok(json!("v1.2")));
    check("{{ output }}!", Ok(json!(r#"{"a":[null],"b":1}!"#)));
    check("{% if inputs.ok %}yes{% endif %} {{ item }}", Ok(json!("yes null")));
    check("{{ \"}}\" }}", Ok(json!("}}")));
    check("{{ \"<&\" }}{{ inputs.version }}", Ok(json!("<&1.2")));
}

#[test]
fn undefined_is_an_error() {
    check("{{ inputs.nope }}", Err("undefined"));
    check("x{{ inputs.nope }}", Err("undefined"));
    check("{{ answer }}", Err("undefined"));
    check("{{ inputs.nope.more }}", Err("undefined"));
    check("{{ inputs.nope | default('x') }}", Ok(json!("x")));
}

#[test]
fn bad_syntax_is_told() {
    check("{{ inputs. }}", Err("bad template"));
    check("{{ open", Err("bad template"));
    check("{% for x in y %}", Err("bad template"));
    check("{% include 'other' %}", Err("bad template"));
}

#[test]
fn work_and_size_are_bounded() {
    check("{{ 'x' * 100000000 }}", Err("cannot render"));
    check("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", Err("more work"));
    let doubling = format!("{{% set a = 'xx' %}}{}{{{{ a }}}}", "{% set a = a ~ a %}".repeat(60));
    check(&doubling, Err("the limit is 12"));
    let shared = format!("{{% set a = [1] %}}{}{{{{ a ~ 'x' }}}}", "{% set a = [a, a] %}".repeat(60));
    check(&shared, Err("the limit is 12"));
    let shared = format!("{{% set a = [1] %}}{}{{{{ a }}}}", "{% set a = [a, a, a, a, a, a] %}".repeat(11));
    check(&shared, Err("cannot render"));
    check(&"x".repeat(70_000), Err("the limit is"));
}

#[test]
fn can_be_shared_between_threads() {
    fn shared<T: Send + Sync + fmt::Debug>() {}
    shared::<Template>();
    shared::<TemplateValue>();
}

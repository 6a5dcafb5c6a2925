//! Tests of conditions.

use serde_json::json;

use super::*;
use crate::playbook::exit_value;

fn scope() -> Scope {
    Scope {
        inputs: json!({ "region": "eu", "n": 3 }).as_object().cloned().unwrap(),
        exit: Some(exit_value(Some(0), None, false)),
        output: Some(json!("all good\n")),
        branches: Some(json!([
            { "index": 0, "item": "a", "exit": { "code": 0, "signal": null, "timeout": false }, "output": "" },
            { "index": 1, "item": "b", "exit": { "code": 2, "signal": null, "timeout": false }, "output": "" },
        ])),
        attempt: 1,
        ..Scope::default()
    }
}

fn check(text: &str, expected: Result<bool, &str>) {
    let result = Condition::compile(text)
        .map_err(|error| error.to_string())
        .and_then(|condition| condition.eval(&scope()).map_err(|error| error.to_string()));
    match (result, expected) {
        (Ok(answer), Ok(expected)) => assert_eq!(answer, expected, "{text}"),
        (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
        (result, expected) => panic!("{text}: got {result:?}, expected {expected:?}"),
    }
}

#[test]
fn conditions_are_answered() {
    check("otherwise", Ok(true));
    check(" otherwise ", Ok(true));
    check("true", Ok(true));
    check("exit.code == 0", Ok(true));
    check("exit.code == 0 && !exit.timeout && exit.signal == null", Ok(true));
    check("exit.code in [1, 75]", Ok(false));
    check("branches.all(b, b.exit.code == 0)", Ok(false));
    check("branches.exists(b, b.exit.code == 0)", Ok(true));
    check("branches.filter(b, b.exit.code != 0).size() == 1", Ok(true));
    check("output.contains('good')", Ok(true));
    check("output.matches('^all')", Ok(true));
    check("attempt + 1 == 2", Ok(true));
    check("inputs.region == 'eu' && inputs['n'] * 2 == 6", Ok(true));
}

#[test]
fn what_is_absent_is_null() {
    check("answer == null && approval == null", Ok(true));
    check("ctx.never == null", Ok(true));
    check("inputs['never'] == null", Ok(true));
    check("has(ctx.never)", Ok(false));
    check("has(ctx.never) && ctx.never.x == 1", Ok(false));
}

#[test]
fn failures_are_told() {
    check("exit.code", Err("gives int, not true or false"));
    check("exit.nope == 1", Err("no such member: nope"));
    check("nope == 1", Err("nope"));
    check("output > 1", Err("failed"));
    check("1 / 0 == 1", Err("division by zero"));
    check("exit.code ==", Err("bad condition"));
    check("", Err("empty"));
    check("otherwise || x", Err("otherwise"));
}

#[test]
fn absurd_texts_are_refused_or_answered_but_never_fatal() {
    for text in [
        "(".repeat(4000),
        format!("{}1{}", "(".repeat(60), ")".repeat(60)),
        format!("{}1{}", "[".repeat(60), "]".repeat(60)),
        format!("{}true", "!".repeat(4000)),
        format!("{}1 == 1", "-".repeat(4000)),
        format!("{}1 == 1", "- ".repeat(2000)),
        format!("a{}", ".a".repeat(2000)),
        format!("1{}", "+1".repeat(2000)),
        format!("a{}", "[0]".repeat(1300)),
        format!("a{}", "||a".repeat(1300)),
        "a?a:".repeat(1000) + "a",
        "[1].map(a, ".repeat(5) + "1" + &")".repeat(5),
        format!("[1]{}", ".map(a,[a,a])".repeat(300)),
        "'".repeat(4000),
        "\u{0}\u{fffd}é💥".repeat(100),
        "x".repeat(5000),
    ] {
        if let Ok(condition) = Condition::compile(&text) {
            let _ = condition.eval(&scope());
        }
    }
}

#[test]
fn can_be_shared_between_threads() {
    fn shared<T: Send + Sync + fmt::Debug>() {}
    shared::<Condition>();
}

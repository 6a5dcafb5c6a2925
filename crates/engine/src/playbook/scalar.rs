//! What a plain YAML scalar means: the core schema of YAML 1.2, and nothing more. `no` is a string.

use saphyr_parser::Tag;
use serde_json::{Number, Value};

/// Resolves a plain scalar; `None` for numbers that JSON does not have.
pub(crate) fn resolve(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Value::Null),
        "true" | "True" | "TRUE" => return Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Value::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return None,
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return None;
    }
    if let Some(number) = integer(text) {
        return Some(Value::Number(number));
    }
    if is_float(unsigned) {
        // Too large for a double: infinite, so not JSON.
        return text.parse().ok().and_then(Number::from_f64).map(Value::Number);
    }
    Some(Value::String(text.to_owned()))
}

/// Resolves a scalar with a tag; `None` when the tag is foreign or the text does not fit it.
pub(crate) fn resolve_tagged(text: &str, tag: &Tag) -> Option<Value> {
    // `!` alone says "not plain", so a string.
    if tag.handle.is_empty() && tag.suffix == "!" {
        return Some(Value::String(text.to_owned()));
    }
    if !tag.is_yaml_core_schema() {
        return None;
    }
    let value = resolve(text)?;
    match (tag.suffix.as_str(), &value) {
        ("str", _) => Some(Value::String(text.to_owned())),
        ("null", Value::Null) | ("bool", Value::Bool(_)) | ("float", Value::Number(_)) => Some(value),
        ("int", Value::Number(number)) if number.is_i64() || number.is_u64() => Some(value),
        _ => None,
    }
}

fn integer(text: &str) -> Option<Number> {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && digits.chars().all(|digit| digit.is_digit(radix))
        {
            return u64::from_str_radix(digits, radix).ok().map(Number::from);
        }
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from)).ok()
}

/// `[0-9]+ . [0-9]* e [0-9]+`, as the core schema has it; the sign is already off.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let some_digits = !whole.is_empty() || !fraction.is_empty();
    some_digits
        && all_digits(whole)
        && all_digits(fraction)
        && exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_scalars() {
        for (text, expected) in [
            ("", Some(json!(null))),
            ("~", Some(json!(null))),
            ("yes", Some(json!("yes"))),
            ("no", Some(json!("no"))),
            ("True", Some(json!(true))),
            ("12", Some(json!(12))),
            ("-12", Some(json!(-12))),
            ("+12", Some(json!(12))),
            ("0x1F", Some(json!(31))),
            ("0o17", Some(json!(15))),
            ("0x", Some(json!("0x"))),
            ("1.5", Some(json!(1.5))),
            (".5", Some(json!(0.5))),
            ("1e3", Some(json!(1000.0))),
            ("1e", Some(json!("1e"))),
            (".", Some(json!("."))),
            ("1.2.3", Some(json!("1.2.3"))),
            ("18446744073709551615", Some(json!(u64::MAX))),
            ("99999999999999999999", Some(json!(1e20))),
            ("1e999", None),
            (".inf", None),
            ("-.INF", None),
            (".nan", None),
            ("inf", Some(json!("inf"))),
            ("nan", Some(json!("nan"))),
            ("-", Some(json!("-"))),
        ] {
            assert_eq!(resolve(text), expected, "{text}");
        }
    }
}

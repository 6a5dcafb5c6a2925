//! What differs from one run to the next is taken out of what snapshots pin.

use std::{path::Path, sync::LazyLock};

use regex::Regex;

static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let rules = [
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9a-f]{32}\b", "[run:part]"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "[run]"),
        (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "[ts]"),
        (r#""(elapsed_ms|wall_ms)":\s*\d+"#, r#""$1":"[ms]""#),
        (r"\b(elapsed_ms|wall_ms)=\d+", "$1=[ms]"),
        (r"\b\d+(\.\d+)? ?(ms|s)\b", "[time]"),
    ];
    rules.into_iter().map(|(pattern, text)| (Regex::new(pattern).unwrap(), text)).collect()
});

/// The text without ids, times, durations and paths.
pub(crate) fn redact(text: &str, data: &Path) -> String {
    let text = text.replace(data.to_str().unwrap(), "[data]");
    RULES.iter().fold(text, |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}

//! What differs from one run to the next is taken out of what snapshots pin.

use std::{path::Path, sync::LazyLock};

use regex::Regex;

static RULES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let uuid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
    let rules = [
        (format!("{uuid}:[0-9a-f]{{32}}"), "[run:part]"),
        (uuid.to_owned(), "[run]"),
        // It covers the working directory.
        (r#"(hash"?[=:] ?"?)[0-9a-f]{64}"#.to_owned(), "${1}[hash]"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z".to_owned(), "[ts]"),
        // Not the wall time of a budget, which is much longer.
        (r#"((elapsed_ms|wall_ms)(": ?|: |=))\d{1,6}\b"#.to_owned(), r"${1}0"),
    ];
    rules.into_iter().map(|(pattern, text)| (Regex::new(&pattern).unwrap(), text)).collect()
});

/// The text without ids, times, durations and paths.
pub(crate) fn redact(text: &str, data: &Path) -> String {
    let root = data.parent().unwrap().to_str().unwrap();
    let text = text.replace(root, "[world]");
    RULES.iter().fold(text, |text, (pattern, with)| pattern.replace_all(&text, *with).into_owned())
}

//! Names of spool files.

use std::borrow::Cow;

use taffrail_mcp_core::RunId;

/// Which file of a run: 0 is the one being written, 1 the newest rotated, and so on.
pub(crate) type Number = u32;

const EXTENSION: &str = ".jsonl";
/// Stands for the dot in `.7` at the end of an id. `%` cannot occur in an id.
const ESCAPED_DOT: &str = "%2E";
/// Ends the name of a file that is about to become the one being written; `*.jsonl` does not match it.
const NEXT: &str = ".next";

/// `<run>.jsonl`, `<run>.1.jsonl`, …
///
/// The run `a.1` would write over the first rotated file of the run `a`: such an id is written `a%2E1`.
pub(crate) fn segment(run: &RunId, number: Number) -> String {
    let stem = stem(run);
    match number {
        0 => format!("{stem}{EXTENSION}"),
        n => format!("{stem}.{n}{EXTENSION}"),
    }
}

/// Name of the file that a rotation prepares before it takes its place.
pub(crate) fn next(run: &RunId) -> String {
    segment(run, 0) + NEXT
}

/// The run whose rotation left this file behind.
pub(crate) fn parse_next(name: &str) -> Option<RunId> {
    match parse(name.strip_suffix(NEXT)?)? {
        (run, 0) => Some(run),
        _ => None,
    }
}

/// The inverse of [`segment`]; `None` for any other name.
pub(crate) fn parse(name: &str) -> Option<(RunId, Number)> {
    let stem = name.strip_suffix(EXTENSION)?;
    let (stem, number) = split_number(stem).unwrap_or((stem, 0));
    let run = RunId::new(stem.replace(ESCAPED_DOT, ".")).ok()?;
    (self::stem(&run) == stem).then_some((run, number))
}

fn stem(run: &RunId) -> Cow<'_, str> {
    match split_number(run.as_str()) {
        Some((rest, number)) => format!("{rest}{ESCAPED_DOT}{number}").into(),
        None => run.as_str().into(),
    }
}

/// Splits off `.7`: a number of at least 1, written the one way [`segment`] writes it.
fn split_number(stem: &str) -> Option<(&str, Number)> {
    let (rest, digits) = stem.rsplit_once('.')?;
    let number: Number = digits.parse().ok()?;
    (number > 0 && number.to_string() == digits).then_some((rest, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_means_one_file_of_one_run() {
        let check = |id: &str, number, expected: &str| {
            let run = RunId::new(id).unwrap();
            assert_eq!(segment(&run, number), expected);
            assert_eq!(parse(expected), Some((run.clone(), number)));
            assert_eq!(parse_next(&next(&run)), Some(run));
        };
        check("r", 0, "r.jsonl");
        check("r", 12, "r.12.jsonl");
        check("a.1", 0, "a%2E1.jsonl");
        check("a.1", 1, "a%2E1.1.jsonl");
        check("v1.2.3", 0, "v1.2%2E3.jsonl");
        check("a.01", 0, "a.01.jsonl");
        check("a.0", 3, "a.0.3.jsonl");
        check("a.99999999999", 0, "a.99999999999.jsonl");
    }

    #[test]
    fn other_names_are_not_ours() {
        for name in ["r", "r.json", ".lock", ".jsonl", "r%2E.jsonl", "a%2Eb.jsonl", "r.1.jsonl.next", "r x.jsonl"] {
            assert_eq!(parse(name), None, "{name}");
        }
        assert_eq!(parse_next("r.1.jsonl.next"), None);
    }
}

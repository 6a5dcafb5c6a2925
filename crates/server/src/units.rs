//! Sizes and times as people type them.

use std::time::Duration;

/// `64MiB`, `1GiB`, `500KB`, `1000`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1u64 << 40,
        _ => return Err("expected a size such as 64MiB, 1GiB or 500KB".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a size such as 64MiB, 1GiB or 500KB".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "that is more than can be counted".to_owned())
}

/// `30d`, `12h`, `90m`, `45s`, and sums such as `1h30m`, as jiff reads them.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let said = || "expected a time such as 30d, 12h or 1h30m".to_owned();
    let span: jiff::Span = text.parse().map_err(|_| said())?;
    let days = jiff::SpanRelativeTo::days_are_24_hours();
    let total = span.total((jiff::Unit::Second, days)).map_err(|_| said())?;
    Duration::try_from_secs_f64(total).map_err(|_| said())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type() {
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("500kb"), Ok(500_000));
        assert_eq!(bytes("17"), Ok(17));
        for bad in ["", "MiB", "1.5GiB", "-1", "10 parsecs", "99999999999999TiB"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        for bad in ["", "soon", "5", "-1h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}

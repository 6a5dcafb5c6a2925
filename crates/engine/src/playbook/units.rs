//! Durations (`1h30m`) and sizes (`64MiB`) as people write them.

use std::time::Duration;

/// `ms`, `s`, `m`, `h`, `d`, in milliseconds.
const DURATION_UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Powers of 1000 and of 1024, in bytes.
const SIZE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Reads a duration such as `500ms`, `10s`, `30m`, `1h30m`; longer than zero, at most 1000 days.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    const MAX_MS: u64 = 1000 * 86_400_000;
    let mut rest = text;
    let mut total = 0_u64;
    let mut last_unit = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = leading_number(rest)?;
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let (_, scale) = DURATION_UNITS.iter().find(|(name, _)| *name == unit)?;
        // `30m1h` is more likely a slip than a habit.
        if *scale >= last_unit {
            return None;
        }
        last_unit = *scale;
        total = total.checked_add(number.checked_mul(*scale)?)?;
        rest = after;
    }
    (1..=MAX_MS).contains(&total).then(|| Duration::from_millis(total))
}

/// Reads a size such as `64MiB`, `500KB`, `1 GiB` or a plain number of bytes.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = leading_number(text)?;
    let unit = unit.trim_start();
    if unit.is_empty() {
        return Some(number);
    }
    let (_, scale) = SIZE_UNITS.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*scale)
}

fn leading_number(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ms) in [
            ("500ms", Some(500)),
            ("10s", Some(10_000)),
            ("30m", Some(1_800_000)),
            ("1h30m", Some(5_400_000)),
            ("24h", Some(86_400_000)),
            ("1d2h3m4s5ms", Some(93_784_005)),
            ("0s", None),
            ("10", None),
            ("", None),
            ("s", None),
            ("1x", None),
            ("30m1h", None),
            ("1s1s", None),
            ("-1s", None),
            ("1.5s", None),
            ("10 s", None),
            ("99999999999999999999s", None),
            ("9999999999999999d", None),
            ("é", None),
        ] {
            assert_eq!(duration(text), ms.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, size) in [
            ("64MiB", Some(64 << 20)),
            ("1GiB", Some(1 << 30)),
            ("1 GiB", Some(1 << 30)),
            ("500KB", Some(500_000)),
            ("123", Some(123)),
            ("0", Some(0)),
            ("5B", Some(5)),
            ("5kb", None),
            ("5Mib", None),
            ("", None),
            ("-1", None),
            ("1.5GiB", None),
            ("99999999TiB", None),
        ] {
            assert_eq!(bytes(text), size, "{text}");
        }
    }
}

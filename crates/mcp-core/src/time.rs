//! Instants in microseconds, as RFC 3339 text.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A UTC instant in microseconds since 1970, from 1970 to the end of 9999.
///
/// Its text is always 27 characters, `2026-11-30T07:32:47.123456Z` (RFC 3339, section 5.6), so texts sort as instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(u64);

/// 9999-12-31T23:59:59.999999Z.
const MAX_MICROS: u64 = 253_402_300_799_999_999;
const DAY: u64 = 86_400;

impl Timestamp {
    /// Length of the text, in bytes.
    pub const TEXT_LEN: usize = 27;

    /// From microseconds since 1970; later than 9999 becomes the last instant of it.
    pub const fn from_micros(micros: u64) -> Self {
        Self(if micros > MAX_MICROS { MAX_MICROS } else { micros })
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The text.
    pub fn to_text(self) -> [u8; Self::TEXT_LEN] {
        let seconds = self.0 / 1_000_000;
        let (year, month, day) = civil(seconds / DAY);
        let second = seconds % DAY;
        let mut out = *b"0000-00-00T00:00:00.000000Z";
        digits(&mut out[0..4], year);
        digits(&mut out[5..7], month);
        digits(&mut out[8..10], day);
        digits(&mut out[11..13], second / 3600);
        digits(&mut out[14..16], second / 60 % 60);
        digits(&mut out[17..19], second % 60);
        digits(&mut out[20..26], self.0 % 1_000_000);
        out
    }
}

fn digits(out: &mut [u8], mut n: u64) {
    for place in out.iter_mut().rev() {
        *place = b'0' + (n % 10) as u8;
        n /= 10;
    }
}

/// Year, month and day of a day count since 1970, in the proleptic Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year; see Hinnant, "chrono-compatible
/// low-level date algorithms".
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// The inverse of [`civil`].
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let march_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let year_of_era = year % 400;
    year / 400 * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_text().iter().try_for_each(|b| fmt::Write::write_char(f, char::from(*b)))
    }
}

/// The text is not an instant of the form `2026-11-30T07:32:47.123456Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a UTC time such as 2026-11-30T07:32:47.123456Z")]
pub struct TimestampError;

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Reads what [`Timestamp::to_text`] writes, and the same with 0 to 9 digits of a fraction (cut to microseconds).
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let bytes = text.as_bytes();
        let number = |from: usize, to: usize| -> Result<u64, TimestampError> {
            let part = bytes.get(from..to).ok_or(TimestampError)?;
            part.iter().try_fold(0u64, |n, b| match b {
                b'0'..=b'9' => Ok(n * 10 + u64::from(b - b'0')),
                _ => Err(TimestampError),
            })
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        let marked = marks.iter().all(|&(at, mark)| bytes.get(at) == Some(&mark));
        let fraction = match bytes.get(19..) {
            Some(b"Z") => 0,
            Some([b'.', digits @ .., b'Z']) if (1..=9).contains(&digits.len()) => {
                let mut micros = number(20, 20 + digits.len().min(6))?;
                number(20, 20 + digits.len())?;
                for _ in digits.len()..6 {
                    micros *= 10;
                }
                micros
            }
            _ => return Err(TimestampError),
        };
        let plausible = marked && year >= 1970 && (1..=12).contains(&month) && hour < 24 && minute < 60 && second < 60;
        if !plausible || day == 0 || civil(days(year, month, day)) != (year, month, day) {
            return Err(TimestampError);
        }
        let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second;
        Ok(Self(seconds * 1_000_000 + fraction))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "timestamp".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(micros: u64, text: &str) {
        assert_eq!(Timestamp::from_micros(micros).to_string(), text);
        assert_eq!(text.parse(), Ok(Timestamp::from_micros(micros)));
    }

    #[test]
    fn known_instants() {
        check(0, "1970-01-01T00:00:00.000000Z");
        check(951_782_400_000_001, "2000-02-29T00:00:00.000001Z");
        check(1_796_023_967_123_456, "2026-11-30T07:32:47.123456Z");
        check(MAX_MICROS, "9999-12-31T23:59:59.999999Z");
    }

    #[test]
    fn bad_texts_are_refused() {
        let bad = [
            "",
            "2026",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+01:00",
            "1969-12-31T23:59:59Z",
        ];
        for text in bad {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampError), "{text}");
        }
        assert_eq!("2026-11-30T07:32:47Z".parse::<Timestamp>().unwrap().micros() % 1_000_000, 0);
    }

    proptest! {
        #[test]
        fn text_and_back(micros in 0..=MAX_MICROS) {
            let ts = Timestamp::from_micros(micros);
            prop_assert_eq!(ts.to_string().parse::<Timestamp>(), Ok(ts));
        }
    }
}

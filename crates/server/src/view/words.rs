//! Durations, sizes and endings in words.

use taffrail_mcp_core::{Exit, Policy, RunStatus, Timestamp};

use super::style::Style;

/// `0.4s`, `59.9s`, `1m 05s`, `2h 03m`, `4d 05h`: four to seven characters.
pub(super) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match ms {
        0..60_000 => format!("{seconds}.{}s", ms / 100 % 10),
        60_000..3_600_000 => format!("{minutes}m {:02}s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours}h {:02}m", minutes % 60),
        _ => format!("{days}d {:02}h", hours % 24),
    }
}

/// Milliseconds from one instant to another; 0 when clocks disagree about which was first.
pub(super) fn between(from: Timestamp, to: Timestamp) -> u64 {
    to.micros().saturating_sub(from.micros()) / 1000
}

/// How long ago, for a table: `5s ago`, `3m ago`.
pub(super) fn ago(then: Timestamp, now: Timestamp) -> String {
    let seconds = between(then, now) / 1000;
    match seconds {
        0..60 => format!("{seconds}s ago"),
        60..3600 => format!("{}m ago", seconds / 60),
        3600..86_400 => format!("{}h ago", seconds / 3600),
        _ => format!("{}d ago", seconds / 86_400),
    }
}

/// `512 B`, `1.5 KiB`, `3.0 GiB`.
pub(super) fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut tenths = u128::from(n) * 10 / 1024;
    let mut unit = "";
    for (i, name) in UNITS.iter().enumerate() {
        unit = name;
        if tenths < 10_240 || i + 1 == UNITS.len() {
            break;
        }
        tenths /= 1024;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// `1 line`, `1,200 lines`.
pub(super) fn count(n: u64, what: &str) -> String {
    let plural = match (n, what) {
        (1, _) => what.to_owned(),
        (_, "branch") => "branches".to_owned(),
        _ => format!("{what}s"),
    };
    format!("{} {plural}", thousands(n))
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `exit 3`, `SIGKILL`, `timed out`.
pub(super) fn exit(exit: &Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit {code}"),
        Exit::Signal(signal) => signal.clone(),
        Exit::Timeout(_) => "timed out".to_owned(),
    }
}

/// The sign of a finished state.
pub(super) fn sign(policy: &Policy) -> (Style, &'static str) {
    match policy.as_str() {
        "ok" => (Style::Green, "✓"),
        "repair" => (Style::Yellow, "↻"),
        "escalate" => (Style::Yellow, "✗"),
        _ => (Style::Red, "✗"),
    }
}

/// The sign of a run.
pub(super) const fn run_sign(status: RunStatus) -> (Style, &'static str) {
    match status {
        RunStatus::Running => (Style::Cyan, "●"),
        RunStatus::Suspended => (Style::Yellow, "?"),
        RunStatus::Done => (Style::Green, "✓"),
        RunStatus::Halt => (Style::Red, "✗"),
        RunStatus::Cancelled | RunStatus::Interrupted => (Style::Yellow, "✗"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let cases = [
            (0, "0.0s"),
            (449, "0.4s"),
            (59_999, "59.9s"),
            (65_000, "1m 05s"),
            (7_380_000, "2h 03m"),
            (363_600_000, "4d 05h"),
        ];
        for (ms, shown) in cases {
            assert_eq!(duration(ms), shown);
        }
        assert_eq!(duration(u64::MAX), "213503982334d 14h");
    }

    #[test]
    fn sizes_and_counts() {
        assert_eq!([bytes(0), bytes(1023), bytes(1536), bytes(3 << 30)], ["0 B", "1023 B", "1.5 KiB", "3.0 GiB"]);
        assert_eq!(bytes(u64::MAX), "15.9 EiB");
        assert_eq!([count(1, "line"), count(0, "line"), count(2, "branch")], ["1 line", "0 lines", "2 branches"]);
        assert_eq!([count(999, "x"), count(1000, "x"), count(1_234_567, "x")], ["999 xs", "1,000 xs", "1,234,567 xs"]);
    }
}

//! Chooses what of a page fits into a result, and says exactly what was left out.

use super::backend::Record;

/// What of a page is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Rendered records, oldest first.
    pub(super) shown: Vec<String>,
    /// The cursor to go on with.
    pub(super) next: u64,
    /// With `tail`: older records of the page that did not fit, first and last seq.
    pub(super) older: Option<(u64, u64)>,
}

/// Room and direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) bytes: usize,
    /// Keep the newest, not the oldest.
    pub(super) newest: bool,
    /// The cursor when all fits.
    pub(super) end: u64,
}

/// Takes as many records as fit. One that alone is too large is cut, so that the cursor always moves.
pub(super) fn choose(
    records: &[Record],
    room: Room,
    render: impl Fn(&Record) -> String,
    cut: impl Fn(&Record, usize) -> String,
) -> Window {
    let mut shown = Vec::new();
    let mut left = room.bytes;
    let count = records.len();
    for taken in 0..count {
        let at = if room.newest { count - 1 - taken } else { taken };
        let Some(record) = records.get(at) else { break };
        let text = render(record);
        if text.len() < left {
            // One more for the separator.
            left -= text.len() + 1;
            shown.push(text);
        } else {
            if shown.is_empty() {
                shown.push(cut(record, room.bytes));
            }
            break;
        }
    }
    let seq = |at: usize| records.get(at).map(|record| record.seq);
    let taken = shown.len();
    if room.newest {
        shown.reverse();
        let older = (taken < count).then(|| (seq(0), seq(count - taken - 1)));
        return Window { shown, next: room.end, older: older.and_then(|(first, last)| first.zip(last)) };
    }
    let next = match taken.checked_sub(1).and_then(seq) {
        Some(last) if taken < count => last,
        _ => room.end,
    };
    Window { shown, next, older: None }
}

/// The first at most `bytes` bytes of `text`, whole characters only.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lengths: &[usize], bytes: usize, newest: bool, expected: (&[&str], u64, Option<(u64, u64)>)) {
        let records: Vec<_> = (1..)
            .zip(lengths)
            .map(|(seq, length)| Record { seq, json: seq.to_string().repeat(*length).into() })
            .collect();
        let room = Room { bytes, newest, end: 99 };
        let window = choose(
            &records,
            room,
            |record| record.json.to_string(),
            |record, bytes| format!("{}~", head(&record.json, bytes - 1)),
        );
        let (shown, next, older) = expected;
        assert_eq!(window.shown, shown);
        assert_eq!((window.next, window.older), (next, older));
    }

    #[test]
    fn what_fits_is_shown_and_the_cursor_stays_before_the_rest() {
        check(&[2, 2], 6, false, (&["11", "22"], 99, None));
        check(&[2, 2], 5, false, (&["11"], 1, None));
        check(&[], 5, false, (&[], 99, None));
    }

    #[test]
    fn a_record_too_large_is_cut_and_passed() {
        check(&[9, 1], 4, false, (&["111~"], 1, None));
        check(&[9], 4, false, (&["111~"], 99, None));
        check(&[1, 9], 4, false, (&["1"], 1, None));
    }

    #[test]
    fn a_tail_keeps_the_newest() {
        check(&[2, 2, 2], 6, true, (&["22", "33"], 99, Some((1, 1))));
        check(&[2, 9], 4, true, (&["222~"], 99, Some((1, 1))));
        check(&[1, 1], 9, true, (&["1", "2"], 99, None));
    }

    #[test]
    fn characters_stay_whole() {
        assert_eq!(head("aé", 2), "a");
        assert_eq!(head("aé", 3), "aé");
    }
}

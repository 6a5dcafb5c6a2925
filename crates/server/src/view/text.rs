//! Text that is safe to show: what anyone wrote, with all that a terminal would obey taken out.
//!
//! Escape sequences are dropped, other control characters are shown by their number, and so are the invisible
//! characters that change the direction or order of text, for they can make a question read as another one. Bytes
//! that are not UTF-8 are shown by their number too.

use std::{borrow::Cow, fmt::Write as _};

use unicode_width::UnicodeWidthChar;

/// What becomes of tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tabs {
    /// They stay: lines of any length, where people may copy them.
    Keep,
    /// They become spaces up to the next multiple of eight columns: lines that are cut to a width.
    Expand,
}

/// Marks on one character that are shown; more would grow over the lines above and below.
const MARKS: u32 = 4;
const ESC: char = '\u{1b}';

/// Makes bytes safe. Doing it twice changes nothing.
pub(super) fn clean(bytes: &[u8], tabs: Tabs) -> String {
    let mut out = Shown { text: String::with_capacity(bytes.len()), column: 0, marks: 0, tabs };
    for chunk in bytes.utf8_chunks() {
        out.valid(chunk.valid());
        for byte in chunk.invalid() {
            out.number(u32::from(*byte));
        }
    }
    out.text
}

/// Makes one line of a text safe, with tabs expanded.
pub(super) fn clean_line(text: &str) -> String {
    clean(text.as_bytes(), Tabs::Expand)
}

struct Shown {
    text: String,
    column: usize,
    marks: u32,
    tabs: Tabs,
}

impl Shown {
    fn valid(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let used = match c {
                ESC => escape_len(rest),
                c => {
                    self.char(c);
                    c.len_utf8()
                }
            };
            rest = rest.get(used..).unwrap_or_default();
        }
    }

    fn char(&mut self, c: char) {
        match c {
            '\t' if self.tabs == Tabs::Keep => self.text.push('\t'),
            '\t' => {
                let spaces = 8 - self.column % 8;
                self.text.extend(std::iter::repeat_n(' ', spaces));
                self.column += spaces;
            }
            c if c.is_control() || misleads(c) => self.number(u32::from(c)),
            c => {
                let width = char_width(c);
                self.marks = if width == 0 { self.marks + 1 } else { 0 };
                if self.marks <= MARKS {
                    self.text.push(c);
                    self.column += width;
                }
            }
        }
    }

    fn number(&mut self, number: u32) {
        let before = self.text.len();
        // Writing to a string cannot fail.
        let _ = match number {
            0..=0xff => write!(self.text, "\\x{number:02x}"),
            _ => write!(self.text, "\\u{{{number:x}}}"),
        };
        self.column += self.text.len() - before;
        self.marks = 0;
    }
}

/// Characters that nobody sees and that change how others are read: directions, line ends, tags, byte order marks.
const fn misleads(c: char) -> bool {
    matches!(c,
        '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Length of the escape sequence at the beginning (ECMA-48, section 5.3 to 5.6). Of a sequence that does not end in
/// this text only the opening counts, so that a lost end hides nothing.
fn escape_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let at = |i: usize| bytes.get(i).copied();
    match at(1) {
        Some(b'[') => {
            let body = bytes.iter().skip(2).take_while(|b| matches!(b, 0x20..=0x3f)).count();
            match at(2 + body) {
                Some(0x40..=0x7e) => 3 + body,
                _ => 2 + body,
            }
        }
        // Command strings: titles, links, clipboards.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let end = bytes.iter().enumerate().skip(2).find_map(|(i, b)| match b {
                0x07 => Some(i + 1),
                0x1b if at(i + 1) == Some(b'\\') => Some(i + 2),
                _ => None,
            });
            end.unwrap_or(2)
        }
        Some(0x20..=0x2f) => {
            let body = bytes.iter().skip(1).take_while(|b| matches!(b, 0x20..=0x2f)).count();
            match at(1 + body) {
                Some(0x30..=0x7e) => 2 + body,
                _ => 1 + body,
            }
        }
        Some(0x30..=0x7e) => 2,
        _ => 1,
    }
}

/// Columns of one character. The sign that turns a character into its emoji widens it by one.
pub(super) fn char_width(c: char) -> usize {
    if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) }
}

/// Columns of a safe text. Characters are counted one by one, as terminals that know nothing of joined emoji do; others
/// take less.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Cuts a safe text to so many columns, with `…` in the place of the rest.
pub(super) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let Some(mut room) = columns.checked_sub(1) else { return Cow::Borrowed("") };
    let fits = |c: &char| match room.checked_sub(char_width(*c)) {
        Some(left) => {
            room = left;
            true
        }
        None => false,
    };
    let mut out: String = text.chars().take_while(fits).collect();
    out.push('…');
    Cow::Owned(out)
}

/// The beginning of a text, at most so many bytes.
pub(super) fn head(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(input: &[u8], shown: &str) {
        assert_eq!(clean(input, Tabs::Expand), shown);
        assert_eq!(clean(shown.as_bytes(), Tabs::Expand), shown, "twice");
    }

    #[test]
    fn sequences_are_dropped() {
        check(b"\x1b[1;31mred\x1b[0m", "red");
        check(b"a\x1b[2J\x1b[Hb", "ab");
        check(b"\x1b]0;title\x07x\x1b]8;;http://e/\x1b\\link", "xlink");
        check(b"\x1bPq#0\x1b\\x\x1b(B\x1b7y\x1bcz", "xyz");
    }

    #[test]
    fn what_does_not_end_hides_nothing() {
        check(b"\x1b]0;title", "0;title");
        check(b"\x1b[31\x01m", "\\x01m");
        check(b"x\x1b", "x");
        check(b"\x1b[", "");
        check("\x1bé".as_bytes(), "é");
    }

    #[test]
    fn control_characters_are_shown_by_number() {
        check(b"a\x07b\rc\x08\x7f\0", "a\\x07b\\x0dc\\x08\\x7f\\x00");
        check("\u{9b}31m\u{202e}abc\u{2066}".as_bytes(), "\\x9b31m\\u{202e}abc\\u{2066}");
        check(b"caf\xe9 \xff\xfe", "caf\\xe9 \\xff\\xfe");
        check("e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}x".as_bytes(), "e\u{301}\u{301}\u{301}\u{301}x");
    }

    #[test]
    fn tabs_go_to_the_next_stop() {
        check("a\tb\t日\tc".as_bytes(), "a       b       日      c");
        assert_eq!(clean(b"a\tb", Tabs::Keep), "a\tb");
    }

    #[test]
    fn cuts_are_by_columns() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello", 4), "hel…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!((cut("日", 1), cut("x", 0)), ("…".into(), "".into()));
        assert_eq!(head("aé", 2), "a");
    }

    proptest! {
        #[test]
        fn nothing_is_left_to_obey(bytes in prop::collection::vec(any::<u8>(), 0..200), text in ".*", columns in 0usize..50) {
            for input in [bytes.as_slice(), text.as_bytes()] {
                let shown = clean(input, Tabs::Expand);
                prop_assert!(!shown.chars().any(|c| c.is_control() || misleads(c)), "{shown:?}");
                prop_assert_eq!(&clean(shown.as_bytes(), Tabs::Expand), &shown);
                prop_assert!(width(&cut(&shown, columns)) <= columns);
                prop_assert!(unicode_width::UnicodeWidthStr::width(shown.as_str()) <= width(&shown));
            }
        }
    }
}

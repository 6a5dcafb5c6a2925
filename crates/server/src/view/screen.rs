//! The part of a terminal that is redrawn: which bytes turn what is shown into what shall be shown.
//!
//! There is no alternate screen: what scrolls by stays. A frame is one write that goes up to the first line drawn
//! before, draws each line over the old one and erases what is left, so that nothing is empty for a moment.

/// Ends a synchronized update; terminals that know it show a frame all at once (mode 2026), others ignore it.
const SYNC_END: &str = "\x1b[?2026l";
const SYNC_BEGIN: &str = "\x1b[?2026h";
const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";
/// Erases to the end of the line, and of the screen (ECMA-48, EL and ED).
const ERASE_LINE: &str = "\x1b[K";
const ERASE_BELOW: &str = "\x1b[J";

/// What is drawn right now.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// Columns of each line drawn.
    drawn: Vec<usize>,
    hidden: bool,
}

/// A line as it is written, colours included.
#[derive(Debug)]
pub(super) struct Painted {
    /// The bytes, without a line end.
    pub(super) text: String,
    /// Columns that it takes.
    pub(super) columns: usize,
}

impl Screen {
    /// The bytes that print `above` for good and draw `lines` below it, on a terminal of so many columns. Each of
    /// `lines` takes fewer columns than that.
    pub(super) fn frame(&mut self, above: &[Painted], lines: &[Painted], columns: usize) -> String {
        let mut out = String::from(SYNC_BEGIN);
        if !std::mem::replace(&mut self.hidden, true) {
            out.push_str(HIDE_CURSOR);
        }
        self.up(columns, &mut out);
        above.iter().chain(lines).for_each(|line| put(line, columns, &mut out));
        out.push_str(ERASE_BELOW);
        out.push_str(SYNC_END);
        self.drawn = lines.iter().map(|line| line.columns).collect();
        out
    }

    /// The bytes that put `lines` for good in the place of what is drawn, and give the cursor back.
    pub(super) fn clear(&mut self, lines: &[Painted], columns: usize) -> String {
        let mut out = String::new();
        let drawn = !self.drawn.is_empty();
        if drawn {
            self.up(columns, &mut out);
            self.drawn.clear();
        }
        lines.iter().for_each(|line| put(line, columns, &mut out));
        if drawn {
            out.push_str(ERASE_BELOW);
        }
        if std::mem::take(&mut self.hidden) {
            out.push_str(SHOW_CURSOR);
        }
        out
    }

    /// Goes to the first line drawn. A terminal that became narrower has wrapped the lines.
    fn up(&self, columns: usize, out: &mut String) {
        out.push('\r');
        let rows: usize = self.drawn.iter().map(|width| width.div_ceil(columns.max(1)).max(1)).sum();
        if rows > 0 {
            out.push_str(&format!("\x1b[{rows}A"));
        }
    }
}

/// Writes a line over what was there.
///
/// What was there is erased behind the line and not before: a screen that is erased as a whole goes into the history
/// of some terminals. A line that fills its row leaves nothing to erase, and the cursor on its last character.
fn put(line: &Painted, columns: usize, out: &mut String) {
    out.push_str(&line.text);
    if line.columns == 0 || !line.columns.is_multiple_of(columns.max(1)) {
        out.push_str(ERASE_LINE);
    }
    // A terminal in raw mode needs the carriage return; others do not mind.
    out.push_str("\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shown: &str, expected: &str) {
        let readable = shown.replace('\x1b', "^").replace('\r', "<").replace('\n', "/");
        assert_eq!(readable, expected);
    }

    fn line(text: &str) -> Painted {
        Painted { text: text.to_owned(), columns: text.len() }
    }

    #[test]
    fn a_frame_replaces_the_one_before() {
        let mut screen = Screen::default();
        check(&screen.frame(&[], &[line("one"), line("two")], 80), "^[?2026h^[?25l<one^[K</two^[K</^[J^[?2026l");
        check(&screen.frame(&[], &[line("three")], 80), "^[?2026h<^[2Athree^[K</^[J^[?2026l");
        check(&screen.frame(&[line("out")], &[line("x")], 80), "^[?2026h<^[1Aout^[K</x^[K</^[J^[?2026l");
        check(&screen.clear(&[line("end")], 80), "<^[1Aend^[K</^[J^[?25h");
        check(&screen.clear(&[], 80), "");
    }

    #[test]
    fn a_line_that_fills_its_row_keeps_its_last_character() {
        let mut screen = Screen::default();
        check(
            &screen.frame(&[line("12345678"), line("1234")], &[line("x")], 4),
            "^[?2026h^[?25l<12345678</1234</x^[K</^[J^[?2026l",
        );
    }

    #[test]
    fn a_narrower_terminal_has_wrapped_the_lines() {
        let mut screen = Screen::default();
        screen.frame(&[], &[line(&"x".repeat(79)), line("y")], 80);
        check(&screen.clear(&[], 40), "<^[3A^[J^[?25h");
    }
}

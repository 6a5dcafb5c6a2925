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

impl Screen {
    /// The bytes that print `above` for good and draw `lines` below it, on a terminal of so many columns. `above` is empty or
    /// ends in a line end; each line comes with its columns, fewer than the terminal has.
    pub(super) fn frame(&mut self, above: &str, lines: &[(usize, String)], columns: usize) -> String {
        let mut out = String::from(SYNC_BEGIN);
        if !std::mem::replace(&mut self.hidden, true) {
            out.push_str(HIDE_CURSOR);
        }
        self.up(columns, &mut out);
        if !above.is_empty() {
            // It may scroll, and lines of any length wrap: what is below goes first.
            out.push_str(ERASE_BELOW);
            push_lines(above, &mut out);
        }
        for (_, line) in lines {
            out.push_str(line);
            out.push_str(ERASE_LINE);
            out.push_str("\r\n");
        }
        out.push_str(ERASE_BELOW);
        out.push_str(SYNC_END);
        self.drawn = lines.iter().map(|(columns, _)| *columns).collect();
        out
    }

    /// The bytes that take away what is drawn, print `above`, and give the cursor back.
    pub(super) fn clear(&mut self, above: &str, columns: usize) -> String {
        let mut out = String::new();
        if !self.drawn.is_empty() {
            self.up(columns, &mut out);
            out.push_str(ERASE_BELOW);
            self.drawn.clear();
        }
        push_lines(above, &mut out);
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
            out.push_str(&format!("\x1b[{}A", rows));
        }
    }
}

/// A terminal in raw mode needs the carriage return; others do not mind.
fn push_lines(text: &str, out: &mut String) {
    for line in text.lines() {
        out.push_str(line);
        out.push_str("\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shown: &str, expected: &str) {
        let readable = shown.replace('\x1b', "^").replace('\r', "<").replace('\n', "/");
        assert_eq!(readable, expected);
    }

    fn line(text: &str) -> (usize, String) {
        (text.len(), text.to_owned())
    }

    #[test]
    fn a_frame_replaces_the_one_before() {
        let mut screen = Screen::default();
        check(&screen.frame("", &[line("one"), line("two")], 80), "^[?2026h^[?25l<one^[K</two^[K</^[J^[?2026l");
        check(&screen.frame("", &[line("three")], 80), "^[?2026h<^[2Athree^[K</^[J^[?2026l");
        check(&screen.frame("out\n", &[line("x")], 80), "^[?2026h<^[1A^[Jout</x^[K</^[J^[?2026l");
        check(&screen.clear("end\n", 80), "<^[1A^[Jend</^[?25h");
        check(&screen.clear("", 80), "");
    }

    #[test]
    fn a_narrower_terminal_has_wrapped_the_lines() {
        let mut screen = Screen::default();
        screen.frame("", &[line(&"x".repeat(79)), line("y")], 80);
        check(&screen.clear("", 40), "<^[3A^[J^[?25h");
    }
}

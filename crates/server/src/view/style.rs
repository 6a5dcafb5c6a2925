//! Lines made of coloured pieces.

use std::fmt::Write as _;

use super::text::{self, Tabs};

/// How a piece of a line looks. A few that every terminal has, in its own colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Style {
    /// As it is.
    #[default]
    Plain,
    /// Less important.
    Dim,
    /// More important.
    Bold,
    /// Wrong.
    Red,
    /// Right.
    Green,
    /// Wants attention.
    Yellow,
    /// Going on.
    Cyan,
}

impl Style {
    /// Parameters of SGR (ECMA-48, section 8.3.117).
    const fn sgr(self) -> Option<&'static str> {
        Some(match self {
            Style::Plain => return None,
            Style::Dim => "2",
            Style::Bold => "1",
            Style::Red => "31",
            Style::Green => "32",
            Style::Yellow => "33",
            Style::Cyan => "36",
        })
    }
}

/// One line. Whatever is put into it is made safe on the way in, so no line can hold a sequence but our own colours.
#[derive(Debug, Clone, Default)]
pub(super) struct Line(Vec<(Style, String)>);

impl Line {
    /// A line of one piece.
    pub(super) fn of(style: Style, text: &str) -> Self {
        Self::default().with(style, text)
    }

    /// The line with a piece more.
    pub(super) fn with(mut self, style: Style, text: &str) -> Self {
        self.push(style, text);
        self
    }

    /// Adds a piece. Tabs become spaces.
    pub(super) fn push(&mut self, style: Style, text: &str) {
        self.0.push((style, text::clean_line(text)));
    }

    /// Adds a piece that was written by a process: any bytes.
    pub(super) fn push_bytes(&mut self, style: Style, bytes: &[u8], tabs: Tabs) {
        self.0.push((style, text::clean(bytes, tabs)));
    }

    /// Adds a piece after two spaces; nothing when it is empty.
    pub(super) fn column(&mut self, style: Style, text: &str) {
        if !text.is_empty() {
            self.push(Style::Plain, "  ");
            self.push(style, text);
        }
    }

    /// Adds spaces up to a column, at least none.
    pub(super) fn pad(&mut self, column: usize) {
        let spaces = column.saturating_sub(self.width());
        self.push(Style::Plain, &" ".repeat(spaces));
    }

    /// Columns it takes.
    pub(super) fn width(&self) -> usize {
        self.0.iter().map(|(_, text)| text::width(text)).sum()
    }

    /// Appends it, cut to so many columns where given, without a line end.
    pub(super) fn render(&self, columns: Option<usize>, color: bool, out: &mut String) {
        let mut room = columns.unwrap_or(usize::MAX);
        let whole = self.width() <= room;
        for (style, text) in &self.0 {
            let width = text::width(text);
            // What is cut ends in `…`, which needs a column of the piece before when this one begins past the edge.
            let last = !whole && width >= room;
            let shown = match last {
                true => text::cut(&format!("{text}  "), room).into_owned(),
                false => text.clone(),
            };
            paint(*style, &shown, color, out);
            if last {
                return;
            }
            room = room.saturating_sub(width);
        }
    }

    /// The line as a text of its own.
    pub(super) fn text(&self, columns: Option<usize>, color: bool) -> String {
        let mut out = String::new();
        self.render(columns, color, &mut out);
        out
    }
}

fn paint(style: Style, text: &str, color: bool, out: &mut String) {
    match style.sgr().filter(|_| color && !text.is_empty()) {
        // Writing to a string cannot fail.
        Some(sgr) => drop(write!(out, "\x1b[{sgr}m{text}\x1b[0m")),
        None => out.push_str(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_coloured_and_cut() {
        let line = Line::of(Style::Green, "ok").with(Style::Plain, " then ").with(Style::Red, "\x1b[31mbad");
        assert_eq!(line.text(None, true), "\x1b[32mok\x1b[0m then \x1b[31mbad\x1b[0m");
        assert_eq!(line.text(None, false), "ok then bad");
        assert_eq!(line.text(Some(11), false), "ok then bad");
        assert_eq!(line.text(Some(10), false), "ok then b…");
        assert_eq!(line.text(Some(8), false), "ok then…");
        assert_eq!(line.text(Some(2), false), "o…");
        assert_eq!(line.text(Some(0), false), "");
    }
}

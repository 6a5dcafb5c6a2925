//! The live view: a tree at the bottom of a terminal, and output that scrolls by above it.

use taffrail_engine::EXEC_STATE;
use taffrail_mcp_core::{Event, Timestamp};

use super::{
    format::Seen,
    layout, log_line,
    screen::{Painted, Screen},
    style::{Line, Style},
    text::Tabs,
    tree::Tree,
};

/// Columns and rows of a terminal that does not say.
const UNKNOWN_SIZE: (usize, usize) = (80, 24);
/// States that are told again when a run has ended, in lines.
const AT_REST: usize = 100;

/// The live tree and where it stands.
#[derive(Debug)]
pub(super) struct Live {
    /// Whether it is coloured.
    pub(super) color: bool,
    tree: Tree,
    screen: Screen,
    /// Columns and rows, as last told.
    size: (usize, usize),
    /// The time of the last tick or record.
    now: Timestamp,
    /// Lines for above the tree.
    above: Vec<Painted>,
    /// Bytes of those lines.
    held: usize,
    /// The run is one command: its output scrolls by.
    exec: bool,
}

impl Live {
    pub(super) fn new(color: bool) -> Self {
        Self {
            color,
            tree: Tree::default(),
            screen: Screen::default(),
            size: UNKNOWN_SIZE,
            now: Timestamp::default(),
            above: Vec::new(),
            held: 0,
            exec: false,
        }
    }

    /// Takes in a record.
    pub(super) fn record(&mut self, seen: Seen) {
        let Seen::Record { ts, run, event } = seen else { return };
        self.now = self.now.max(ts);
        if self.tree.run.is_none() {
            self.tree.run = run;
        }
        match &event {
            Event::RunStart(start) if start.depth == 0 => self.exec = start.entry == EXEC_STATE,
            Event::Log(log) if self.exec => {
                // A piece of a long line ends here too: the tree needs the next one.
                let line = paint(&log_line::output(log, Tabs::Expand), None, self.color);
                self.held += line.text.len();
                self.above.push(line);
            }
            _ => {}
        }
        match &event {
            Event::Log(log) => self.tree.log(log),
            Event::Message(message) => self.tree.message(message),
            other => self.tree.feed(ts, other),
        }
    }

    /// Puts a line above the tree that is no record.
    pub(super) fn remark(&mut self, text: &str) {
        let line = paint(&Line::of(Style::Yellow, text), None, self.color);
        self.held += line.text.len();
        self.above.push(line);
    }

    /// Bytes that wait to be printed.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// The frame of this moment, on a terminal of so many columns and rows.
    pub(super) fn tick(&mut self, now: Timestamp, size: (u16, u16)) -> String {
        self.now = now;
        // A terminal that does not know its size says 0.
        self.size = if size.0 == 0 || size.1 == 0 { UNKNOWN_SIZE } else { (size.0.into(), size.1.into()) };
        self.frame()
    }

    /// The frame of the last moment that was told.
    pub(super) fn frame(&mut self) -> String {
        // The last row stays free: the cursor is there.
        let rows = self.size.1.saturating_sub(1);
        let lines = match self.exec {
            true => vec![layout::run_line(&self.tree, self.now)],
            false => layout::lines(&self.tree, self.columns(), rows, self.now),
        };
        let lines: Vec<_> = lines.iter().map(|line| paint(line, Some(self.columns()), self.color)).collect();
        let above = self.above();
        self.screen.frame(&above, &lines, self.size.0)
    }

    /// Takes the live part away and tells the states once more, for good.
    pub(super) fn rest(&mut self) -> String {
        let columns = self.columns();
        let mut lines = self.above();
        if !self.exec {
            // The line of the run is in the summary.
            let tree = layout::lines(&self.tree, columns, AT_REST, self.now);
            lines.extend(tree.iter().skip(1).map(|line| paint(line, Some(columns), self.color)));
        }
        self.screen.clear(&lines, self.size.0)
    }

    /// Takes the live part away; what waits is printed.
    pub(super) fn clear(&mut self) -> String {
        let above = self.above();
        self.screen.clear(&above, self.size.0)
    }

    fn above(&mut self) -> Vec<Painted> {
        self.held = 0;
        std::mem::take(&mut self.above)
    }

    /// The last column stays free, for terminals differ on where the cursor is after it.
    fn columns(&self) -> usize {
        self.size.0.saturating_sub(1)
    }
}

fn paint(line: &Line, columns: Option<usize>, color: bool) -> Painted {
    let width = line.width();
    Painted { text: line.text(columns, color), columns: columns.map_or(width, |columns| width.min(columns)) }
}

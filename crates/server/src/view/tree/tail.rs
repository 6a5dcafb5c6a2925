//! The last lines that a state wrote.

use std::collections::VecDeque;

use taffrail_mcp_core::{Log, Message, Progress, Stream};

use crate::view::text::{self, Tabs};

/// Lines that are kept: what is shown of a state that failed.
const KEPT: usize = 10;
/// Longest part of a line that is kept, in bytes: more than any terminal shows in one line.
const LONGEST: usize = 2048;

/// The last lines of output, made safe.
#[derive(Debug, Default)]
pub(crate) struct Tail(VecDeque<TailLine>);

/// One of them.
#[derive(Debug)]
pub(crate) struct TailLine {
    /// Who wrote it.
    pub(crate) by: By,
    /// What, safe.
    pub(crate) text: String,
    /// More of the same line may follow.
    open: bool,
}

/// Who wrote a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum By {
    /// A process: the branch and the stream.
    Process(Option<u64>, Stream),
    /// A role of a conversation.
    Role(String),
}

impl Tail {
    /// The lines, oldest first.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &TailLine> + DoubleEndedIterator {
        self.0.iter()
    }

    /// Takes in process output.
    pub(super) fn log(&mut self, log: &Log) {
        let data = log.data();
        let data = data.get(..LONGEST).unwrap_or(&data);
        self.add(By::Process(log.index, log.stream), data, log.part.is_some_and(|part| part > 0), log.more);
    }

    /// Takes in a piece of an answer.
    pub(super) fn message(&mut self, message: &Message) {
        let by = By::Role(text::head(&message.role, 64).to_owned());
        let mut goes_on = message.delta;
        let mut lines = message.text.split('\n').peekable();
        while let Some(line) = lines.next() {
            let more = lines.peek().is_none();
            self.add(by.clone(), text::head(line, LONGEST).as_bytes(), goes_on, more);
            goes_on = false;
        }
    }

    fn add(&mut self, by: By, data: &[u8], goes_on: bool, more: bool) {
        if let Some(line) = self.0.iter_mut().rev().find(|line| goes_on && line.open && line.by == by) {
            line.open = more;
            if line.text.len() < LONGEST {
                line.text.push_str(&text::clean(data, Tabs::Expand));
            }
            return;
        }
        let text = text::clean(data, Tabs::Expand);
        // The empty end of a message is not a line yet.
        if text.is_empty() && matches!(by, By::Role(_)) {
            return;
        }
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(TailLine { by, text, open: more });
    }
}

/// `3/10 linking`, `40% linking`.
pub(super) fn progress(progress: &Progress) -> String {
    let mut said = match progress.total {
        Some(total) if total > 0.0 && total.fract() == 0.0 && progress.progress.fract() == 0.0 && total < 1e6 => {
            format!("{}/{total}", progress.progress)
        }
        Some(total) if total > 0.0 => format!("{:.0}%", progress.progress / total * 100.0),
        // A scale that nobody told says nothing beside words.
        _ if progress.message.is_some() => String::new(),
        _ => format!("{}", progress.progress),
    };
    if let Some(message) = &progress.message {
        if !said.is_empty() {
            said.push(' ');
        }
        said.push_str(text::head(message.lines().next().unwrap_or_default(), 200));
    }
    said
}

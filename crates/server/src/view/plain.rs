//! A line for each event that matters, where no terminal is: build logs, files, pipes.

use taffrail_mcp_core::{
    ApprovalRequested, Event, Level, Log, Message, RunFinished, RunId, RunStart, StateKind, Stream, Timestamp,
    ToolDecision,
};

use super::{
    format::Seen,
    layout,
    style::{Line, Style},
    summary,
    text::{self, Tabs},
    tree::Tree,
    words,
};

/// Makes lines of what is seen.
#[derive(Debug)]
pub(super) struct Plain {
    /// Whether lines are coloured.
    pub(super) color: bool,
    tree: Tree,
    /// Whose line is not at its end yet: pieces of one line are joined while nobody else writes.
    open: Option<Source>,
}

/// Who writes a line.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    Process(String, Option<u64>, Stream),
    Role(String),
}

impl Plain {
    pub(super) fn new(color: bool) -> Self {
        Self { color, tree: Tree::default(), open: None }
    }

    /// Appends what there is to say.
    pub(super) fn show(&mut self, seen: &Seen, out: &mut String) {
        match seen {
            Seen::Record { event: Event::Log(log), .. } => self.log(log, out),
            Seen::Record { event: Event::Message(message), .. } => self.message(message, out),
            Seen::Record { ts, run, event } => {
                if self.tree.run.is_none() {
                    self.tree.run.clone_from(run);
                }
                self.tree.feed(*ts, event);
                if let Some(line) = self.event(*ts, event) {
                    self.whole(&line, out);
                }
                if let Event::ApprovalRequested(request) = event {
                    self.asked(request, out);
                }
            }
            Seen::Gap(gap) => {
                let said = format!("{:>7}  records {} to {} can no longer be had", "", gap.from, gap.to);
                self.whole(&Line::of(Style::Yellow, &said), out);
            }
            Seen::Unreadable => {}
        }
    }

    /// Ends a line that still is open.
    pub(super) fn close(&mut self, out: &mut String) {
        if self.open.take().is_some() {
            out.push('\n');
        }
    }

    fn whole(&mut self, line: &Line, out: &mut String) {
        self.close(out);
        line.render(None, self.color, out);
        out.push('\n');
    }

    fn log(&mut self, log: &Log, out: &mut String) {
        let source = Source::Process(log.state.clone(), log.index, log.stream);
        let goes_on = log.part.is_some_and(|part| part > 0) && self.open.as_ref() == Some(&source);
        let mut line = Line::default();
        if !goes_on {
            self.close(out);
            let (style, bar) = match log.stream {
                Stream::Stdout => (Style::Dim, "|"),
                Stream::Stderr => (Style::Red, "!"),
            };
            line.push(style, &format!("{} {bar} ", branch(&log.state, log.index)));
        }
        line.push_bytes(Style::Plain, &log.data(), Tabs::Keep);
        line.render(None, self.color, out);
        self.open = Some(source);
        if !log.more {
            self.close(out);
        }
    }

    fn message(&mut self, message: &Message, out: &mut String) {
        let source = Source::Role(message.role.clone());
        let mut goes_on = message.delta && self.open.as_ref() == Some(&source);
        let mut lines = message.text.split('\n').peekable();
        while let Some(piece) = lines.next() {
            let last = lines.peek().is_none();
            // What follows the last line end begins with the next piece.
            if last && piece.is_empty() {
                break;
            }
            let mut line = Line::default();
            if !std::mem::take(&mut goes_on) {
                self.close(out);
                line.push(Style::Cyan, &format!("{}: ", text::head(&message.role, 64)));
            }
            line.push_bytes(Style::Plain, piece.as_bytes(), Tabs::Keep);
            line.render(None, self.color, out);
            self.open = Some(Source::Role(message.role.clone()));
            if !last {
                self.close(out);
            }
        }
    }

    fn event(&self, ts: Timestamp, event: &Event) -> Option<Line> {
        let line = Line::of(Style::Dim, &format!("{:>7}", words::duration(self.tree.elapsed(ts))));
        let line = |depth: u32, name: &str| {
            let mut line = line.clone();
            line.push(Style::Plain, &" ".repeat(2 * depth.min(16) as usize));
            line.column(Style::Bold, name);
            line
        };
        Some(match event {
            Event::RunStart(start) => run_start(line(start.depth, &start.machine), start, self.tree.run.as_ref()),
            // The question says that it has begun.
            Event::StateStart(start) if matches!(start.kind, StateKind::Approve | StateKind::Ask) => return None,
            Event::StateStart(start) => {
                let mut line = line(start.depth, &start.state);
                line.column(Style::Plain, "start");
                if let Some(node) = self.tree.last_named(&start.state) {
                    layout::attempt(&mut line, node);
                }
                line
            }
            Event::StateDone(done) => {
                let mut line = line(done.depth, &done.state);
                self.state_done(&mut line, &done.state, ts);
                line
            }
            Event::BranchStart(start) => {
                let mut line = line(start.depth, &branch(&start.state, Some(start.index)));
                line.column(Style::Plain, "start");
                let branches = self.tree.last_named(&start.state).map(|node| &node.branches.kept);
                let item = branches.and_then(|kept| kept.get(&start.index)).map(|branch| branch.item.as_str());
                line.column(Style::Plain, item.unwrap_or_default());
                line
            }
            Event::BranchDone(done) => {
                let mut line = line(done.depth, &branch(&done.state, Some(done.index)));
                let style = if done.exit.success() { Style::Green } else { Style::Red };
                line.column(style, "done");
                line.column(Style::Plain, &words::exit(&done.exit));
                line
            }
            Event::RunFinished(end) if end.depth == 0 => run_finished(line(0, &end.machine), end),
            Event::ApprovalRequested(request) => {
                let what = if request.schema.is_some() { "waits for an answer" } else { "waits for a decision" };
                let mut line = line(0, &request.state);
                line.column(Style::Yellow, what);
                line
            }
            Event::ApprovalResolved(resolved) => {
                let mut line = line(0, "decision");
                line.column(Style::Plain, &format!("{:?} by {}", resolved.decision, resolved.actor).to_lowercase());
                line
            }
            Event::Clipped(clipped) => {
                let mut line = line(0, &branch(clipped.state.as_deref().unwrap_or("output"), clipped.index));
                let lines = words::count(clipped.lines, "line");
                let said = format!("{lines} ({}) of {} not kept", words::bytes(clipped.bytes), clipped.stream.as_str());
                line.column(Style::Yellow, &said);
                line
            }
            Event::CancelRequested(cancel) => {
                let mut line = line(0, "cancel");
                line.column(Style::Yellow, &format!("asked for by {}", text::head(&cancel.actor, 200)));
                line.column(Style::Plain, cancel.reason.as_deref().unwrap_or_default());
                line
            }
            Event::ToolCall(call) => {
                let mut line = line(0, &call.tool);
                match call.decision {
                    ToolDecision::Allowed => line.column(Style::Plain, &format!("called by {}", call.role)),
                    ToolDecision::Denied => line.column(Style::Yellow, &format!("denied to {}", call.role)),
                }
                line.column(Style::Plain, call.reason.as_deref().unwrap_or_default());
                line
            }
            Event::Note(note) if note.level > Level::Info => {
                let mut line = line(0, "note");
                line.column(Style::Yellow, &note.text);
                line
            }
            _ => return None,
        })
    }

    fn state_done(&self, line: &mut Line, state: &str, ts: Timestamp) {
        let Some(node) = self.tree.last_named(state) else { return };
        let Some(end) = &node.end else { return };
        let policy = end.policy.as_ref();
        let style = policy.map_or(Style::Yellow, |policy| words::sign(policy).0);
        line.column(style, policy.map_or("done", |policy| policy.as_str()));
        line.column(Style::Plain, &end.exit.as_ref().map(words::exit).unwrap_or_default());
        line.column(Style::Plain, &node.branches.counts());
        if let Some(took) = node.took(ts) {
            line.column(Style::Plain, &words::duration(took));
        }
        layout::follows(line, node);
    }

    fn asked(&mut self, request: &ApprovalRequested, out: &mut String) {
        let margin = " ".repeat(9);
        for line in text::head(&request.message, 4096).lines() {
            self.whole(&Line::of(Style::Plain, &margin).with(Style::Bold, line), out);
        }
        let Some(run) = self.tree.run.clone() else { return };
        for how in summary::how_to_decide(&run, request.schema.as_ref()) {
            self.whole(&Line::of(Style::Plain, &margin).with(Style::Plain, &how), out);
        }
    }
}

fn run_start(mut line: Line, start: &RunStart, run: Option<&RunId>) -> Line {
    match start.resumed {
        true => line.column(Style::Plain, &format!("goes on at {}", text::head(&start.entry, 200))),
        false => line.column(Style::Plain, "start"),
    }
    if let Some(run) = run.filter(|_| start.depth == 0) {
        line.column(Style::Dim, &format!("run {run}"));
    }
    line
}

fn run_finished(mut line: Line, end: &RunFinished) -> Line {
    line.column(words::run_sign(end.status).0, end.status.as_str());
    if let Some(at) = &end.at {
        line.push(Style::Plain, &format!(" at {}", text::head(at, 200)));
    }
    if let Some(error) = &end.error {
        line.column(Style::Plain, error.as_str());
    }
    line
}

/// `test`, `test[2]`.
fn branch(state: &str, index: Option<u64>) -> String {
    match index {
        Some(index) => format!("{}[{index}]", text::head(state, 200)),
        None => text::head(state, 200).to_owned(),
    }
}

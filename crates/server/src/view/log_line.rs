//! `taffrail logs`: one record as a line.

use taffrail_mcp_core::{Event, Log, OtherEvent, Stream};

use super::{
    format::Seen,
    style::{Line, Style},
    text::{self, Tabs},
    words,
};

/// The record as a line, and whether the line ends with it.
pub(super) fn line(seen: &Seen) -> (Line, bool) {
    match seen {
        Seen::Record { event: Event::Log(log), .. } => (output(log, Tabs::Keep), !log.more),
        Seen::Record { event: Event::Message(message), .. } => {
            let mut line = Line::of(Style::Cyan, &format!("-- {}: ", text::head(&message.role, 64)));
            line.push_bytes(
                Style::Plain,
                message.text.trim_end_matches('\n').replace('\n', " ⏎ ").as_bytes(),
                Tabs::Keep,
            );
            (line, true)
        }
        Seen::Record { event, .. } => {
            let mut line = Line::of(Style::Dim, "-- ").with(Style::Bold, text::head(event.kind(), 64));
            for word in told(event) {
                line.push(Style::Plain, " ");
                line.push(Style::Plain, text::head(&word, 1000).lines().next().unwrap_or_default());
            }
            (line, true)
        }
        Seen::Gap(gap) => {
            let said = format!("-- gap: records {} to {} can no longer be had", gap.from, gap.to);
            (Line::of(Style::Yellow, &said), true)
        }
        Seen::Unreadable => (Line::of(Style::Red, "-- unreadable record"), true),
    }
}

/// Process output as its text.
pub(super) fn output(log: &Log, tabs: Tabs) -> Line {
    let style = match log.stream {
        Stream::Stdout => Style::Plain,
        Stream::Stderr => Style::Red,
    };
    let mut line = Line::default();
    line.push_bytes(style, &log.data(), tabs);
    line
}

/// What an event says, in the fewest words.
fn told(event: &Event) -> Vec<String> {
    let branch = |state: &str, index: u64| format!("{}[{index}]", text::head(state, 200));
    match event {
        Event::RunStart(start) if start.resumed => vec![start.machine.clone(), format!("resumed at {}", start.entry)],
        Event::RunStart(start) => vec![start.machine.clone(), format!("at {}", start.entry)],
        Event::StateStart(start) => vec![start.state.clone(), format!("step {}", start.step)],
        Event::StateDone(done) => {
            let mut told = vec![done.state.clone(), done.policy.to_string()];
            told.extend(done.exit.as_ref().map(words::exit));
            told.extend(done.branches.map(|n| words::count(n, "branch")));
            told.extend(done.to.as_ref().map(|to| format!("→ {to}")));
            told
        }
        Event::BranchStart(start) => vec![branch(&start.state, start.index), start.item.to_string()],
        Event::BranchDone(done) => vec![branch(&done.state, done.index), words::exit(&done.exit)],
        Event::RunFinished(end) => {
            let mut told = vec![end.machine.clone(), end.status.as_str().to_owned()];
            told.extend(end.at.as_ref().map(|at| format!("at {at}")));
            told.extend(end.error.as_ref().map(ToString::to_string));
            told.extend(end.detail.as_ref().map(|detail| format!("({detail})")));
            told
        }
        Event::Progress(progress) => {
            let mut told: Vec<String> = progress.state.clone().into_iter().collect();
            told.push(progress.total.map_or(progress.progress.to_string(), |t| format!("{}/{t}", progress.progress)));
            told.extend(progress.message.clone());
            told
        }
        Event::ApprovalRequested(request) => vec![request.state.clone(), request.message.clone()],
        Event::ApprovalResolved(resolved) => {
            vec![format!("{:?}", resolved.decision).to_lowercase(), format!("by {}", resolved.actor)]
        }
        Event::Clipped(clipped) => {
            let mut told: Vec<String> = clipped.state.clone().into_iter().collect();
            told.extend([clipped.stream.as_str().to_owned(), words::count(clipped.lines, "line")]);
            told.push(format!("({})", words::bytes(clipped.bytes)));
            told
        }
        Event::ToolCall(call) => {
            let mut told = vec![call.tool.clone(), format!("{:?}", call.decision).to_lowercase(), call.role.clone()];
            told.extend(call.reason.clone());
            told
        }
        Event::Checkpoint(checkpoint) => vec![checkpoint.checkpoint.clone(), format!("at {}", checkpoint.state)],
        Event::CheckpointClaimed(claimed) => vec![claimed.checkpoint.clone(), format!("by {}", claimed.actor)],
        Event::Proposal(proposal) => vec![proposal.tool.clone(), proposal.proposal.clone()],
        Event::ProposalApplied(applied) => vec![applied.tool.clone(), applied.proposal.clone()],
        Event::CancelRequested(cancel) => {
            let mut told = vec![format!("by {}", cancel.actor)];
            told.extend(cancel.reason.clone());
            told
        }
        Event::Note(note) => vec![note.text.to_string()],
        Event::Other(OtherEvent { fields, .. }) => {
            fields.iter().take(8).map(|(name, value)| format!("{name}={}", text::head(value.get(), 100))).collect()
        }
        _ => Vec::new(),
    }
}

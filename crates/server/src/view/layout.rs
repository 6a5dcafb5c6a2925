//! From the tree to so many lines of so many columns.
//!
//! All lines are made, each with a rank; when there is no room for all, those that matter least right now go: first
//! the oldest states that ended (`… 17 earlier states`), then output, then branches, never the line of the run.

mod fit;

use taffrail_mcp_core::{RunStatus, Stream, Timestamp};

use self::fit::{Rank, Row};
use super::{
    hint::hint,
    style::{Line, Style},
    text,
    tree::{Branch, By, Node, TailLine, Tree},
    words,
};

/// Lines of output under a state that runs.
const TAIL: usize = 3;
/// Branches that are shown one by one.
const BRANCHES: usize = 8;
/// Lines of a question.
const QUESTION: usize = 5;
/// Columns that names are lined up to.
const NAMES: usize = 32;
/// How an unfinished state turns, ten times a second.
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The lines of a run: at most `height`, none wider than `width`.
pub(super) fn lines(tree: &Tree, width: usize, height: usize, now: Timestamp) -> Vec<Line> {
    let names = name_columns(tree, width);
    let mut rows = vec![Row { rank: Rank::Run, line: run_line(tree, now) }];
    for node in &tree.nodes {
        state_rows(tree, node, names, now, &mut rows);
    }
    fit::fit(rows, tree.forgotten, height)
}

/// The one line of a run whose output scrolls above it.
pub(super) fn run_line(tree: &Tree, now: Timestamp) -> Line {
    let mut line = match tree.status {
        Some(RunStatus::Running) => Line::of(Style::Cyan, spinner(now)),
        Some(status) => {
            let (style, sign) = words::run_sign(status);
            Line::of(style, sign)
        }
        None => return Line::of(Style::Dim, "waiting for the first record"),
    };
    line.push(Style::Plain, " ");
    line.push(Style::Bold, text::head(&tree.name, 200));
    line.column(Style::Plain, &words::duration(tree.elapsed(now)));
    if let Some(status) = tree.status.filter(|status| *status != RunStatus::Running) {
        line.column(words::run_sign(status).0, status.as_str());
    }
    if tree.cancelling {
        line.column(Style::Yellow, "cancelling");
    }
    if tree.lines > 0 {
        line.column(Style::Dim, &words::count(tree.lines, "line"));
    }
    if tree.clipped > 0 {
        line.column(Style::Yellow, &format!("{} clipped", words::count(tree.clipped, "line")));
    }
    if let Some(run) = &tree.run {
        line.column(Style::Dim, run.as_str());
    }
    line
}

fn state_rows(tree: &Tree, node: &Node, names: usize, now: Timestamp, rows: &mut Vec<Row>) {
    let indent = indent(node);
    match &node.end {
        Some(end) => {
            rows.push(Row { rank: Rank::Ended, line: ended_line(node, names, now) });
            // What a run stopped at is shown with its reasons.
            let failed = end.policy.as_ref().is_some_and(|p| !matches!(p.as_str(), "ok" | "repair" | "escalate"));
            let over = tree.status.is_some_and(|status| status != RunStatus::Running);
            if failed && over {
                let failed = node.branches.kept.iter().filter(|(_, branch)| branch.failed());
                for (index, branch) in failed.take(BRANCHES) {
                    let line = branch_line(*index, branch, indent + 2, now);
                    rows.push(Row { rank: Rank::EndedBranch, line });
                }
                output_rows(node, usize::MAX, indent, rows);
            }
        }
        None => {
            rows.push(Row { rank: Rank::Open, line: open_line(tree, node, names, now) });
            asked_rows(tree, node, indent, rows);
            branch_rows(node, indent + 2, now, rows);
            output_rows(node, TAIL, indent, rows);
        }
    }
}

fn open_line(tree: &Tree, node: &Node, names: usize, now: Timestamp) -> Line {
    let mut line = Line::of(Style::Plain, &" ".repeat(indent(node)));
    match (&node.asks, tree.status) {
        (Some(_), _) => line.push(Style::Yellow, "?"),
        (None, Some(RunStatus::Running)) => line.push(Style::Cyan, spinner(now)),
        (None, _) => line.push(Style::Dim, "·"),
    }
    named(&mut line, node, names);
    if node.asks.is_some() {
        line.column(Style::Yellow, "waiting");
        return line;
    }
    if let Some(took) = node.took(now) {
        line.column(Style::Plain, &format!("{:>7}", words::duration(took)));
    }
    attempt(&mut line, node);
    line.column(Style::Plain, &node.branches.counts());
    line.column(Style::Plain, node.progress.as_deref().unwrap_or_default());
    line
}

fn ended_line(node: &Node, names: usize, now: Timestamp) -> Line {
    let mut line = Line::of(Style::Plain, &" ".repeat(indent(node)));
    let policy = node.end.as_ref().and_then(|end| end.policy.as_ref());
    let (style, sign) = policy.map_or((Style::Yellow, "✗"), words::sign);
    line.push(style, sign);
    named(&mut line, node, names);
    if let Some(took) = node.took(now) {
        line.column(Style::Plain, &format!("{:>7}", words::duration(took)));
    }
    attempt(&mut line, node);
    line.column(Style::Plain, &node.branches.counts());
    outcome(&mut line, node);
    line
}

/// Exit and policy, where they are not what one hopes for.
fn outcome(line: &mut Line, node: &Node) {
    let Some(end) = &node.end else { return };
    let Some(policy) = &end.policy else {
        line.column(Style::Yellow, "interrupted");
        return;
    };
    let (style, _) = words::sign(policy);
    if let Some(exit) = end.exit.as_ref().filter(|exit| !exit.success()) {
        line.column(style, &words::exit(exit));
    }
    if policy.as_str() != "ok" {
        line.column(style, text::head(policy.as_str(), 64));
    }
    follows(line, node);
}

/// Where a run goes on that does not go on as one expects.
pub(super) fn follows(line: &mut Line, node: &Node) {
    let to = node.end.as_ref().and_then(|end| end.to.as_ref());
    if let Some(to) = to.filter(|to| **to != node.state) {
        line.push(Style::Plain, &format!(" → {}", text::head(to, 64)));
    }
}

fn named(line: &mut Line, node: &Node, names: usize) {
    line.push(Style::Plain, " ");
    line.push(Style::Plain, &label(node));
    line.pad(names);
}

fn label(node: &Node) -> String {
    let state = text::head(&node.state, 200);
    match node.calls.as_deref() {
        Some(calls) if !calls.is_empty() => format!("{state} ({})", text::head(calls, 200)),
        _ => state.to_owned(),
    }
}

/// Which attempt it is, after the first.
pub(super) fn attempt(line: &mut Line, node: &Node) {
    if let Some(attempt) = node.attempt.filter(|attempt| *attempt > 1) {
        line.column(Style::Dim, &format!("attempt {attempt}"));
    }
}

fn asked_rows(tree: &Tree, node: &Node, indent: usize, rows: &mut Vec<Row>) {
    // The summary of a suspended run asks in full.
    let Some(asks) = node.asks.as_ref().filter(|_| tree.status == Some(RunStatus::Running)) else { return };
    let margin = " ".repeat(indent + 2);
    for question in text::head(&asks.message, 4096).lines().take(QUESTION) {
        rows.push(Row { rank: Rank::Asked, line: Line::of(Style::Plain, &margin).with(Style::Bold, question) });
    }
    let Some(run) = &tree.run else { return };
    let mut how = Line::of(Style::Plain, &margin);
    match &asks.schema {
        Some(_) => how.push(Style::Dim, &format!("answer: {} approve {run} -i KEY=VALUE", hint())),
        None => how.push(Style::Dim, &format!("decide: {} approve {run}", hint())),
    }
    rows.push(Row { rank: Rank::Asked, line: how });
}

/// All branches while they are few; of many those that run.
fn branch_rows(node: &Node, indent: usize, now: Timestamp, rows: &mut Vec<Row>) {
    let few = node.branches.started <= BRANCHES as u64;
    let shown = node.branches.kept.iter().filter(|(_, branch)| few || branch.end.is_none());
    for (index, branch) in shown.clone().take(BRANCHES) {
        let rank = if branch.end.is_some() { Rank::EndedBranch } else { Rank::Branch };
        rows.push(Row { rank, line: branch_line(*index, branch, indent, now) });
    }
    if let more @ 1.. = shown.count().saturating_sub(BRANCHES) {
        let line = Line::of(Style::Dim, &format!("{}… {more} more running", " ".repeat(indent)));
        rows.push(Row { rank: Rank::EndedBranch, line });
    }
}

fn branch_line(index: u64, branch: &Branch, indent: usize, now: Timestamp) -> Line {
    let mut line = Line::of(Style::Plain, &" ".repeat(indent));
    match &branch.end {
        None => line.push(Style::Cyan, spinner(now)),
        Some((exit, _)) if exit.success() => line.push(Style::Green, "✓"),
        Some(_) => line.push(Style::Red, "✗"),
    }
    line.push(Style::Plain, &format!(" [{index}] {}", branch.item));
    line.column(Style::Plain, &words::duration(branch.took(now)));
    if let Some((exit, _)) = branch.end.as_ref().filter(|(exit, _)| !exit.success()) {
        line.column(Style::Red, &words::exit(exit));
    }
    line.column(Style::Plain, branch.progress.as_deref().unwrap_or_default());
    line
}

fn output_rows(node: &Node, most: usize, indent: usize, rows: &mut Vec<Row>) {
    let all = node.tail.iter();
    let count = all.len();
    for (i, tail) in all.enumerate().skip(count.saturating_sub(most)) {
        let rank = if i + 1 == count { Rank::LastOutput } else { Rank::Output };
        rows.push(Row { rank, line: output_line(tail, indent + 2) });
    }
}

fn output_line(tail: &TailLine, indent: usize) -> Line {
    let line = Line::of(Style::Plain, &" ".repeat(indent));
    match &tail.by {
        By::Process(index, stream) => {
            let branch = index.map(|index| format!("[{index}] ")).unwrap_or_default();
            let (style, bar) = match stream {
                Stream::Stdout => (Style::Dim, "│ "),
                Stream::Stderr => (Style::Red, "! "),
            };
            line.with(style, bar).with(Style::Dim, &branch).with(Style::Dim, &tail.text)
        }
        By::Role(role) => line.with(Style::Cyan, &format!("{role}: ")).with(Style::Plain, &tail.text),
    }
}

/// Two columns for each level, and no more than a screen has room for.
fn indent(node: &Node) -> usize {
    2 + 2 * node.depth.min(16) as usize
}

fn spinner(now: Timestamp) -> &'static str {
    let turn = now.micros() / 100_000 % SPINNER.len() as u64;
    SPINNER.get(turn as usize).copied().unwrap_or("●")
}

/// Where the columns after the names begin.
fn name_columns(tree: &Tree, width: usize) -> usize {
    let longest = tree.nodes.iter().map(|node| indent(node) + 2 + text::width(&text::clean_line(&label(node)))).max();
    longest.unwrap_or(0).min(NAMES).min(width / 2)
}

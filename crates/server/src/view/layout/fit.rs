//! Which lines stay when there is no room for all.

use std::cmp::Reverse;

use crate::view::style::{Line, Style};

/// How much a line matters; the first the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Run,
    Open,
    Asked,
    LastOutput,
    Branch,
    Output,
    Ended,
    EndedBranch,
}

/// A line and its rank.
pub(super) struct Row {
    pub(super) rank: Rank,
    pub(super) line: Line,
}

/// Chooses the rows that stay and says how many states are left out.
pub(super) fn fit(rows: Vec<Row>, forgotten: usize, height: usize) -> Vec<Line> {
    if rows.len() + usize::from(forgotten > 0) <= height {
        return mark(rows, forgotten);
    }
    let mut order: Vec<(Rank, Reverse<usize>)> =
        rows.iter().enumerate().map(|(i, row)| (row.rank, Reverse(i))).collect();
    order.sort_unstable();
    // On the smallest of screens what runs is worth more than how much is not shown.
    let left_out = forgotten > 0 || order.iter().skip(height).any(|(rank, _)| *rank == Rank::Ended);
    let told = left_out && height > 2;
    let mut keep = vec![false; rows.len()];
    for (_, Reverse(i)) in order.into_iter().take(height - usize::from(told)) {
        if let Some(keep) = keep.get_mut(i) {
            *keep = true;
        }
    }
    let hidden = keep.iter().zip(&rows).filter(|(keep, row)| !**keep && row.rank == Rank::Ended).count();
    let rows = keep.into_iter().zip(rows).filter_map(|(keep, row)| keep.then_some(row));
    mark(rows, if told { forgotten + hidden } else { 0 })
}

/// The rows as lines, with `… 17 earlier states` after the line of the run.
fn mark(rows: impl IntoIterator<Item = Row>, left_out: usize) -> Vec<Line> {
    let mut lines: Vec<Line> = rows.into_iter().map(|row| row.line).collect();
    if left_out > 0 && !lines.is_empty() {
        let said = format!("  … {left_out} earlier {}", if left_out == 1 { "state" } else { "states" });
        lines.insert(1, Line::of(Style::Dim, &said));
    }
    lines
}

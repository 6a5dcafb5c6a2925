//! `taffrail runs`: a table of runs.

use taffrail_mcp_core::{Snapshot, Timestamp};

use super::{
    style::{Line, Style},
    text, words,
};

/// Widest cell, in columns.
const WIDEST: usize = 40;

/// The table, its head first; only a remark when there are no runs.
pub(super) fn runs(runs: &[Snapshot], now: Timestamp) -> Vec<Line> {
    if runs.is_empty() {
        return vec![Line::of(Style::Dim, "no runs")];
    }
    let head = ["RUN", "PLAYBOOK", "STATUS", "STATE", "STARTED", "ELAPSED"].map(|cell| (Style::Dim, cell.to_owned()));
    let rows: Vec<_> = std::iter::once(head).chain(runs.iter().map(|run| row(run, now))).collect();
    let widths: [usize; 6] = std::array::from_fn(|column| {
        rows.iter().filter_map(|row| row.get(column)).map(|(_, cell)| text::width(cell)).max().unwrap_or(0)
    });
    rows.iter().map(|row| line(row, &widths)).collect()
}

fn row(run: &Snapshot, now: Timestamp) -> [(Style, String); 6] {
    // Ids are for copying: they are never cut.
    let cell = |text: &str| text::cut(&text::clean_line(text::head(text, 400)), WIDEST).into_owned();
    let state = run.at.as_deref().or(run.state.as_deref()).unwrap_or("-");
    let error = run.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    [
        (Style::Plain, run.run.to_string()),
        (Style::Plain, cell(&run.playbook)),
        (words::run_sign(run.status).0, run.status.as_str().to_owned()),
        (Style::Plain, cell(&format!("{state}{error}"))),
        (Style::Plain, words::ago(run.started_at, now)),
        (Style::Plain, words::duration(run.elapsed_ms)),
    ]
}

fn line(row: &[(Style, String); 6], widths: &[usize; 6]) -> Line {
    let mut line = Line::default();
    let mut edge = 0;
    for ((style, cell), width) in row.iter().zip(widths) {
        line.pad(edge);
        line.push(*style, cell);
        edge += width + 2;
    }
    line
}

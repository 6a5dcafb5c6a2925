//! `taffrail logs`.

use std::io::{self, Write};

use anyhow::Result;
use taffrail_mcp_core::{Event, RunId, Seq, Start};
use taffrail_relay::Page;
use taffrail_runs::{LogQuery, RunsError, Service, Until};

use super::{color, watch::gap_line};
use crate::{cli, context, exit, view};

/// Records read at a time: a page of the store, not of the screen.
const PAGE: usize = 2000;
/// Likeness of a name to the one that was meant: a slip or two, a missing end.
const CLOSE: f64 = 0.85;

/// Prints a run's records, those that match, and with `-f` those that come.
pub(crate) async fn logs(common: &cli::Common, args: cli::Logs) -> Result<u8> {
    let cli::Logs { run, follow, after, tail, grep, state, stream, types, json, remote: _ } = args;
    let service = context::open(common)?;
    let run = RunId::new(&run).map_err(|_| RunsError::NoRun { run })?;
    tell_unknown_types(&types)?;
    let start = after.map_or(Start::Beginning, |after| Start::After(Seq(after)));
    let mut query = LogQuery { start, limit: PAGE, grep, state, stream, types, tail, ..LogQuery::default() };
    let mut printer = Printer::stdout(json);
    if let Some(tail) = tail {
        query = LogQuery { limit: tail, max_bytes: usize::MAX, ..query };
    }
    loop {
        let page = service.logs(&run, query.clone()).await?;
        printer.page(&page)?;
        query = LogQuery { start: Start::After(page.meta.next), tail: None, limit: PAGE, ..query };
        if page.meta.done || (!follow && (tail.is_some() || page.meta.next >= page.meta.head)) {
            return Ok(exit::DONE);
        }
        if page.meta.next >= page.meta.head {
            wait_for_more(&service, &run, page.meta.next).await?;
        }
    }
}

/// Types may be added by whoever writes a log, so a name that we do not know is only told.
pub(super) fn tell_unknown_types(types: &[String]) -> io::Result<()> {
    let unknown = types.iter().filter(|name| !Event::KINDS.contains(&name.as_str()));
    unknown.into_iter().try_for_each(|name| writeln!(io::stderr(), "taffrail: {}", unknown_type(name)))
}

fn unknown_type(name: &str) -> String {
    let said = format!("no event type `{name}` is known here");
    let likeness = |kind: &&str| strsim::jaro_winkler(name, kind);
    let best = Event::KINDS.iter().copied().max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
    match best.filter(|best| likeness(best) >= CLOSE) {
        Some(best) => format!("{said}; did you mean `{best}`?"),
        None => format!("{said}; known: {}", Event::KINDS.join(", ")),
    }
}

/// Waits until the run has more, or is over.
async fn wait_for_more(service: &Service, run: &RunId, after: Seq) -> Result<()> {
    service.wait(run, Until::RecordAfter(after)).await?;
    Ok(())
}

/// Prints records.
pub(super) struct Printer {
    json: bool,
    color: bool,
    out: io::BufWriter<io::Stdout>,
}

impl Printer {
    /// On standard output: as they are, or for people.
    pub(super) fn stdout(json: bool) -> Self {
        let stdout = io::stdout();
        Self { json, color: color(&stdout), out: io::BufWriter::new(stdout) }
    }

    fn page(&mut self, page: &Page) -> io::Result<()> {
        if let Some(gap) = &page.gap {
            self.line(gap_line(gap).as_bytes())?;
        }
        for line in &page.lines {
            self.line(line)?;
        }
        self.flush()
    }

    /// One record, or a gap.
    pub(super) fn line(&mut self, line: &[u8]) -> io::Result<()> {
        match self.json {
            true => self.out.write_all(line),
            false => view::log_line(line, self.color, &mut self.out),
        }
    }

    /// Shows what was printed.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

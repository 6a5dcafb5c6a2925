//! `taffrail logs --url`.

use std::io::{self, Write as _};

use anyhow::Result;
use futures_util::FutureExt as _;
use taffrail_mcp_core::{RunId, Seq, Start};
use taffrail_relay::{Filter, Pattern};
use taffrail_transport::client::{Client, Connection, Entry, EventPage, EventQuery, Followed};

use super::run_id;
use crate::{
    cli,
    commands::{
        Usage,
        logs::{Printer, tell_unknown_types},
        watch::gap_line,
    },
    exit,
};

/// Records asked for at a time, and their bytes: the most that a server gives.
const PAGE: (usize, usize) = (2000, 4 * 1024 * 1024);

/// Prints a run's records, those that match, and with `-f` those that come: the same as of a run here.
pub(crate) async fn logs(client: &Client, args: cli::Logs) -> Result<u8> {
    let cli::Logs { run, follow, after, tail, grep, state, stream, types, json, remote: _ } = args;
    let run = run_id(&run)?;
    if tail.is_some_and(|tail| tail > PAGE.0) {
        return Err(Usage(format!("of a server, --tail can be {} at most", PAGE.0)).into());
    }
    tell_unknown_types(&types)?;
    let filter = Filter {
        run: None,
        types: types.clone(),
        state: state.clone(),
        stream: stream.clone(),
        grep: grep.as_deref().map(Pattern::new).transpose().map_err(taffrail_runs::RunsError::from)?,
    };
    let mut printer = Printer::stdout(json);
    let start = after.map_or(Start::Beginning, |after| Start::After(Seq(after)));
    let (limit, max_bytes) = (Some(tail.unwrap_or(PAGE.0)), Some(PAGE.1));
    let mut query = EventQuery { start, limit, max_bytes, tail, grep, types, state, stream, ..EventQuery::default() };
    let mut asked = false;
    loop {
        let page = match client.events(&run, &query).await {
            Ok(page) => page,
            // Who follows goes on when the server is back.
            Err(error) if follow && asked && error.is_transient() => break,
            Err(error) => return Err(error.into()),
        };
        asked = true;
        let EventPage { entries, next, head, done, .. } = page;
        for entry in &entries {
            match entry {
                Entry::Record { line, .. } => printer.line(line)?,
                Entry::Gap(gap) => printer.line(gap_line(gap).as_bytes())?,
            }
        }
        printer.flush()?;
        if done || (!follow && (tail.is_some() || next >= head)) {
            return Ok(exit::DONE);
        }
        query = EventQuery { start: Start::After(next), tail: None, limit: Some(PAGE.0), ..query };
        if next >= head {
            break;
        }
    }
    self::follow(client, &run, query.start, &filter, printer).await
}

/// Prints what comes, until the run is over.
async fn follow(client: &Client, run: &RunId, start: Start, filter: &Filter, mut printer: Printer) -> Result<u8> {
    let mut follow = client.follow(run.clone(), start);
    loop {
        // What has come together is shown together.
        let item = match follow.next().now_or_never() {
            Some(item) => item,
            None => {
                printer.flush()?;
                follow.next().await
            }
        };
        match item.transpose()? {
            Some(Followed::Record { line, .. }) if filter.passes(&line) => printer.line(&line)?,
            Some(Followed::Record { .. }) => {}
            Some(Followed::Gap(gap)) => printer.line(gap_line(&gap).as_bytes())?,
            Some(Followed::Connection(connection)) => {
                printer.flush()?;
                writeln!(io::stderr(), "taffrail: {}", said(&connection))?;
            }
            Some(Followed::End(_)) | None => {
                printer.flush()?;
                return Ok(exit::DONE);
            }
        }
    }
}

/// What became of the connection, for people.
pub(super) fn said(connection: &Connection) -> String {
    match connection {
        Connection::Lost { why } => format!("{why}; trying again"),
        Connection::Polling => "live streams do not come through; the log is asked for page by page".to_owned(),
        Connection::Restored => "the connection is back".to_owned(),
    }
}

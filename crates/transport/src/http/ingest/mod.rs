//! Ingest: events of runs that happen elsewhere.
//!
//! A body is one JSON object a line. It is taken in as it comes, in bounded memory: [`intake`] makes events of it, without
//! I/O, and this hands them to the run's log, a part of a long body at a time. What is whole and right is kept, whatever
//! comes after it; the answer says how much that is.

mod carried;
mod intake;
mod producer;
pub(super) mod wire;

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, Uri, header},
    response::Response,
    routing::post,
};
use http_body_util::BodyExt as _;
use taffrail_mcp_core::{RunId, RunKind, Timestamp};
use taffrail_relay::{Arrival, Numbered, RelayError, StoreError};
use taffrail_runs::{Ingested, RunsError, Service};
use tokio::time::{Instant, sleep, timeout_at};

pub(super) use self::producer::{HEADER, read as producer};
use self::{
    carried::CarriedOut,
    intake::{BadLine, Intake},
    wire::IngestAnswer,
};
use super::{
    api::{PathId, json},
    app::App,
    code::Code,
    params::{Params, shown},
    paths,
    problem::Problem,
};

/// Largest body, in bytes. It is not held as a whole: the limit is there so that every request has an end.
const BODY_BYTES: u64 = 64 * 1024 * 1024;

/// Events are handed over when they have this many bytes: two blocks of a log.
const HAND_OVER_BYTES: usize = 512 * 1024;

/// When a body whose length is told stops for this long, what has come is handed over. Before that it is not, so that a
/// usual batch is stored at once, and in one commit.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long events wait for a store that fails before their sender is told. It says why, and when to come again; a wait to
/// the end of the request's time would not.
const STORE_PATIENCE: Duration = Duration::from_secs(10);

/// Media types of bodies that are one JSON object a line. `application/json` because that is what most clients say
/// whatever they send; one object is one line.
const TYPES: [&str; 6] = [
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonlines",
    "application/jsonlines",
    "application/json",
];

/// The routes of ingest.
pub(super) fn routes() -> Router<App> {
    Router::new().route(paths::RUN_EVENTS, post(events))
}

/// `POST /api/v1/runs/{run}/events`.
async fn events(
    State(app): State<App>,
    PathId(run): PathId<RunKind>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    Params::of(&uri)?.finish()?;
    check_type(&headers)?;
    let numbered = producer::read(&headers)?;
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    // The gate ends a request that takes too long without a word about what was kept.
    let deadline = Instant::now() + app.config().limits.request_time.mul_f64(0.9);
    let taking = Taking {
        service: app.service().clone(),
        intake: Intake::new(run.clone()),
        run,
        numbered,
        answer: IngestAnswer::default(),
        external: None,
    };
    let taken = CarriedOut::new(taking.take(body, length, deadline)).await;
    taken.map(|answer| json(&answer))
}

/// The body is one that is read here.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(encoding) = headers.get(header::CONTENT_ENCODING) {
        let encoding = String::from_utf8_lossy(encoding.as_bytes());
        if !encoding.trim().eq_ignore_ascii_case("identity") {
            let detail = format!("the Content-Encoding is {}: send the body without one", shown(&encoding));
            return Err(Problem::new(Code::WrongContentType, detail));
        }
    }
    let Some(given) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let given = String::from_utf8_lossy(given.as_bytes());
    let essence = given.split(';').next().unwrap_or_default().trim();
    if TYPES.iter().any(|known| known.eq_ignore_ascii_case(essence)) {
        return Ok(());
    }
    let detail = format!(
        "the Content-Type is {}: send events as lines of JSON, with Content-Type: application/x-ndjson",
        shown(&given)
    );
    Err(Problem::new(Code::WrongContentType, detail))
}

/// One body being taken in.
struct Taking {
    service: Service,
    run: RunId,
    intake: Intake,
    /// The number of the next event, when its producer numbers them.
    numbered: Option<Numbered>,
    answer: IngestAnswer,
    /// Whether the run lives elsewhere, once that was asked.
    external: Option<bool>,
}

/// Why no more of a body is taken.
enum Stop {
    /// A line is not an event.
    Line(BadLine),
    /// An event that only the run's host may write.
    NotExternal { line: u64, error: RunsError },
    /// The log does not take it.
    Refused(RunsError),
    /// The body is too large.
    TooLarge,
    /// The body did not come whole.
    Broken(axum::Error),
    /// It took too long.
    TooSlow,
}

impl From<BadLine> for Stop {
    fn from(bad: BadLine) -> Self {
        Self::Line(bad)
    }
}

impl From<RunsError> for Stop {
    fn from(error: RunsError) -> Self {
        Self::Refused(error)
    }
}

impl Taking {
    async fn take(mut self, mut body: Body, length: Option<u64>, deadline: Instant) -> Result<IngestAnswer, Problem> {
        if length.is_some_and(|length| length > BODY_BYTES) {
            return Err(self.problem(Stop::TooLarge));
        }
        let read = self.read(&mut body, length.is_some(), deadline).await;
        let stop = match read {
            // A run that is asked for nothing is told that its producer lives, and has to be there.
            Ok(()) => self.hand_over(true).await.err(),
            Err(stop @ Stop::Refused(_)) => Some(stop),
            // What came before that is kept. Should even that be refused, it is the first thing that is wrong.
            Err(stop) => Some(self.hand_over(false).await.err().unwrap_or(stop)),
        };
        let Some(stop) = stop else { return Ok(self.answer) };
        Err(self.problem(stop))
    }

    /// Reads the body to its end; hands events over when they are many, or when nothing more comes for now.
    async fn read(&mut self, body: &mut Body, whole: bool, deadline: Instant) -> Result<(), Stop> {
        let mut size = 0;
        loop {
            let waits = self.intake.bytes() > 0;
            let frame = tokio::select! {
                biased;
                frame = timeout_at(deadline, body.frame()) => frame.map_err(|_| Stop::TooSlow)?,
                () = patience(whole), if waits => {
                    self.hand_over(false).await?;
                    continue;
                }
            };
            let Some(frame) = frame else { break };
            let Ok(data) = frame.map_err(Stop::Broken)?.into_data() else { continue };
            size += data.len() as u64;
            if size > BODY_BYTES {
                return Err(Stop::TooLarge);
            }
            self.intake.feed(&data)?;
            if self.intake.bytes() >= HAND_OVER_BYTES {
                self.hand_over(false).await?;
            }
        }
        Ok(self.intake.finish()?)
    }

    /// Hands over the events that have come; also none, when `always` and nothing was handed over yet.
    async fn hand_over(&mut self, always: bool) -> Result<(), Stop> {
        let mut refused = None;
        if let Some(folding) = self.intake.folding().cloned()
            && !self.is_external().await?
        {
            self.intake.cut(&folding);
            let error = RunsError::NotExternal { run: self.run.clone(), kind: folding.kind };
            refused = Some(Stop::NotExternal { line: folding.line, error });
        }
        let parts = self.intake.take();
        let count: u64 = parts.iter().map(|(_, batch)| batch.len()).sum();
        if count > 0 || (always && self.answer.kept() == 0 && refused.is_none()) {
            let arrival = Arrival { parts, numbered: self.numbered.clone() };
            let Ingested { receipt, cancel } = tokio::select! {
                biased;
                ingested = self.service.ingest(&self.run, arrival) => ingested?,
                // It may be stored all the same, later: sent again with its numbers, it is known then.
                () = self.service.store_given_up(STORE_PATIENCE) => return Err(self.store_failed().into()),
            };
            self.answer.add(receipt);
            self.answer.cancel = cancel;
            if let Some(numbered) = &mut self.numbered {
                numbered.first = numbered.first.saturating_add(count);
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn store_failed(&self) -> RunsError {
        let why = self.service.relay().health().borrow().clone();
        RelayError::Store(why.unwrap_or(StoreError::Closed)).into()
    }

    async fn is_external(&mut self) -> Result<bool, RunsError> {
        if let Some(external) = self.external {
            return Ok(external);
        }
        let external = self.service.fold(&self.run).await?.external;
        self.external = Some(external);
        Ok(external)
    }

    /// The answer to a mistake: what is wrong, and how much was kept before it.
    fn problem(&self, stop: Stop) -> Problem {
        let kept = match self.answer.kept() {
            0 => "nothing of it was kept".to_owned(),
            1 => "the event before that is kept".to_owned(),
            kept => format!("the {kept} events before that are kept"),
        };
        let problem = match stop {
            Stop::Line(BadLine { line, column, what }) => {
                let code = match what {
                    intake::WrongLine::TooLong => Code::TooLarge,
                    intake::WrongLine::AfterEnd { .. } => Code::RunOver,
                    _ => Code::BadLine,
                };
                let detail = format!("line {line}, column {column}: {what}; {kept}");
                Problem::new(code, detail).with("line", line).with("column", column)
            }
            Stop::NotExternal { line, error } => {
                Problem::new(Problem::from(error.clone()).code(), format!("line {line}: {error}; {kept}"))
                    .with("line", line)
            }
            Stop::Refused(error) => return self.kept(error.into()),
            Stop::TooLarge => {
                let detail = format!("the body is larger than {BODY_BYTES} bytes, the most that is taken; {kept}");
                Problem::new(Code::TooLarge, detail).with("limit", BODY_BYTES)
            }
            Stop::Broken(error) => {
                Problem::new(Code::BadBody, format!("the body did not arrive whole: {error}; {kept}"))
            }
            Stop::TooSlow => Problem::new(Code::TooSlow, format!("the body took too long to arrive; {kept}")),
        };
        match &self.numbered {
            Some(next) => self.kept(problem).with("expected", next.first.get()),
            None => self.kept(problem),
        }
    }

    /// Adds how much was kept.
    fn kept(&self, problem: Problem) -> Problem {
        let IngestAnswer { first, last, stored, known, cancel: _ } = &self.answer;
        let [first, last] = [first, last].map(|seq| seq.map(|seq| seq.0));
        problem.with("stored", *stored).with("known", *known).with("first", first).with("last", last)
    }
}

/// How long the rest of a body is waited for before what has come is handed over: when it is not known that there is
/// more, not at all.
async fn patience(whole: bool) {
    if whole {
        sleep(PATIENCE).await;
    }
}

/// The bodies of events that came together, and when they say they happened.
pub(super) type EventsAt = (Option<Timestamp>, Vec<u8>);

/// What becomes of a body that comes in these pieces: the bodies of its events by their times, and whether all of it was
/// right. For [`super::entry`].
pub(super) fn entry<'a>(
    run: &RunId,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<EventsAt>, Result<(), String>) {
    let mut intake = Intake::new(run.clone());
    let result = pieces.into_iter().try_for_each(|piece| intake.feed(piece)).and_then(|()| intake.finish());
    let parts = intake.take().into_iter().map(|(ts, batch)| (ts, batch.bodies().to_vec())).collect();
    (parts, result.map_err(|bad| format!("{bad:?}")))
}

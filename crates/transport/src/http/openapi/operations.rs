//! What each route takes and answers.

use utoipa::openapi::{HttpMethod, Paths, PathsBuilder};

use super::build::{Route, content, text};
use crate::http::{
    api::limits::{LISTED, MOST_BYTES, MOST_LISTED, MOST_RECORDS, MOST_WAIT_MS},
    code::Code,
    paths,
};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// What reading a body can bring.
const BODY: [Code; 3] = [Code::BadBody, Code::TooLarge, Code::WrongContentType];
/// What the store can bring.
const STORE: [Code; 2] = [Code::Unavailable, Code::Closing];

/// All of them.
pub(super) fn paths() -> Paths {
    let routes =
        [start(), runs(), run(), page(), ingest(), thread_stream(), run_stream(), approve(), resume(), cancel(), mcp()];
    let routes = routes.into_iter().chain(system()).chain(browser());
    routes.fold(PathsBuilder::new(), |paths, route| route.add(paths)).build()
}

fn get(path: &'static str, id: &str, summary: &str) -> Route {
    Route::new(HttpMethod::Get, path, id, summary)
}

fn post(path: &'static str, id: &str, summary: &str) -> Route {
    Route::new(HttpMethod::Post, path, id, summary)
}

fn start() -> Route {
    post(paths::THREAD_RUNS, "startRun", "Start a run that logs to a thread")
        .about(
            "The run goes on whoever waits for it. With `phase: console_turn` the answer is a stream of its records, as \
             of `/api/v1/runs/{run}/stream`, which ends at a suspension, too.",
        )
        .body("StartBody", true)
        .answers(202, "Started", "The snapshot of the run, and in `Location` where to ask for it again.")
        .answers_as(200, &[(EVENTS, text())], "The records of the run, then an event `end` with its snapshot.")
        .problems(&BODY)
        .problems(&[
            Code::BadParameter,
            Code::BadId,
            Code::BadKey,
            Code::BadName,
            Code::NoPlaybook,
            Code::NotAcceptable,
            Code::KeyReused,
            Code::BadInputs,
            Code::BadPlaybook,
            Code::TooManyStreams,
        ])
        .problems(&STORE)
}

fn runs() -> Route {
    get(paths::RUNS, "listRuns", "List runs, newest first")
        .list("status", "Only runs of these states.")
        .text("thread", "Only runs of this thread.")
        .number("limit", 1, MOST_LISTED, Some(LISTED), "At most this many.")
        .text("before", "Only runs started before this one: the `before` of the last page.")
        .answers(200, "RunList", "Snapshots.")
        .problems(&[Code::BadParameter, Code::BadId, Code::NotAcceptable])
        .problems(&STORE)
}

fn run() -> Route {
    get(paths::RUN, "getRun", "Get a run's snapshot, at once or after a change")
        .number("after", 0, u64::MAX, None, "With `wait_ms`: a position; what changed after it ends the wait.")
        .number("wait_ms", 0, MOST_WAIT_MS, Some(0), "How long to wait for a change, in milliseconds.")
        .answers(200, "Snapshot", "The snapshot.")
        .problems(&[
            Code::BadParameter,
            Code::BadCursor,
            Code::BadId,
            Code::NoRun,
            Code::NotAcceptable,
            Code::CursorAhead,
        ])
        .problems(&STORE)
}

fn page() -> Route {
    get(paths::RUN_EVENTS, "readRun", "Read a page of a run's log")
        .text("after", "A position: the page begins after it. `live`: with what comes from now on.")
        .number("limit", 1, MOST_RECORDS, Some(taffrail_relay::PageQuery::LIMIT as u64), "At most this many records.")
        .number(
            "max_bytes",
            1,
            MOST_BYTES,
            Some(taffrail_relay::PageQuery::MAX_BYTES as u64),
            "At most this many bytes of records; one record comes however large it is.",
        )
        .number("wait_ms", 0, MOST_WAIT_MS, Some(0), "How long to wait for a first record, in milliseconds.")
        .list("types", "Only these event types.")
        .text("state", "Only records about this state.")
        .word("stream", &["stdout", "stderr"], "Only this stream of process output.")
        .text("grep", "Only what matches this regular expression: the text of `log` and `message`, the JSON of others.")
        .number("tail", 1, MOST_RECORDS, None, "The last so many that match, instead of the first.")
        .answers(200, "Page", "Records, and where to go on.")
        .problems(&[
            Code::BadParameter,
            Code::BadCursor,
            Code::BadId,
            Code::BadPattern,
            Code::NoRun,
            Code::NotAcceptable,
            Code::CursorAhead,
        ])
        .problems(&STORE)
}

fn ingest() -> Route {
    post(paths::RUN_EVENTS, "sendEvents", "Send events of a run that happens elsewhere")
        .about("One JSON object a line. Whole lines before a mistake are kept; the answer says how far that is.")
        .header(
            "Taffrail-Producer",
            "`<id>:<number of the first event>`: who numbers these events, from 1 without a hole. Makes a repeated \
             request harmless.",
        )
        .body_as("application/x-ndjson", text(), true)
        .answers(200, "Ingested", "Where they are in the log.")
        .problems(&BODY)
        .problems(&[
            Code::BadParameter,
            Code::BadId,
            Code::BadProducer,
            Code::BadLine,
            Code::NoRun,
            Code::Hole,
            Code::RunOver,
            Code::TooManyProducers,
            Code::NotExternal,
            Code::Overloaded,
        ])
        .problems(&STORE)
}

fn stream(route: Route) -> Route {
    route
        .header("Last-Event-ID", "The last position that was seen; wins over `after`.")
        .text("after", "The same in the URL; `live`: only what comes from now on.")
        .list("types", "Only these event types.")
        .text("state", "Only records about this state.")
        .problems(&[Code::BadParameter, Code::BadCursor, Code::BadId, Code::NotAcceptable, Code::CursorAhead])
        .problems(&[Code::TooManyStreams])
        .problems(&STORE)
}

fn thread_stream() -> Route {
    let route = get(paths::THREAD_STREAM, "followThread", "Follow a thread, for ever")
        .about("`id` is the position, `data` the record. What cannot be had any more is an event `gap`.")
        .answers_as(200, &[(EVENTS, text())], "Records.");
    stream(route)
}

fn run_stream() -> Route {
    let route = get(paths::RUN_STREAM, "followRun", "Follow a run to its end")
        .about("As of a thread; after the last record comes an event `end` with the run's snapshot.")
        .answers_as(200, &[(EVENTS, text())], "Records, then `end`.")
        .answers_as(204, &[], "The run is over, and its last record was seen.")
        .problems(&[Code::NoRun]);
    stream(route)
}

fn approve() -> Route {
    post(paths::APPROVAL, "decide", "Decide an approval, or answer a question")
        .about("The run goes on when it is resumed.")
        .body("ApproveBody", true)
        .answers(200, "Snapshot", "The snapshot, with the decision in `approval`.")
        .problems(&BODY)
        .problems(&[
            Code::BadParameter,
            Code::BadId,
            Code::NoRun,
            Code::NotAcceptable,
            Code::WrongState,
            Code::ExternalRun,
            Code::NotWaitingFor,
            Code::AlreadyDecided,
            Code::HashMoved,
            Code::NotSeen,
            Code::BadAnswer,
        ])
        .problems(&STORE)
}

fn resume() -> Route {
    post(paths::RESUME, "resumeRun", "Go on with a suspended or interrupted run")
        .body("ResumeBody", false)
        .answers(200, "Snapshot", "The snapshot.")
        .problems(&BODY)
        .problems(&[
            Code::BadParameter,
            Code::BadId,
            Code::HumanOnly,
            Code::NoRun,
            Code::NotAcceptable,
            Code::WrongState,
            Code::ExternalRun,
            Code::CheckpointUsed,
            Code::NoCheckpoint,
            Code::Undecided,
            Code::BadAnswer,
        ])
        .problems(&STORE)
}

fn cancel() -> Route {
    post(paths::CANCEL, "cancelRun", "End a run")
        .about("Answers when its processes are gone. A run that is over stays as it is.")
        .body("CancelBody", false)
        .answers(200, "Snapshot", "The snapshot.")
        .problems(&BODY)
        .problems(&[Code::BadParameter, Code::BadId, Code::NoRun, Code::NotAcceptable])
        .problems(&STORE)
}

fn mcp() -> Route {
    post(paths::MCP, "mcp", "MCP's Streamable HTTP, without sessions")
        .about("Messages and tools are those of the Model Context Protocol; `tools.json` of the published schemas lists the tools.")
        .body_as(JSON, content("Message"), true)
        .answers_as(200, &[(JSON, content("Message")), (EVENTS, text())], "The response, or a stream that ends with it.")
        .answers_as(202, &[], "A notification was taken.")
        .problems(&[Code::TooLarge, Code::WrongContentType, Code::NotAcceptable])
}

fn system() -> Vec<Route> {
    let page = |path, id, summary, form| get(path, id, summary).answers_as(200, &[(form, text())], "As it is.");
    vec![
        get(paths::HEALTH, "health", "Whether the process answers").answers(200, "Health", "It does."),
        get(paths::READY, "ready", "Whether the process can do its work")
            .answers(200, "Health", "It can.")
            .problems(&[Code::Unavailable]),
        page(paths::METRICS, "metrics", "What is counted, for Prometheus", "application/openmetrics-text"),
        page(paths::OPENAPI, "openapi", "This document", JSON),
        page(paths::JWKS, "keys", "Public keys of run tokens", JSON),
    ]
}

fn browser() -> Vec<Route> {
    let page = |path, id, summary, form| get(path, id, summary).answers_as(200, &[(form, text())], "As it is.");
    vec![
        page(paths::PAGE, "page", "A page that lists runs and follows one", "text/html"),
        page(paths::PAGE_SCRIPT, "pageScript", "Its script", "text/javascript"),
        page(paths::PAGE_STYLE, "pageStyle", "Its style", "text/css"),
        get(paths::LOGIN, "signInByCode", "Sign a browser in with the code of the printed URL")
            .text("code", "Works once.")
            .answers_as(303, &[], "Signed in, by a cookie.")
            .problems(&[Code::BadParameter, Code::Unauthorized]),
        post(paths::LOGIN, "signInByToken", "Sign a browser in with the operator token")
            .body("LoginBody", true)
            .answers_as(204, &[], "Signed in, by a cookie.")
            .problems(&BODY)
            .problems(&[Code::Unauthorized]),
        post(paths::LOGOUT, "signOut", "Forget the cookie").answers_as(204, &[], "Signed out."),
    ]
}

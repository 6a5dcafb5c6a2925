//! The stable codes of problems. The one home of their names, states and titles; `docs/http.md` lists them.

use axum::http::StatusCode;

/// Declares the codes, so that none can lack a name, a status or a title.
macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $status:ident, $title:literal;)*) => {
        /// What went wrong, as programs tell it apart. Names never change their meaning.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// All of them.
            pub(crate) const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The name on the wire; kebab-case.
            pub(crate) const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// The status it is answered with.
            pub(crate) const fn status(self) -> StatusCode {
                match self { $(Code::$variant => StatusCode::$status,)* }
            }

            /// A few words for people; the same for every problem with this code.
            pub(crate) const fn title(self) -> &'static str {
                match self { $(Code::$variant => $title,)* }
            }
        }
    };
}

codes! {
    /// A parameter of the URL or a header is not what it can be; `parameter` names it.
    BadParameter = "bad-parameter", BAD_REQUEST, "A parameter is wrong";
    /// A cursor is not an integer from 0 on.
    BadCursor = "bad-cursor", BAD_REQUEST, "The cursor is not one";
    /// An id of a run or a thread cannot be one.
    BadId = "bad-id", BAD_REQUEST, "The id is not one";
    /// The pattern of `grep` is not a regular expression.
    BadPattern = "bad-pattern", BAD_REQUEST, "The pattern is not a regular expression";
    /// The body is not JSON, or not of the shape that is wanted here.
    BadBody = "bad-body", BAD_REQUEST, "The body is not what is wanted here";
    /// The header `Taffrail-Producer` is missing or wrong.
    BadProducer = "bad-producer", BAD_REQUEST, "The producer is not one";
    /// A line of ingested events is not an event; `line` says which.
    BadLine = "bad-line", BAD_REQUEST, "A line is not an event";
    /// An idempotency key is empty or too long.
    BadKey = "bad-key", BAD_REQUEST, "The idempotency key is not one";
    /// The name of an external run is empty or too long.
    BadName = "bad-name", BAD_REQUEST, "The name is not one";
    /// There is no operator token, or a wrong one.
    Unauthorized = "unauthorized", UNAUTHORIZED, "Sign in first";
    /// The `Host` is not one that this server answers to.
    UnknownHost = "unknown-host", FORBIDDEN, "This server has another name";
    /// The `Origin` is not one that this server answers to.
    UnknownOrigin = "unknown-origin", FORBIDDEN, "Pages of this origin may not ask";
    /// Only a person may decide.
    HumanOnly = "human-only", FORBIDDEN, "A person has to decide";
    /// There is nothing at this path.
    NoRoute = "no-route", NOT_FOUND, "There is nothing here";
    /// There is no such run.
    NoRun = "no-run", NOT_FOUND, "There is no such run";
    /// There is no such playbook.
    NoPlaybook = "no-playbook", NOT_FOUND, "There is no such playbook";
    /// The path is there, but not for this method; `Allow` lists those it has.
    MethodNotAllowed = "method-not-allowed", METHOD_NOT_ALLOWED, "Not with this method";
    /// What is here comes in no form that `Accept` allows.
    NotAcceptable = "not-acceptable", NOT_ACCEPTABLE, "Not in a form that you accept";
    /// The request did not arrive in time.
    TooSlow = "too-slow", REQUEST_TIMEOUT, "The request took too long";
    /// The cursor is past the last record; `head` tells that.
    CursorAhead = "cursor-ahead", CONFLICT, "The cursor is past the end";
    /// The idempotency key started something else.
    KeyReused = "key-reused", CONFLICT, "The idempotency key was used for something else";
    /// The run is not in a state in which this can be done.
    WrongState = "wrong-state", CONFLICT, "Not while the run is in this state";
    /// The run happens elsewhere: only its producer can do this.
    ExternalRun = "external-run", CONFLICT, "The run happens elsewhere";
    /// The run does not happen elsewhere: events of this type come from the process that runs it.
    NotExternal = "not-external", CONFLICT, "The run does not happen elsewhere";
    /// The checkpoint was used, or the run has a later one.
    CheckpointUsed = "checkpoint-used", CONFLICT, "The checkpoint is used up";
    /// The run waits for something else.
    NotWaitingFor = "not-waiting-for", CONFLICT, "The run does not wait for this";
    /// Somebody decided before.
    AlreadyDecided = "already-decided", CONFLICT, "It was decided already";
    /// What would happen is not what was looked at.
    HashMoved = "hash-moved", CONFLICT, "What would happen has changed";
    /// The decider has not seen what the decision is about.
    NotSeen = "not-seen", CONFLICT, "Read the log first";
    /// The run waits for a decision or an answer, and none was given.
    Undecided = "undecided", CONFLICT, "The run waits for a decision";
    /// Events of this producer are missing before these; `expected` is the number that comes next.
    Hole = "hole", CONFLICT, "Events are missing";
    /// The run is over and takes no more events.
    RunOver = "run-over", CONFLICT, "The run is over";
    /// The run has as many producers as it may have.
    TooManyProducers = "too-many-producers", CONFLICT, "Too many producers";
    /// The run has no checkpoint to go on from.
    NoCheckpoint = "no-checkpoint", CONFLICT, "The run cannot be resumed";
    /// The body, or a line of it, is too large.
    TooLarge = "too-large", PAYLOAD_TOO_LARGE, "Too large";
    /// The body is of a type that is not read here.
    WrongContentType = "wrong-content-type", UNSUPPORTED_MEDIA_TYPE, "Not a body of this type";
    /// The inputs do not fit the playbook.
    BadInputs = "bad-inputs", UNPROCESSABLE_ENTITY, "The inputs do not fit";
    /// The playbook has errors.
    BadPlaybook = "bad-playbook", UNPROCESSABLE_ENTITY, "The playbook has errors";
    /// The answer or decision does not fit.
    BadAnswer = "bad-answer", UNPROCESSABLE_ENTITY, "The answer does not fit";
    /// One client asks more often than it may.
    TooManyRequests = "too-many-requests", TOO_MANY_REQUESTS, "Too many requests";
    /// The request's head is too large.
    HeadTooLarge = "head-too-large", REQUEST_HEADER_FIELDS_TOO_LARGE, "The request's head is too large";
    /// A mistake of ours.
    Internal = "internal", INTERNAL_SERVER_ERROR, "Internal error";
    /// As many connections are open as may be.
    TooManyConnections = "too-many-connections", SERVICE_UNAVAILABLE, "Too many connections";
    /// As many streams are open as may be.
    TooManyStreams = "too-many-streams", SERVICE_UNAVAILABLE, "Too many streams";
    /// More is waiting to be written than memory should hold.
    Overloaded = "overloaded", SERVICE_UNAVAILABLE, "Too much is waiting to be stored";
    /// The store, or a folder, cannot be used at the moment.
    Unavailable = "unavailable", SERVICE_UNAVAILABLE, "Not available at the moment";
    /// The server is shutting down.
    Closing = "closing", SERVICE_UNAVAILABLE, "The server is shutting down";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_listed_for_people_and_nothing_else() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, rest) = text.split_once("\n## Problems\n").unwrap();
        let section = rest.split("\n## ").next().unwrap();
        // | 400 | `bad-parameter` | … |
        let listed = section.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            let status = cells.next()?.parse::<u16>().ok()?;
            Some((status, cells.next()?.trim_matches('`').to_owned()))
        });
        let listed: Vec<_> = listed.collect();
        let there: Vec<_> = Code::ALL.iter().map(|code| (code.status().as_u16(), code.as_str().to_owned())).collect();
        assert_eq!(listed, there);
    }
}

//! Mistakes of callers: each gets a 4xx that says what is wrong, where, and what to do.

use axum::{body::Body, http::Method};
use serde_json::json;

use super::ground::Ground;

#[tokio::test]
async fn parameters_are_named_with_their_range() {
    let ground = Ground::new();
    let run = ground.run("lines").await;
    let of_run = |tail: &str| format!("/api/v1/runs/{run}{tail}");
    let table = [
        (of_run("/events?limit=0"), "bad-parameter", "limit is \"0\": give an integer from 1 to 2000"),
        (of_run("/events?limit=2001"), "bad-parameter", "limit is \"2001\": give an integer from 1 to 2000"),
        (of_run("/events?max_bytes=x"), "bad-parameter", "max_bytes is \"x\": give an integer from 1 to 4194304"),
        (of_run("/events?wait_ms=30001"), "bad-parameter", "wait_ms is \"30001\": give an integer from 0 to 30000"),
        (of_run("/events?tail=-1"), "bad-parameter", "tail is \"-1\": give an integer from 1 to 2000"),
        (of_run("/events?stream=both"), "bad-parameter", "stream is \"both\": give one of stdout, stderr"),
        (of_run("/events?after=-1"), "bad-cursor", "after: \"-1\" is not a cursor: give an integer from 0 on"),
        (of_run("/events?after=1.5"), "bad-cursor", "after: \"1.5\" is not a cursor: give an integer from 0 on"),
        (of_run("/events?after="), "bad-cursor", "after: \"\" is not a cursor: give an integer from 0 on"),
        (of_run("/events?grep=a("), "bad-pattern", "the pattern of grep is not a regular expression"),
        (
            of_run("/events?afte=1"),
            "bad-parameter",
            "there is no parameter \"afte\": there are after, limit, max_bytes",
        ),
        (of_run("/events?after=1&after=2"), "bad-parameter", "after is given more than once"),
        (of_run("?wait_ms=-5"), "bad-parameter", "wait_ms is \"-5\": give an integer from 0 to 30000"),
        (of_run("?after=x"), "bad-cursor", "after: \"x\" is not a cursor"),
        (
            "/api/v1/runs?status=finished".to_owned(),
            "bad-parameter",
            "status has \"finished\": give running, suspended",
        ),
        ("/api/v1/runs?limit=501".to_owned(), "bad-parameter", "limit is \"501\": give an integer from 1 to 500"),
        ("/api/v1/runs?thread=..".to_owned(), "bad-id", "thread: "),
        ("/api/v1/runs?before=%2F".to_owned(), "bad-id", "before: "),
        ("/api/v1/runs/..a".to_owned(), "bad-id", "run: "),
        ("/api/v1/runs/%FF".to_owned(), "bad-id", "the path cannot be read"),
    ];
    for (path, code, detail) in table {
        let told = ground.get(&path).await.problem(400, code);
        assert!(told.contains(detail), "{path}: {told}");
    }
    let named = ground.get(&of_run("/events?limit=0")).await.json();
    assert_eq!(named["parameter"], "limit");
    // However large: it is a number past the end.
    let ahead = ground.get(&of_run("/events?after=99999999999999999999999")).await;
    ahead.problem(409, "cursor-ahead");
    let ahead = ground.get(&of_run("/events?after=1000")).await;
    assert!(ahead.problem(409, "cursor-ahead").contains("cursor 1000 is past the end of thread t"));
    assert!(ahead.json()["head"].as_u64().unwrap() < 1000);
}

#[tokio::test]
async fn bodies_are_read_strictly() {
    let ground = Ground::new();
    let start = "/api/v1/threads/t/runs";
    let run = ground.run("gate").await;
    let approve = format!("/api/v1/runs/{run}/approvals/x");
    let cancel = format!("/api/v1/runs/{run}/cancel");
    let table = [
        (start, "{", "bad-body", "the body is not JSON: EOF while parsing"),
        (start, "[1]", "bad-body", "the body is a JSON array: send an object"),
        (start, "7", "bad-body", "invalid type: integer `7`"),
        (start, "", "bad-body", "what to run is missing"),
        (start, "{}", "bad-body", "what to run is missing"),
        (start, r#"{"playbok":"lines"}"#, "bad-body", "unknown field `playbok`, expected one of `playbook`, `inputs`"),
        (start, r#"{"playbook":"lines","phase":"x"}"#, "bad-body", "unknown variant `x`, expected `console_turn`"),
        (start, r#"{"playbook":"lines","inputs":[]}"#, "bad-body", "invalid type: sequence, expected a map"),
        (start, r#"{"playbook":"lines","external":true}"#, "bad-body", "give one"),
        (start, r#"{"playbook":"lines","name":"x"}"#, "bad-body", "`name` is for external runs"),
        (start, r#"{"external":true}"#, "bad-body", "an external run needs a `name`"),
        (start, r#"{"external":true,"name":""}"#, "bad-name", "a run's name has 1 to"),
        (start, r#"{"playbook":"lines","idempotency_key":""}"#, "bad-key", "has 1 to 256 characters, this one has 0"),
        (approve.as_str(), r#"{"decision":"maybe","hash":"x","seen_seq":1}"#, "bad-body", "unknown variant `maybe`"),
        (approve.as_str(), r#"{"decision":"approve","seen_seq":1}"#, "bad-body", "missing field `hash`"),
        (
            approve.as_str(),
            r#"{"decision":"approve","hash":"x","seen_seq":-1}"#,
            "bad-body",
            "invalid value: integer `-1`",
        ),
        (cancel.as_str(), r#"{"why":"x"}"#, "bad-body", "unknown field `why`, expected `reason` or `kill`"),
        ("/login", r#"{"token":1}"#, "bad-body", "invalid type: integer `1`, expected a string"),
    ];
    for (path, body, code, detail) in table {
        let headers = [("content-type", "application/json")];
        let told = ground.send(Method::POST, path, &headers, Body::from(body)).await.problem(400, code);
        assert!(told.contains(detail), "{path} {body}: {told}");
    }
    let inputs = ground.post(start, json!({"playbook": "lines", "inputs": {"n": "many", "m": 1}})).await;
    let told = inputs.problem(422, "bad-inputs");
    assert!(told.contains("playbook lines: ") && told.contains('m'), "{told}");
    let none = ground.post(start, json!({"external": true, "name": "x", "inputs": {"a": 1}})).await;
    assert!(none.problem(422, "bad-inputs").contains("an external run takes no inputs"));
    std::fs::write(ground.dir.path().join("playbooks/broken.yaml"), "playbook: broken\nstates: 7\n").unwrap();
    ground.post(start, json!({"playbook": "broken"})).await.problem(422, "bad-playbook");
    assert!(ground.post(start, json!({"playbook": "nope"})).await.problem(404, "no-playbook").contains("nope"));
    // A path means nothing to who does not share the disk.
    let path = ground.dir.path().join("playbooks/lines.yaml");
    let told = ground.post(start, json!({"playbook": path})).await;
    assert!(told.status.is_client_error(), "{told:?}");
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_not_there() {
    let ground = Ground::new();
    for path in ["/api/v1/runs/nobody", "/api/v1/runs/nobody/events"] {
        assert!(ground.get(path).await.problem(404, "no-run").contains("no run nobody"));
    }
    for path in ["/api/v1/runs/nobody/cancel", "/api/v1/runs/nobody/resume"] {
        ground.post(path, json!({})).await.problem(404, "no-run");
    }
    for path in ["/nope", "/api", "/api/v2/runs", "/api/v1/runs/", "/api/v1/runs/a/b/c", "/mcp/"] {
        assert!(ground.get(path).await.problem(404, "no-route").contains(path));
    }
}

#[tokio::test]
async fn methods_forms_and_types_that_do_not_fit() {
    let ground = Ground::new();
    for (method, path, allow) in [
        (Method::PUT, "/api/v1/runs", "GET,HEAD"),
        (Method::DELETE, "/api/v1/runs/x", "GET,HEAD"),
        (Method::GET, "/api/v1/threads/t/runs", "POST"),
        (Method::GET, "/mcp", "POST"),
        (Method::POST, "/healthz", "GET,HEAD"),
        (Method::from_bytes(b"BREW").unwrap(), "/", "GET,HEAD"),
    ] {
        let answer = ground.send(method.clone(), path, &[], Body::empty()).await;
        assert!(answer.problem(405, "method-not-allowed").contains(method.as_str()));
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
    }
    let html = [("accept", "text/html")];
    for path in ["/api/v1/runs", "/api/v1/runs/x", "/api/v1/runs/x/events"] {
        ground.send(Method::GET, path, &html, Body::empty()).await.problem(406, "not-acceptable");
    }
    for form in ["text/plain", "application/x-www-form-urlencoded", "nonsense", "application/jsonx"] {
        let headers = [("content-type", form)];
        let body = Body::from(r#"{"playbook":"lines"}"#);
        let answer = ground.send(Method::POST, "/api/v1/threads/t/runs", &headers, body).await;
        assert!(answer.problem(415, "wrong-content-type").contains(form));
    }
    let nothing = ground.send(Method::POST, "/api/v1/threads/t/runs", &[], Body::from("{}")).await;
    assert!(nothing.problem(415, "wrong-content-type").contains("no Content-Type"));
    for form in ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/x+json"] {
        let headers = [("content-type", form)];
        let answer = ground.send(Method::POST, "/api/v1/threads/t/runs", &headers, Body::from("{}")).await;
        answer.problem(400, "bad-body");
    }
    let head = ground.send(Method::HEAD, "/api/v1/runs", &[], Body::empty()).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
}

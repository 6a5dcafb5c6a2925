//! What is wrong is told, with its place; what is right before it is kept.

use serde_json::json;

use crate::web::{Web, json_of, lines};

#[tokio::test]
async fn a_bad_line_is_named_and_those_before_it_are_kept() {
    let web = Web::start();
    let run = web.external("t").await;
    let body = format!("{}\n{{\"type\":\"x\",\"a\":tru}}\n{}", lines(0..2), lines(0..5));
    let (status, problem) = web.events_of(&run, Some("p:1"), body).await;
    let detail = "line 4, column 17: not JSON: a value is expected here; the 2 events before that are kept";
    assert_eq!(
        (status.as_u16(), problem),
        (
            400,
            json!({
                "type": "urn:taffrail:problem:bad-line", "title": "A line is not an event", "status": 400,
                "detail": detail, "code": "bad-line", "line": 4, "column": 17,
                "stored": 2, "known": 0, "first": 2, "last": 3, "expected": 3,
            })
        )
    );
    // So the producer can go on there.
    let (_, answer) = web.events_of(&run, Some("p:3"), lines(2..3)).await;
    assert_eq!(answer, json!({"first": 4, "last": 4, "stored": 1, "known": 0}));
    for (body, line, column) in [
        ("{\"type\":\"a\",\"run\":\"other\"}".to_owned(), 1, 1),
        ("\n[1]".to_owned(), 2, 1),
        ("{\n  \"type\": \"x\"\n}".to_owned(), 1, 2),
        ("{\"type\":\"x\"} {\"type\":\"y\"}".to_owned(), 1, 14),
        (format!("{{\"type\":\"x\",\"a\":{}1{}}}", "[".repeat(100), "]".repeat(100)), 1, 80),
    ] {
        let (status, problem) = web.events(&run, body.clone()).await;
        assert_eq!((status.as_u16(), &problem["code"]), (400, &json!("bad-line")), "{body}");
        assert_eq!(
            (&problem["line"], &problem["column"], &problem["stored"]),
            (&json!(line), &json!(column), &json!(0))
        );
    }
}

#[tokio::test]
async fn what_is_too_large_is_a_clear_answer() {
    let web = Web::start();
    let run = web.external("t").await;
    let line = format!("{{\"type\":\"x\",\"text\":\"{}\"}}\n", "x".repeat(10_000_000));
    let (status, problem) = web.events(&run, format!("{}{line}", lines(0..3))).await;
    assert_eq!((status.as_u16(), &problem["code"], &problem["line"]), (413, &json!("too-large"), &json!(4)));
    assert_eq!((&problem["stored"], &problem["last"]), (&json!(3), &json!(4)));
    // One of a mebibyte is taken.
    let (status, answer) = web.events(&run, format!("{{\"type\":\"x\",\"text\":\"{}\"}}", "x".repeat(1_048_000))).await;
    assert_eq!((status.as_u16(), &answer["stored"]), (200, &json!(1)), "{answer}");
    // A body that says how large it is need not be sent first.
    let body = vec![b'\n'; 65 * 1024 * 1024];
    let (status, problem) = web.events(&run, body.clone()).await;
    assert_eq!((status.as_u16(), &problem["limit"]), (413, &json!(67_108_864)), "{problem}");
    let chunks = body.chunks(1024 * 1024).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect::<Vec<_>>();
    let stream = reqwest::Body::wrap_stream(futures_util::stream::iter(chunks));
    let (status, problem) = web.events(&run, stream).await;
    assert_eq!((status.as_u16(), &problem["code"]), (413, &json!("too-large")), "{problem}");
}

#[tokio::test]
async fn other_bodies_and_headers_are_refused() {
    let web = Web::start();
    let run = web.external("t").await;
    let url = format!("{}/api/v1/runs/{run}/events", web.url);
    for kind in ["application/x-ndjson", "application/json; charset=utf-8", "Application/JSONL", "application/ndjson"] {
        let sent = web.client.post(&url).header("content-type", kind).body(lines(0..1)).send().await.unwrap();
        assert_eq!(sent.status(), 200, "{kind}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "json"] {
        let sent = web.client.post(&url).header("content-type", kind).body(lines(0..1)).send().await.unwrap();
        assert_eq!(sent.status(), 415, "{kind}");
        let problem = json_of(sent).await;
        assert!(problem["detail"].as_str().unwrap().contains("application/x-ndjson"), "{problem}");
    }
    let sent = web.client.post(&url).header("content-encoding", "gzip").body("x").send().await.unwrap();
    assert_eq!((sent.status().as_u16(), json_of(sent).await["code"].clone()), (415, json!("wrong-content-type")));
    for bad in ["p", "p:0", ":1", "a b:1", "p:x"] {
        let (status, problem) = web.events_of(&run, Some(bad), lines(0..1)).await;
        assert_eq!((status.as_u16(), &problem["code"]), (400, &json!("bad-producer")), "{bad}");
    }
    let sent = web.client.post(format!("{url}?after=1")).body(lines(0..1)).send().await.unwrap();
    assert_eq!((sent.status().as_u16(), json_of(sent).await["code"].clone()), (400, json!("bad-parameter")));
    let nobody = web.client.post(format!("{}/api/v1/runs/nobody/events", web.url));
    for body in [lines(0..1), String::new()] {
        let sent = nobody.try_clone().unwrap().body(body).send().await.unwrap();
        assert_eq!((sent.status().as_u16(), json_of(sent).await["code"].clone()), (404, json!("no-run")));
    }
}

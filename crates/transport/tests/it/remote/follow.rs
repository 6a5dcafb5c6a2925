//! Following, through one kind of trouble at a time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::StreamExt as _;
use taffrail_mcp_core::{RunStatus, Seq, Start, ThreadId};
use taffrail_transport::client::{ClientError, Connection, Follow, Followed};

use super::{
    fake::{Act, Asked, Fake, answer, json, problem, stream_head},
    run::Run,
};

/// What a follower brought, to its end.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) lines: Vec<String>,
    pub(crate) connection: Vec<Connection>,
    pub(crate) gaps: Vec<(u64, u64)>,
    pub(crate) end: Option<RunStatus>,
    pub(crate) error: Option<ClientError>,
}

/// Reads a follower to its end.
pub(crate) async fn read(mut follow: Follow) -> Seen {
    let mut seen = Seen::default();
    let reading = async {
        while let Some(item) = follow.next().await {
            match item {
                Ok(Followed::Record { line, .. }) => seen.lines.push(String::from_utf8(line.to_vec()).unwrap()),
                Ok(Followed::Gap(gap)) => seen.gaps.push((gap.from.0, gap.to.0)),
                Ok(Followed::Connection(told)) => seen.connection.push(told),
                Ok(Followed::End(snapshot)) => seen.end = Some(snapshot.status),
                Err(error) => seen.error = Some(error),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(50), reading).await.expect("the follower hangs");
    assert!(follow.next().await.is_none(), "nothing comes after the end");
    seen
}

/// Follows a run from its beginning, served so.
async fn follow(run: &Run, script: impl Fn(&Asked, &Run) -> Vec<Act> + Send + Sync + 'static) -> (Seen, Vec<Asked>) {
    let served = run.clone();
    let fake = Fake::start(move |asked| script(asked, &served)).await;
    let seen = read(fake.client().follow(run.run.clone(), Start::Beginning)).await;
    (seen, fake.asked())
}

#[track_caller]
fn assert_whole(seen: &Seen, run: &Run) {
    assert!(seen.error.is_none(), "{:?}", seen.error);
    assert_eq!(seen.lines, run.lines);
    assert_eq!((seen.end, seen.gaps.len()), (Some(RunStatus::Done), 0));
}

fn is_stream(asked: &Asked) -> bool {
    asked.path.ends_with("/stream")
}

#[tokio::test]
async fn a_server_in_good_order_is_asked_once() {
    let run = Run::new(100);
    let (seen, asked) = follow(&run, |asked, run| run.serve(asked)).await;
    assert_whole(&seen, &run);
    assert!(seen.connection.is_empty());
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].headers["authorization"], "Bearer hunter2");
    assert_eq!(asked[0].headers["accept"], "text/event-stream");
    assert!(!asked[0].headers.contains_key("last-event-id"));
}

#[tokio::test]
async fn a_stream_cut_anywhere_is_resumed_where_it_was() {
    let run = Run::new(4);
    let whole = run.frames(0).concat().len();
    // Cut within a record, between records, within the end.
    for cut in (0..whole).step_by(7) {
        let (seen, asked) = follow(&run, move |asked, run| {
            let mut acts = run.serve(asked);
            if let (0, Some(Act::Send(bytes))) = (asked.n, acts.first_mut()) {
                bytes.truncate(stream_head().len() + cut);
            }
            acts
        })
        .await;
        assert_whole(&seen, &run);
        assert!((2..=3).contains(&asked.len()), "cut at {cut}: {}", asked.len());
        // The first event is `retry`.
        let mut end = "retry: 1\n\n".len();
        let ends = run.frames(0).into_iter().map(|frame| {
            end += frame.len();
            end
        });
        let passed = ends.filter(|end| *end <= cut).count();
        let cursor = asked[1].headers.get("last-event-id").map(|id| id.parse().unwrap());
        assert_eq!(cursor, (passed > 0).then_some(passed), "cut at {cut}");
        assert_eq!(asked[1].query.get("after"), asked[1].headers.get("last-event-id"));
    }
}

#[tokio::test]
async fn a_reset_connection_is_made_again() {
    let run = Run::new(20);
    let (seen, _) = follow(&run, |asked, run| match asked.n {
        0..3 => {
            let mut acts = run.serve(asked);
            if let Some(Act::Send(bytes)) = acts.first_mut() {
                bytes.truncate(300 + asked.n * 200);
            }
            acts.push(Act::Pause(Duration::from_millis(20)));
            acts.push(Act::Reset);
            acts
        }
        _ => run.serve(asked),
    })
    .await;
    assert_whole(&seen, &run);
    // Each of them had brought something, so that nobody need be told.
    assert_eq!(seen.connection, []);
}

#[tokio::test]
async fn a_half_open_connection_is_left() {
    let run = Run::new(20);
    let (seen, asked) = follow(&run, |asked, run| match (asked.n, &run.serve(asked)[..]) {
        (0, [Act::Send(bytes)]) => vec![Act::Send(bytes[..900].to_vec()), Act::Hang],
        (_, acts) => acts.to_vec(),
    })
    .await;
    assert_whole(&seen, &run);
    assert_eq!(asked.len(), 2);
}

#[tokio::test]
async fn keepalives_keep_a_quiet_stream() {
    let run = Run::new(3);
    let (seen, asked) = follow(&run, |asked, run| {
        let Some(Act::Send(bytes)) = run.serve(asked).pop() else { unreachable!() };
        let mut acts = vec![Act::Send(bytes[..stream_head().len() + 10].to_vec())];
        for _ in 0..20 {
            acts.extend([Act::Send(b": keepalive\n\n".to_vec()), Act::Pause(Duration::from_millis(25))]);
        }
        acts.push(Act::Send(bytes[stream_head().len() + 10..].to_vec()));
        acts
    })
    .await;
    assert_whole(&seen, &run);
    // 500 ms in all, more than twice what silence may last.
    assert_eq!(asked.len(), 1);
}

#[tokio::test]
async fn blocked_streams_give_way_to_pages() {
    let blocks: [fn() -> Vec<Act>; 5] = [
        || vec![Act::Hang],
        || vec![Act::Send(stream_head()), Act::Hang],
        || answer(200, "text/html", "", "<html>please sign in"),
        || vec![Act::Send(stream_head())],
        || vec![Act::Send(b"HTTP/1.1 204 X\r\nConnection: close\r\n\r\n".to_vec())],
    ];
    for (n, block) in blocks.into_iter().enumerate() {
        let run = Run::new(30);
        let over = Arc::new(AtomicBool::new(false));
        let (seen, asked) = follow(&run, {
            move |asked, run| match asked.path.as_str() {
                path if path.ends_with("/stream") => block(),
                // A 204 of somebody between is found out by the snapshot.
                "/api/v1/runs/r" if !over.load(Ordering::SeqCst) => {
                    json(&run.snapshot.replace(r#""status":"done""#, r#""status":"running""#))
                }
                _ => {
                    over.store(true, Ordering::SeqCst);
                    run.serve(asked)
                }
            }
        })
        .await;
        assert_whole(&seen, &run);
        assert!(seen.connection.contains(&Connection::Polling), "{n}: {:?}", seen.connection);
        let streams = asked.iter().filter(|asked| is_stream(asked)).count();
        assert!((1..=4).contains(&streams), "{n}: {streams}");
    }
}

#[tokio::test]
async fn streams_are_tried_again_after_polling() {
    let mut run = Run::new(30);
    run.over = false;
    let (seen, asked) = follow(&run, |asked, run| {
        let mut run = run.clone();
        match asked.path.as_str() {
            // Comes through the third time.
            path if path.ends_with("/stream") && asked.headers.get("last-event-id").is_none_or(|id| id != "30") => {
                vec![Act::Hang]
            }
            path if path.ends_with("/stream") => {
                run.over = asked.n > 4;
                let mut stream = stream_head();
                stream.extend(run.frames(30).concat().into_bytes());
                vec![Act::Send(stream)]
            }
            _ => run.serve(asked),
        }
    })
    .await;
    assert_whole(&seen, &run);
    let streams: Vec<_> = asked.iter().filter(|asked| is_stream(asked)).map(|asked| asked.n).collect();
    let pages = asked.iter().filter(|asked| asked.path.ends_with("/events")).count();
    assert!(streams.len() >= 3 && pages >= 5, "{streams:?} {pages}");
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for() {
    let run = Run::new(20);
    let (seen, _) = follow(&run, |asked, run| match asked.n {
        0 => problem(503, "closing", "Retry-After: 0\r\n"),
        1 => answer(502, "text/html", "", "<html>bad gateway"),
        2 => problem(429, "too-many-requests", "Retry-After: 0\r\n"),
        3 => vec![],
        4 => vec![Act::Reset],
        _ => run.serve(asked),
    })
    .await;
    assert_whole(&seen, &run);
    assert!(matches!(seen.connection[..], [Connection::Lost { .. }, Connection::Restored]), "{:?}", seen.connection);
}

#[tokio::test]
async fn retry_after_is_waited_for() {
    let run = Run::new(2);
    let start = tokio::time::Instant::now();
    let (seen, _) = follow(&run, |asked, run| match asked.n {
        0 => problem(503, "closing", "Retry-After: 1\r\n"),
        _ => run.serve(asked),
    })
    .await;
    assert_whole(&seen, &run);
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test]
async fn refusals_are_errors_at_once() {
    let run = Run::new(2);
    for (status, code) in
        [(400, "bad-cursor"), (401, "unauthorized"), (403, "unknown-host"), (404, "no-run"), (409, "cursor-ahead")]
    {
        let (seen, asked) = follow(&run, move |_, _| problem(status, code, "")).await;
        let Some(ClientError::Refused(refusal)) = &seen.error else { panic!("{seen:?}") };
        assert_eq!((refusal.status, refusal.code.as_str(), refusal.number("head")), (status, code, Some(7)));
        assert_eq!(asked.len(), 1);
        assert!(refusal.to_string().starts_with(&format!("it is {code} ({status} {code})")), "{refusal}");
    }
    let (seen, _) = follow(&run, |_, _| answer(404, "text/html", "", "<html>")).await;
    assert!(matches!(seen.error, Some(ClientError::NotTaffrail { status: 404, .. })), "{seen:?}");
    let (seen, _) = follow(&run, |_, _| answer(301, "text/html", "Location: https://other/\r\n", "")).await;
    assert!(matches!(&seen.error, Some(ClientError::Redirected { to, .. }) if to == "https://other/"), "{seen:?}");
}

#[tokio::test]
async fn what_was_seen_comes_no_second_time() {
    let run = Run::new(20);
    // A server, or a cache, that forgets cursors.
    let (seen, asked) = follow(&run, |asked, run| {
        let mut frames = run.frames(0);
        frames.truncate(if asked.n < 4 { 5 * (asked.n + 1) } else { usize::MAX });
        vec![Act::Send([stream_head(), frames.concat().into_bytes()].concat())]
    })
    .await;
    assert_whole(&seen, &run);
    assert_eq!(asked.len(), 5);
}

#[tokio::test]
async fn a_gap_is_told_once_in_its_place() {
    let mut run = Run::new(20);
    let (seen, asked) = follow(&run, |asked, run| {
        let gap = r#"{"type":"gap","thread":"r","from":1,"to":9,"reason":"retention","next":9}"#;
        let gap = format!("event: gap\nid: 9\ndata: {gap}\n\n");
        let mut stream = stream_head();
        match run.after(asked) {
            0 => stream.extend(gap.repeat(2).into_bytes()),
            after => stream.extend(run.frames(after).concat().into_bytes()),
        }
        vec![Act::Send(stream)]
    })
    .await;
    run.lines.drain(..9);
    assert_eq!((&seen.lines, &seen.gaps[..], seen.end), (&run.lines, &[(1, 9)][..], Some(RunStatus::Done)));
    assert_eq!(asked[1].headers["last-event-id"], "9");
}

#[tokio::test]
async fn what_cannot_be_a_record_is_an_error() {
    let run = Run::new(2);
    for (wrong, part) in [
        ("data: {}\n\n", "no record"),
        ("data: x\n\n", "no record"),
        ("id: 7\ndata: {\"seq\":1,\"type\":\"note\"}\n\n", "under the id 7"),
        ("event: end\ndata: {}\n\n", "an end without snapshot"),
        ("event: gap\ndata: {}\n\n", "neither a record nor a gap"),
    ] {
        let (seen, _) = follow(&run, move |_, _| vec![Act::Send([&stream_head(), wrong.as_bytes()].concat())]).await;
        let error = seen.error.unwrap();
        assert!(matches!(error, ClientError::Malformed { .. }) && error.to_string().contains(part), "{error}");
    }
    // What is only unknown is passed by.
    let (seen, _) = follow(&run, |asked, run| {
        let mut stream = stream_head();
        stream.extend_from_slice(b"event: news\ndata: hello\n\nfoo: bar\n\n");
        stream.extend(run.frames(run.after(asked)).concat().into_bytes());
        vec![Act::Send(stream)]
    })
    .await;
    assert_whole(&seen, &run);
}

#[tokio::test]
async fn a_thread_has_every_record_or_says_which_is_missing() {
    let run = Run::new(9);
    let thread = ThreadId::new("t").unwrap();
    let served = run.clone();
    // Record 5 is lost on the way once, record 7 always.
    let fake = Fake::start(move |asked| {
        let mut frames = served.frames(served.after(asked));
        frames.retain(|frame| !(frame.starts_with("id: 7\n") || (asked.n == 0 && frame.starts_with("id: 5\n"))));
        assert_eq!(asked.path, "/api/v1/threads/t/stream");
        vec![Act::Send([stream_head(), frames.concat().into_bytes()].concat())]
    })
    .await;
    let seen = read(fake.client().follow(thread.clone(), Start::Beginning)).await;
    assert_eq!(seen.lines, run.lines[..6]);
    assert!(matches!(seen.error, Some(ClientError::Missing { expected: Seq(7), found: Seq(8) })), "{seen:?}");
    // And a thread whose stream does not come through cannot be had.
    let fake = Fake::start(|_| vec![Act::Send(stream_head()), Act::Hang]).await;
    let seen = read(fake.client().follow(thread, Start::Beginning)).await;
    assert!(matches!(seen.error, Some(ClientError::Blocked { .. })), "{seen:?}");
}

#[tokio::test]
async fn live_is_settled_once() {
    let run = Run::new(20);
    let served = run.clone();
    let fake = Fake::start(move |asked| match (asked.path.as_str(), asked.n) {
        // When the follower comes, 10 records are there.
        ("/api/v1/runs/r", 0) => json(&served.snapshot.replace(r#""head":20"#, r#""head":10"#)),
        (_, 1) => vec![Act::Send(stream_head())],
        _ => served.serve(asked),
    })
    .await;
    let seen = read(fake.client().follow(run.run.clone(), Start::Live)).await;
    assert_eq!(seen.lines, run.lines[10..], "{seen:?}");
    assert_eq!(fake.asked()[1].headers["last-event-id"], "10");
}

#[tokio::test]
async fn it_is_a_stream_that_may_be_dropped_at_any_time() {
    let run = Run::new(50);
    let served = run.clone();
    let fake = Fake::start(move |asked| served.serve(asked)).await;
    let stream = fake.client().follow(run.run.clone(), Start::Beginning).into_stream();
    assert_eq!(stream.count().await, 51);
    // Each wait for an item is given up many times.
    let mut follow = fake.client().follow(run.run.clone(), Start::After(Seq(10)));
    let mut lines = Vec::new();
    loop {
        let next = tokio::time::timeout(Duration::from_micros(50), follow.next());
        match next.await {
            Err(_) => {}
            Ok(Some(Ok(Followed::Record { line, .. }))) => lines.push(String::from_utf8(line.to_vec()).unwrap()),
            Ok(Some(Ok(Followed::End(_)))) => break,
            Ok(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(lines, run.lines[10..]);
}

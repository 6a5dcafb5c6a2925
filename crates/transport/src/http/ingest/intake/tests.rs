use proptest::{collection::vec, prelude::*, sample::select};
use taffrail_mcp_core::EventLineFault;

use super::*;

fn intake() -> Intake {
    Intake::new(RunId::new("r").unwrap())
}

type Seen = (Vec<(Option<u64>, String)>, Result<(), BadLine>);

/// What becomes of a body that comes in these chunks. Parts of one time are joined.
fn take<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, finish: bool) -> Seen {
    let mut intake = intake();
    let mut result = chunks.into_iter().try_for_each(|chunk| intake.feed(chunk));
    if result.is_ok() && finish {
        result = intake.finish();
    }
    let mut seen: Vec<(Option<u64>, String)> = Vec::new();
    assert_eq!(intake.bytes(), intake.parts.iter().map(|(_, batch)| batch.size()).sum::<usize>());
    for (ts, batch) in intake.take() {
        let ts = ts.map(Timestamp::micros);
        let bodies = String::from_utf8(batch.bodies().to_vec()).unwrap();
        match seen.last_mut() {
            Some((last, text)) if *last == ts => text.push_str(&bodies),
            _ => seen.push((ts, bodies)),
        }
    }
    (seen, result)
}

fn check(body: &str, expected: &[(Option<u64>, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(ts, text)| (*ts, (*text).to_owned())).collect();
    assert_eq!(take([body.as_bytes()], true), (expected, Ok(())), "{body:?}");
}

#[test]
fn lines_become_events() {
    let [a, b] = [r#"{"type":"a"}"#, r#"{"type":"b","ts":"1970-01-01T00:00:01Z"}"#];
    let [a_body, b_body] = ["\"type\":\"a\"}\n", "\"type\":\"b\"}\n"];
    check("", &[]);
    check("\n\r\n  \n\t", &[]);
    check(a, &[(None, a_body)]);
    check(&format!("\n{a}\r\n\n{a}"), &[(None, &a_body.repeat(2))]);
    check(&format!("\u{feff}{a}\n"), &[(None, a_body)]);
    check(&format!("{a}\n{b}\n{b}\n{a}\n"), &[(None, a_body), (Some(1_000_000), &b_body.repeat(2)), (None, a_body)]);
    check(r#"{"type":"a","run":"r","seq":12,"thread":"elsewhere"}"#, &[(None, a_body)]);
}

fn refused(body: &str, line: u64, column: usize, what: &str) {
    let error = take([body.as_bytes()], true).1.unwrap_err();
    assert_eq!((error.line, error.column, error.what.to_string().as_str()), (line, column, what), "{body:?}");
}

#[test]
fn the_first_bad_line_is_told() {
    refused("{\"type\":\"a\"}\n\n{\"type\":}\n", 3, 9, "not JSON: a value is expected here");
    refused("{\"type\":\"a\",\"run\":\"q\"}", 1, 1, "it is of run \"q\", and this is where events of run r are sent");
    refused("{\"type\":\"a\"}\n\u{feff}{\"type\":\"a\"}", 2, 1, "not a JSON object: send one object a line");
    let error = take([&b"{\n  \"type\": \"a\"\n}"[..]], true).1.unwrap_err();
    assert_eq!(error.line, 1);
    assert!(matches!(error.what, WrongLine::Event(EventLineError { fault: EventLineFault::Syntax { .. }, .. })));
}

#[test]
fn a_line_is_bounded_however_it_comes() {
    let line = |length: usize| format!("{{\"type\":\"{:l$}\"}}", "a", l = length - 11).replace(' ', "");
    let padded = |length: usize| format!("{{\"type\":\"a\"}}{}", " ".repeat(length - 12));
    assert!(line(20).len() <= 20);
    let too_long = BadLine { line: 2, column: LINE_BYTES + 1, what: WrongLine::TooLong };
    for (length, fits) in [(LINE_BYTES, true), (LINE_BYTES + 1, false)] {
        for newline in ["", "\n"] {
            let body = format!("\n{}{newline}", padded(length));
            for size in [1000, body.len()] {
                let (events, result) = take(body.as_bytes().chunks(size), true);
                assert_eq!((events.len(), result), if fits { (1, Ok(())) } else { (0, Err(too_long.clone())) });
            }
        }
    }
    // And what is held meanwhile too.
    let mut intake = intake();
    let piece = vec![b'x'; 64 * 1024];
    let fed = (0..).map(|_| intake.feed(&piece)).take_while(Result::is_ok).count();
    assert_eq!(fed, LINE_BYTES / piece.len());
    assert!(intake.carry.capacity() <= 2 * LINE_BYTES);
}

#[test]
fn what_is_before_a_folding_event_can_be_taken_alone() {
    let mut intake = intake();
    let folding = r#"{"type":"checkpoint-claimed","checkpoint":"c","actor":"a"}"#;
    intake
        .feed(format!("{{\"type\":\"a\"}}\n{{\"type\":\"a\"}}\n{folding}\n{folding}\n{{\"type\":\"b\"}}\n").as_bytes())
        .unwrap();
    let first = intake.folding().cloned().unwrap();
    assert_eq!((first.line, first.kind.as_str()), (3, "checkpoint-claimed"));
    intake.cut(&first);
    assert_eq!(intake.bytes(), 2 * "\"type\":\"a\"}\n".len());
    let parts = intake.take();
    assert_eq!(parts.iter().map(|(_, batch)| batch.len()).sum::<u64>(), 2);
    intake.feed(format!("{{\"type\":\"a\"}}\n{folding}\n").as_bytes()).unwrap();
    assert_eq!(intake.folding().map(|folding| folding.line), Some(7));
    assert_eq!(intake.take().iter().map(|(_, batch)| batch.len()).sum::<u64>(), 2);
    assert_eq!((intake.folding(), intake.bytes()), (None, 0));
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let line = select(vec![
        r#"{"type":"a"}"#,
        r#"{"type":"log","state":"s","stream":"stdout","text":"é🚢"}"#,
        "",
        " ",
        "\r",
        r#"{"ts":"1970-01-01T00:00:01Z","type":"b"}"#,
        r#"{"ts":"1970-01-01T00:00:02Z","type":"b"}"#,
        r#"{"type":"checkpoint-claimed","checkpoint":"c","actor":"a"}"#,
        r#"{"type":"a","run":"q"}"#,
        "{",
        "nonsense",
    ]);
    (vec((line, 0..8u8), 0..12), any::<bool>()).prop_map(|(lines, newline)| {
        // Bad lines are rare, so that there is something before them.
        let lines: Vec<&str> = lines
            .iter()
            .map(|(line, odd)| if line.len() < 24 && *odd > 0 { r#"{"type":"a"}"# } else { *line })
            .collect();
        let mut body = lines.join("\n").into_bytes();
        if newline {
            body.push(b'\n');
        }
        body
    })
}

proptest! {
    #[test]
    fn any_chunking_is_the_same_body(body in body(), cuts in vec(0..400usize, 0..8)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|ends| &body[ends[0]..ends[1]]);
        prop_assert_eq!(take(chunks, true), take([body.as_slice()], true));
    }

    #[test]
    fn a_broken_body_keeps_whole_lines(body in body(), cut in 0..400usize) {
        let cut = cut.min(body.len());
        let whole = body[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        prop_assert_eq!(take([&body[..cut]], false), take([&body[..whole]], true));
    }
}

#[test]
fn a_run_ends_once_and_with_a_status_that_is_an_end() {
    let end = |depth: u8, status: &str| {
        format!(
            concat!(
                r#"{{"type":"run-finished","machine":"m","depth":{},"status":"{}","error":null,"at":null,"usage":{{"#,
                r#""steps":0,"wall_ms":1,"log_lines":0,"log_bytes":0,"clipped_lines":0,"clipped_bytes":0}}}}"#,
                "\n"
            ),
            depth, status
        )
    };
    let after = |body: String| {
        let (seen, result) = take([body.as_bytes()], true);
        (seen.iter().map(|(_, text)| text.lines().count()).sum::<usize>(), result.map_err(|bad| (bad.line, bad.what)))
    };
    let remark = "{\"type\":\"n\"}\n";
    let done = RunStatus::Done;
    assert_eq!(
        after(format!("{remark}{}{remark}", end(0, "done"))),
        (2, Err((3, WrongLine::AfterEnd { status: done })))
    );
    assert_eq!(after(format!("{}{}", end(0, "cancelled"), end(0, "halt"))).0, 1);
    // Of a playbook that was called, and of one that can go on.
    assert_eq!(after(format!("{}{remark}", end(1, "done"))), (2, Ok(())));
    assert_eq!(after(format!("{}{remark}", end(0, "interrupted"))), (2, Ok(())));
    assert_eq!(after(end(0, "running")), (0, Err((1, WrongLine::NoEnd { status: RunStatus::Running }))));
}

//! What the standard says, cut into pieces in every way.

use proptest::prelude::*;

use super::*;

const LIMIT: usize = 1 << 20;

fn frame(event: &str, id: Option<&str>, data: &str) -> Item {
    Item::Frame(Frame {
        event: event.to_owned(),
        id: id.map(str::to_owned),
        data: Bytes::copy_from_slice(data.as_bytes()),
    })
}

fn read(pieces: &[&[u8]]) -> Vec<Item> {
    let (mut parser, mut items) = (Parser::new(LIMIT), Vec::new());
    for piece in pieces {
        parser.push(piece, |item| items.push(item)).unwrap();
    }
    items
}

/// Reads a stream at once, byte by byte, and cut in two at every place.
#[track_caller]
fn check(stream: &[u8], expected: &[Item]) {
    assert_eq!(read(&[stream]), expected, "at once");
    assert_eq!(read(&stream.chunks(1).collect::<Vec<_>>()), expected, "byte by byte");
    for at in 0..stream.len() {
        let (one, two) = stream.split_at(at);
        assert_eq!(read(&[one, b"", two]), expected, "cut at {at}");
    }
}

#[test]
fn the_examples_of_the_standard() {
    check(b"data: YHOO\ndata: +2\ndata: 10\n\n", &[frame("", None, "YHOO\n+2\n10\n")]);
    check(
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        &[
            frame("", Some("1"), "first event\n"),
            frame("", Some(""), "second event\n"),
            frame("", Some(""), " third event\n"),
        ],
    );
    check(b"data\n\ndata\ndata\n\ndata:", &[frame("", None, "\n"), frame("", None, "\n\n")]);
    check(b"data:test\n\ndata: test\n\n", &[frame("", None, "test\n"), frame("", None, "test\n")]);
}

#[test]
fn all_line_ends_are_the_same() {
    let expected = [frame("end", Some("7"), "a\nb\n"), frame("", Some("7"), "c\n")];
    for end in ["\n", "\r", "\r\n"] {
        let stream = ["event: end", "id: 7", "data: a", "data: b", "", "data: c", "", ""].join(end);
        check(stream.as_bytes(), &expected);
    }
    // LF CR is two line ends, CR LF one.
    check(b"data: a\r\ndata: b\n\rdata: c\r\r", &[frame("", None, "a\nb\n"), frame("", None, "c\n")]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_beginning() {
    check(b"\xef\xbb\xbfdata: a\n\n", &[frame("", None, "a\n")]);
    check(b"data: a\n\n\xef\xbb\xbfdata: b\n\n", &[frame("", None, "a\n")]);
    check(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", &[]);
    // The beginning of a mark that is none is part of the first line's field name.
    check(b"\xef\xbbdata: a\n\ndata: b\n\n", &[frame("", None, "b\n")]);
}

#[test]
fn what_is_ignored() {
    check(b": keepalive\n\n:\n\nunknown: x\ndata: a\nDATA: b\n data: c\n\n", &[frame("", None, "a\n")]);
    // An id with NUL, a retry that is no number, an event without data.
    check(b"id: 1\nid: a\0b\nretry: 1s\nretry: -1\nretry:\nevent: x\n\ndata: a\n\n", &[frame("", Some("1"), "a\n")]);
    // What is not complete is dropped.
    check(b"data: a\n\nid: 2\ndata: b\n", &[frame("", None, "a\n")]);
    check(b"data: a\n\nid: 2\ndata: b", &[frame("", None, "a\n")]);
}

#[test]
fn times_to_wait() {
    check(
        b"retry: 2000\n\nretry:0\ndata: a\n\n",
        &[Item::Retry(Duration::from_secs(2)), Item::Retry(Duration::ZERO), frame("", None, "a\n")],
    );
    let most = Item::Retry(Duration::from_millis(u64::MAX));
    check(b"retry: 99999999999999999999999\n", &[most]);
}

#[test]
fn an_event_without_end_does_not_fill_the_memory() {
    let mut parser = Parser::new(100);
    assert!(parser.push(&[b'x'; 100], |_| ()).is_ok());
    assert_eq!(parser.push(b"x", |_| ()), Err(TooLong { limit: 100 }));
    let mut parser = Parser::new(100);
    let lines = b"data: 0123456789\n".repeat(10);
    assert_eq!(parser.push(&lines, |_| ()), Err(TooLong { limit: 100 }));
    // Events that are complete do not count.
    let mut parser = Parser::new(100);
    let mut frames = 0;
    parser.push(&b"data: 0123456789\n\n".repeat(100), |_| frames += 1).unwrap();
    assert_eq!(frames, 100);
}

/// One field or blank line, and what the standard makes of it is told by the model below.
#[derive(Debug, Clone)]
enum Part {
    Data(String),
    Event(String),
    Id(String),
    Retry(u32),
    Comment(String),
    Blank,
}

fn part() -> impl Strategy<Value = Part> {
    // No line ends, and no NUL in ids.
    let text = || "[ :a-zé\u{1f600}\\{\\}\"]{0,12}";
    prop_oneof![
        4 => text().prop_map(Part::Data),
        1 => text().prop_map(Part::Event),
        2 => text().prop_map(Part::Id),
        1 => any::<u32>().prop_map(Part::Retry),
        1 => text().prop_map(Part::Comment),
        4 => Just(Part::Blank),
    ]
}

/// The standard, word by word, on parts instead of bytes.
fn model(parts: &[Part]) -> Vec<Item> {
    let (mut items, mut data, mut event, mut id) = (Vec::new(), String::new(), String::new(), None);
    for part in parts {
        match part {
            Part::Data(text) => data += &format!("{text}\n"),
            Part::Event(text) => event = text.clone(),
            Part::Id(text) => id = Some(text.clone()),
            Part::Retry(ms) => items.push(Item::Retry(Duration::from_millis((*ms).into()))),
            Part::Comment(_) => {}
            Part::Blank => {
                if !data.is_empty() {
                    items.push(frame(&event, id.as_deref(), &data));
                }
                (data, event) = Default::default();
            }
        }
    }
    items
}

fn write(parts: &[(Part, usize, bool)], mark: bool) -> Vec<u8> {
    let mut stream = if mark { MARK.to_vec() } else { Vec::new() };
    let mut last = "";
    for (part, end, space) in parts {
        let space = if *space { " " } else { "" };
        // Without the space that is dropped, a value that begins with one keeps that.
        let value = |field: &str, text: &str| {
            let space = if text.starts_with(' ') { " " } else { space };
            format!("{field}:{space}{text}")
        };
        let line = match part {
            Part::Data(text) => value("data", text),
            Part::Event(text) => value("event", text),
            Part::Id(text) => value("id", text),
            Part::Retry(ms) => value("retry", &ms.to_string()),
            Part::Comment(text) => format!(":{text}"),
            Part::Blank => String::new(),
        };
        let end = ["\n", "\r", "\r\n"][end % 3];
        // An LF right after a CR would not be a line end of its own.
        let end = if line.is_empty() && last == "\r" && end == "\n" { "\r" } else { end };
        last = end;
        stream.extend_from_slice(line.as_bytes());
        stream.extend_from_slice(end.as_bytes());
    }
    stream
}

proptest! {
    #[test]
    fn any_stream_in_any_pieces(
        parts in prop::collection::vec((part(), 0..3usize, any::<bool>()), 0..40),
        mark in any::<bool>(),
        cuts in prop::collection::vec(1..9usize, 1..20),
    ) {
        let stream = write(&parts, mark);
        let expected = model(&parts.into_iter().map(|(part, ..)| part).collect::<Vec<_>>());
        prop_assert_eq!(&read(&[&stream]), &expected);
        let (mut rest, mut pieces) = (&stream[..], Vec::new());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(&read(&pieces), &expected);
    }

    #[test]
    fn no_bytes_make_it_panic(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10)) {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        let mut parser = Parser::new(64);
        let whole = pieces.iter().try_for_each(|piece| parser.push(piece, |item| one.push(item)));
        let mut parser = Parser::new(64);
        let bytes = pieces.concat();
        let single = bytes.chunks(1).try_for_each(|piece| parser.push(piece, |item| two.push(item)));
        prop_assert_eq!((whole, one), (single, two));
    }
}

//! Lines against examples, and against the one rule that no byte is unaccounted for.

use proptest::prelude::*;

use super::*;

/// A piece that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    data: Vec<u8>,
    part: Option<u64>,
    more: bool,
    folded: u64,
    eol: bool,
    crlf: bool,
}

impl From<Piece<'_>> for Kept {
    fn from(piece: Piece<'_>) -> Self {
        let Piece { data, part, more, folded, eol, crlf } = piece;
        Self { data: data.to_vec(), part, more, folded, eol, crlf }
    }
}

fn split(chunks: &[&[u8]]) -> Vec<Kept> {
    let (mut lines, mut kept) = (Lines::default(), Vec::new());
    for chunk in chunks {
        let mut rest = *chunk;
        while let Some(piece) = lines.next(&mut rest) {
            kept.push(Kept::from(piece));
        }
        assert!(rest.is_empty());
        assert!(lines.drawing.len() <= MAX_LINE_BYTES + LOOKAHEAD);
    }
    while let Some(piece) = lines.end() {
        kept.push(Kept::from(piece));
    }
    kept
}

/// `text`, then what is special about it: `crlf`, `open` (no newline), `+` (more follows), `/n` (folded).
fn check(input: &str, expected: &[&str]) {
    let show = |kept: &Kept| {
        let mut text = String::from_utf8_lossy(&kept.data).into_owned();
        for (on, mark) in [(kept.crlf, " crlf"), (!kept.eol, " open"), (kept.more, " +")] {
            text.push_str(if on { mark } else { "" });
        }
        if kept.folded > 0 { format!("{text} /{}", kept.folded) } else { text }
    };
    let whole: Vec<String> = split(&[input.as_bytes()]).iter().map(show).collect();
    assert_eq!(whole, expected, "{input:?}");
    let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
    let single: Vec<String> = split(&bytes).iter().map(show).collect();
    assert_eq!(single, expected, "{input:?} a byte at a time");
}

#[test]
fn examples() {
    check("", &[]);
    check("a\nb\n", &["a", "b"]);
    check("\n\n", &["", ""]);
    check("a\r\nb", &["a crlf", "b open"]);
    check("\r\n", &[" crlf"]);
    check("10%\r20%\r30%\n", &["30% /8"]);
    check("\r10%\r20%\r\n", &["20% crlf /5"]);
    check("done\r\r\n", &["done crlf /1"]);
    check("done\r", &["done open /1"]);
    check("\r\r", &[" open /2"]);
    check("a\rb\nc\n", &["b /2", "c"]);
    check("Continue? [y/N] ", &["Continue? [y/N]  open"]);
}

#[test]
fn long_lines_are_cut_between_characters() {
    let lengths = |input: Vec<u8>| -> Vec<(usize, Option<u64>, bool)> {
        split(&[&input]).iter().map(|kept| (kept.data.len(), kept.part, kept.more)).collect()
    };
    let x = |count: usize| vec![b'x'; count];
    let max = MAX_LINE_BYTES;
    assert_eq!(lengths([x(max), b"\n".to_vec()].concat()), [(max, None, false)]);
    assert_eq!(lengths([x(max), b"\r\n".to_vec()].concat()), [(max, None, false)]);
    assert_eq!(lengths([x(max + 1), b"\r\n".to_vec()].concat()), [(max, Some(0), true), (1, Some(1), false)]);
    assert_eq!(lengths(x(max + 1)), [(max, Some(0), true), (1, Some(1), false)]);
    for (character, before) in [("é", 1), ("☃", 1), ("☃", 2), ("🚀", 1), ("🚀", 2), ("🚀", 3)] {
        let line = [x(max - before), character.into(), b"\n".to_vec()].concat();
        let rest = character.len();
        assert_eq!(lengths(line), [(max - before, Some(0), true), (rest, Some(1), false)], "{character} {before}");
    }
    // Not UTF-8 there: cut at the bound.
    let stray = [x(max - 1), vec![0xe2, b'x', b'\n']].concat();
    assert_eq!(lengths(stray), [(max, Some(0), true), (1, Some(1), false)]);
    let continuations = vec![0x80; max + 1];
    assert_eq!(lengths(continuations), [(max, Some(0), true), (1, Some(1), false)]);
}

#[test]
fn redraws_without_end_do_not_grow() {
    let mut lines = Lines::default();
    let chunk = b"\rloading 42%".repeat(1000);
    for _ in 0..1000 {
        assert_eq!(lines.next(&mut chunk.as_slice()), None);
    }
    assert!(lines.drawing.capacity() < 1024);
    let piece = lines.end().unwrap();
    assert_eq!((piece.data, piece.folded), (&b"loading 42%"[..], 12 * 1_000_000 - 11));
}

#[test]
fn a_return_in_a_long_line_reaches_back_to_its_piece() {
    let input = [&vec![b'x'; MAX_LINE_BYTES + 10][..], b"\rlast\n"].concat();
    let kept = split(&[&input]);
    assert_eq!(kept.len(), 2);
    assert_eq!((kept[0].data.len(), kept[0].folded, kept[0].more), (MAX_LINE_BYTES, 0, true));
    assert_eq!((&kept[1].data[..], kept[1].folded, kept[1].part), (&b"last"[..], 11, Some(1)));
}

/// Bytes that make every rule meet every other: short and very long runs, line ends, wide and broken characters.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let atom = prop_oneof![
        4 => "[a-z]{0,5}".prop_map(String::into_bytes),
        3 => Just(b"\n".to_vec()),
        3 => Just(b"\r".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        2 => prop_oneof![Just("é"), Just("☃"), Just("🚀")].prop_map(|text| text.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
        2 => (MAX_LINE_BYTES - 6..MAX_LINE_BYTES + 6).prop_map(|count| vec![b'x'; count]),
    ];
    proptest::collection::vec(atom, 0..12).prop_map(|atoms| atoms.concat())
}

/// The rules said again, slowly: what the bytes of a line without redraws are, and what is lost of others.
fn put_back(kept: &[Kept]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in kept {
        bytes.extend_from_slice(&piece.data);
        if !piece.more && piece.eol {
            bytes.extend_from_slice(if piece.crlf { b"\r\n" } else { b"\n" });
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 200 } else { 2000 }))]

    #[test]
    fn no_byte_is_unaccounted_for(bytes in input(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let chunks: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        let kept = split(&chunks);
        prop_assert_eq!(&kept, &split(&[&bytes]), "chunks matter");

        let counted: u64 = kept.iter().map(|kept| {
            let piece = Piece { data: &kept.data, part: kept.part, more: kept.more, folded: kept.folded, eol: kept.eol, crlf: kept.crlf };
            piece.line("s", None, Stream::Stdout).bytes()
        }).sum();
        prop_assert_eq!(counted, bytes.len() as u64);

        let back = put_back(&kept);
        if kept.iter().all(|kept| kept.folded == 0) {
            prop_assert_eq!(&back, &bytes);
        } else {
            // What is left is what was there, in order, with something missing before carriage returns only.
            let mut rest = bytes.iter();
            prop_assert!(back.iter().all(|byte| rest.any(|other| other == byte)));
        }

        let mut part = 0;
        for piece in &kept {
            prop_assert!(piece.data.len() <= MAX_LINE_BYTES);
            prop_assert!(piece.part.is_none_or(|number| number == part) && (piece.part.is_some() || part == 0));
            prop_assert!(!piece.more || piece.data.len() > MAX_LINE_BYTES - 4);
            part = if piece.more { part + 1 } else { 0 };
        }
        prop_assert_eq!(part, 0, "a line was left open");
        if std::str::from_utf8(&bytes).is_ok() {
            prop_assert!(kept.iter().all(|kept| std::str::from_utf8(&kept.data).is_ok()));
        }
    }
}

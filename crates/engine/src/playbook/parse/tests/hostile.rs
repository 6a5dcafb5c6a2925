//! Sources that mean harm: they are refused, quickly, and never with a panic.

use proptest::prelude::*;

use super::{super::parse, told};

const EXAMPLE: &str = include_str!("release.yaml");

#[test]
fn bombs_are_refused() {
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (this, below) in "bcdefghij".chars().zip("abcdefghi".chars()) {
        let items = vec![format!("*{below}"); 9].join(", ");
        bomb.push_str(&format!("{this}: &{this} [{items}]\n"));
    }
    assert!(told(&bomb).contains("more than 100000 values"), "{}", told(&bomb));

    let mut deep = "a: &a0 [x]\n".to_owned();
    for level in 1..100 {
        deep.push_str(&format!("k{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(told(&deep).contains("deeper than 64 levels"), "{}", told(&deep));
}

#[test]
fn sizes_are_bounded() {
    assert!(told(&"#".repeat(1024 * 1024 + 1)).contains("the limit is 1048576"));
    assert!(told(&format!("{}{}", "[".repeat(200), "]".repeat(200))).contains("deeper than 64 levels"));
    assert!(told(&format!("a: {}", "- ".repeat(200))).contains("error"));
    let many = "- x\n".repeat(200_000);
    assert!(told(&many).contains("more than 100000 values"));
    let errors: String = (0..500).map(|number| format!("key{number}: 1\n")).collect();
    assert_eq!(told(&errors).lines().filter(|line| line.contains(": error: ")).count(), 100);
}

#[test]
fn long_runs_of_one_thing_end_soon() {
    const BYTES: usize = 200_000;
    for piece in [
        "[", "{", "- ", "? ", "a: ", "'", "\"", "&a ", "*a ", "!t ", "|\n ", "\n", "\t", "#", ",", "a,", "---\n", "%",
        "\\", "é", "\u{0}", "a: b\n", " a\n", "[a, ", "{a: ", "x: {{ ",
    ] {
        let source = piece.repeat(BYTES / piece.len());
        let _ = parse(&source, "p.yaml");
        let _ = parse(&format!("playbook: p\nstates:\n  s:\n    run: {source}"), "p.yaml");
        let _ = parse(&format!("playbook: p\nstates:\n  s:\n    exec: [\"{source}\"]"), "p.yaml");
    }
}

/// Pieces that make YAML, CEL and minijinja interesting.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[ -~\n\t]{0,12}",
        1 => any::<String>(),
        3 => prop::sample::select(vec![
            "playbook: ", "states:\n", "  s: ", "    run: x\n", "    over: ", "    gates:\n", "      - { when: ", "otherwise",
            "then: ok", "repair: ", "{{ ", " }}", "{% for x in ", " %}", "inputs.", "ctx.", "&a ", "*a", "- ", "? ", ": ", "|\n",
            ">-\n", "'", "\"", "[", "]", "{", "}", "!!str ", "---\n", "...\n", "#", "exit.code == ", ".all(b, ", "1h", "64MiB", "~",
        ]).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_never_panics(pieces in prop::collection::vec(piece(), 0..40)) {
        told(&pieces.concat());
    }

    #[test]
    fn mutated_playbooks_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..40, piece()), 1..6),
    ) {
        let mut text: Vec<char> = EXAMPLE.chars().collect();
        for (at, removed, inserted) in edits {
            let start = at.index(text.len() + 1);
            let end = (start + removed).min(text.len());
            text.splice(start..end, inserted.chars());
        }
        told(&text.into_iter().collect::<String>());
    }
}

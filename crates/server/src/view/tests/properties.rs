//! Whatever is in a log, what comes out is lines that fit and do nothing to a terminal.

use proptest::prelude::*;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::{live::Out, *};
use crate::view::{self, Mode, View, layout, summary};

/// Names that meet each other, and ones that were not foreseen.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just("test".to_owned()), 3 => Just("exec".to_owned()), 1 => ".*", 1 => Just("\u{1b}[2J\u{9b}H\r\n\u{202e}x".to_owned())]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".*",
        "(\u{1b}\\[[0-9;]{0,4}[A-Za-z]|\u{1b}\\][a-z]{0,3}|[\r\n\t\u{7}\u{9b}é日👍\u{fe0f}\u{301}a]){0,40}"
    ]
}

fn event() -> impl Strategy<Value = Value> {
    let small = 0u64..4;
    let exit = prop_oneof![
        (0i32..3).prop_map(|code| json!({ "code": code })),
        text().prop_map(|signal| json!({ "signal": signal })),
        Just(json!({"timeout":true})),
    ];
    let policy = prop_oneof![Just("ok".to_owned()), Just("repair".to_owned()), Just("fail".to_owned()), text()];
    let status = prop_oneof![Just("done"), Just("halt"), Just("suspended"), Just("cancelled"), Just("interrupted")];
    let schema = json!({"properties":{"\u{1b}[2J":{"enum":["\r",1]},"b":{"type":"string"}},"required":["b"]});
    let stream = prop_oneof![Just("stdout"), Just("stderr")];
    let b64 = prop::collection::vec(any::<u8>(), 0..20);
    prop_oneof![
        (name(), small.clone(), name(), any::<bool>()).prop_map(|(machine, depth, entry, resumed)| {
            json!({"type":"run-start","machine":machine,"depth":depth,"entry":entry,"resumed":resumed})
        }),
        (name(), small.clone(), small.clone(), 0usize..3).prop_map(|(state, depth, step, kind)| {
            let kind = ["run", "call", "ask"][kind];
            json!({"type":"state-start","machine":"m","depth":depth,"state":state,"step":step,"kind":kind})
        }),
        (name(), small.clone(), small.clone(), policy, exit.clone(), any::<Option<u64>>(), text()).prop_map(
            |(state, depth, step, policy, exit, branches, to)| {
                let mut event = json!({"type":"state-done","machine":"m","depth":depth,"state":state,"step":step,"policy":policy,"exit":exit,"to":to});
                if let Some(branches) = branches {
                    event["branches"] = branches.into();
                }
                event
            }
        ),
        (name(), any::<u64>(), text()).prop_map(|(state, index, item)| {
            json!({"type":"branch-start","machine":"m","depth":0,"state":state,"index":index % 20,"item":item})
        }),
        (name(), any::<u64>(), exit).prop_map(|(state, index, exit)| {
            json!({"type":"branch-done","machine":"m","depth":0,"state":state,"index":index % 20,"exit":exit})
        }),
        (name(), stream, text(), 0u64..3, any::<bool>()).prop_map(|(state, stream, text, part, more)| {
            json!({"type":"log","state":state,"stream":stream,"text":text,"part":part,"more":more})
        }),
        (name(), b64).prop_map(|(state, bytes)| {
            // Any bytes: base64 of an alphabet that needs no encoder here.
            let b64: String = bytes.chunks_exact(4).flat_map(|b| b.iter().map(|b| char::from(b'A' + b % 26))).collect();
            json!({"type":"log","state":state,"index":1,"stream":"stderr","b64":b64})
        }),
        (text(), text(), any::<bool>()).prop_map(|(role, text, delta)| {
            json!({"type":"message","role":role,"text":text,"delta":delta})
        }),
        (name(), any::<f64>(), any::<f64>(), text()).prop_map(|(state, progress, total, message)| {
            json!({"type":"progress","state":state,"progress":progress,"total":total,"message":message})
        }),
        (name(), text(), any::<bool>()).prop_map(move |(state, message, ask)| {
            let mut event = json!({"type":"approval-requested","approval":"a","state":state,"message":message,"hash":"0","by":"human"});
            if ask {
                event["schema"] = schema.clone();
            }
            event
        }),
        text().prop_map(|actor| json!({"type":"approval-resolved","approval":"a","decision":"approve","hash":"0","actor":actor,"seen_seq":0})),
        text().prop_map(|text| json!({"type":"note","text":text,"level":"error"})),
        text().prop_map(|tool| json!({"type":"tool-call","tool":tool,"role":"\r","actor":"","decision":"denied","reason":"\u{1b}c","ms":0,"bytes":0})),
        text().prop_map(|text| json!({"type":text,"x":text})),
        (status, any::<u64>(), text()).prop_map(|(status, wall_ms, error)| {
            json!({"type":"run-finished","machine":"m","depth":0,"status":status,"error":error,"at":error,"usage":{"wall_ms":wall_ms}})
        }),
    ]
}

/// Takes out our own colours and what the live view moves the cursor with; the rest must hold no control character.
fn without_ours(shown: &str) -> String {
    let mut out = String::new();
    let mut rest = shown;
    let ours =
        ["[K", "[J", "[?25l", "[?25h", "[?2026l", "[?2026h", "[0m", "[1m", "[2m", "[31m", "[32m", "[33m", "[36m"];
    while let Some((before, after)) = rest.split_once('\x1b') {
        out.push_str(before);
        let up = after.strip_prefix('[').map(|text| text.trim_start_matches(|c: char| c.is_ascii_digit()));
        rest = match (ours.iter().find_map(|ours| after.strip_prefix(ours)), up.and_then(|text| text.strip_prefix('A')))
        {
            (Some(after), _) | (None, Some(after)) => after,
            (None, None) => panic!("not ours: {after:?}"),
        };
    }
    out + rest
}

fn harmless(shown: &str) {
    let controls: String = without_ours(shown).chars().filter(|c| c.is_control() && !"\r\n\t".contains(*c)).collect();
    assert_eq!(controls, "", "in {shown:?}");
}

proptest! {
    #[test]
    fn lines_fit_and_do_nothing(
        events in prop::collection::vec((event(), 0u64..5000), 0..40),
        width in 0usize..100,
        height in 0usize..30,
        now in 0u64..200_000,
    ) {
        let records: Vec<_> = events.iter().map(|(event, ms)| record(*ms, event)).collect();
        let tree = super::tree::tree(&records);
        let lines = layout::lines(&tree, width, height, at(now));
        prop_assert!(lines.len() <= height);
        for line in &lines {
            let bare = line.text(Some(width), false);
            prop_assert!(!bare.chars().any(char::is_control), "{:?}", bare);
            prop_assert!(bare.width() <= width, "{:?}", bare);
            prop_assert_eq!(without_ours(&line.text(Some(width), true)), bare);
        }
    }

    #[test]
    fn no_view_passes_anything_on(
        events in prop::collection::vec((event(), 0u64..5000), 0..30),
        rubbish in prop::collection::vec(any::<u8>(), 0..50),
        size: (u16, u16),
        words in text(),
    ) {
        let run = snapshot(json!({"playbook":words,"status":"suspended","at":words,"error":words,"detail":words,"spool":words,
            "approval":{"approval":words,"state":words,"message":words,"hash":words,"by":"human","schema":{"properties":{words.clone():{"type":words}}}}}));
        let mut records: Vec<_> = events.iter().map(|(event, ms)| record(*ms, event)).collect();
        records.push(rubbish);
        for mode in [Mode::Live { color: true }, Mode::Plain { color: true }] {
            let out = Out::default();
            let mut view = View::new(mode, Box::new(out.clone()));
            for record in &records {
                view.record(record);
                view.tick(at(10), size);
            }
            view.finish(&run);
            drop(view);
            harmless(&out.raw());
        }
        let mut out = Vec::new();
        for record in &records {
            view::log_line(record, true, &mut out).unwrap();
        }
        view::runs_table(std::slice::from_ref(&run), at(0), true, &mut out).unwrap();
        view::status_text(&run, at(0), true, &mut out).unwrap();
        harmless(&String::from_utf8(out).unwrap());
        prop_assert!(summary::lines(&run).iter().all(|line| !line.text(None, false).chars().any(char::is_control)));
    }
}

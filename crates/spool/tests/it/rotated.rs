//! Rotation and the shape of files.

use std::fs;

use proptest::prelude::*;
use taffrail_mcp_core::Seq;
use taffrail_spool::{Limits, SpoolFile, segments};
use tempfile::TempDir;

use crate::support::{block, files, line, records, run};

#[test]
fn shape_of_files() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("spool");
    let run = run("01938b7e-2d5a-7000-8000-0123456789ab");
    let limits = Limits { file_bytes: 700, run_bytes: 2100, ..Limits::default() };
    let mut spool = SpoolFile::open(&dir, &run, limits).unwrap();
    for seq in 1..=10 {
        spool.append(&block(&run, seq, &[20])).unwrap();
    }
    let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let mut shown = String::new();
    for name in names {
        let text = fs::read_to_string(dir.join(&name)).unwrap();
        shown.push_str(&format!("== {}\n{text}", name.to_string_lossy()));
    }
    insta::assert_snapshot!("files", shown);
}

#[test]
fn a_reader_always_finds_the_file() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().to_path_buf();
    let run = run("r");
    let limits = Limits { file_bytes: 600, ..Limits::default() };
    let mut spool = SpoolFile::open(&dir, &run, limits).unwrap();
    let path = spool.path().to_path_buf();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (1..=300).for_each(|seq| spool.append(&block(&run, seq, &[200])).unwrap()));
        while !writer.is_finished() {
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.is_empty() || text.starts_with("{\"type\":\"spool-segment\""), "{text}");
        }
    });
    assert_eq!(records(&dir, &run).lines().count(), 300);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn files_hold_the_lines_in_order_and_keep_to_their_limits(
        blocks in prop::collection::vec(prop::collection::vec(0usize..700, 1..12), 1..20),
        file_bytes in 300u64..1500,
        reopen_every in 1usize..8,
    ) {
        let folder = TempDir::new().unwrap();
        let (dir, run) = (folder.path(), run("r"));
        let limits = Limits { file_bytes, ..Limits::default() };
        let mut spool = SpoolFile::open(dir, &run, limits).unwrap();
        let (mut first, mut input) = (1, String::new());
        for (i, pads) in blocks.iter().enumerate() {
            if i % reopen_every == 0 {
                drop(spool);
                spool = SpoolFile::open(dir, &run, limits).unwrap();
                prop_assert_eq!(spool.cursor(), Seq(first - 1));
            }
            spool.append(&block(&run, first, pads)).unwrap();
            input.extend((first..).zip(pads).map(|(seq, &pad)| line(&run, seq, pad)));
            first += pads.len() as u64;
        }
        prop_assert_eq!(records(dir, &run), input);
        for (file, segment) in files(dir, &run).iter().zip(segments(dir, &run).unwrap()) {
            // A first line and at least one record; over the limit only with a single one.
            let lines = file.lines().count();
            prop_assert!(lines >= 2);
            prop_assert!(file.len() as u64 <= file_bytes || lines == 2, "{} of {file_bytes}", file.len());
            let head = segment.head.unwrap();
            let opening = format!("{{\"seq\":{},", head.first);
            prop_assert!(file.lines().nth(1).unwrap().starts_with(&opening));
            prop_assert_eq!(head.dropped_to, Seq(0));
            prop_assert_eq!(segment.bytes, file.len() as u64);
        }
    }

    #[test]
    fn a_run_keeps_to_its_limit_and_loses_only_its_beginning(
        pads in prop::collection::vec(0usize..200, 1..120),
        file_bytes in 500u64..1500,
        files_in_run in 2u64..5,
    ) {
        let folder = TempDir::new().unwrap();
        let (dir, run) = (folder.path(), run("r"));
        let limits = Limits { file_bytes, run_bytes: file_bytes * files_in_run, ..Limits::default() };
        let mut spool = SpoolFile::open(dir, &run, limits).unwrap();
        let mut input = String::new();
        for (seq, &pad) in (1..).zip(&pads) {
            spool.append(&block(&run, seq, &[pad])).unwrap();
            input.push_str(&line(&run, seq, pad));
            let bytes: usize = files(dir, &run).iter().map(String::len).sum();
            prop_assert!(bytes as u64 <= limits.run_bytes);
        }
        prop_assert!(input.ends_with(&records(dir, &run)));
        let heads: Vec<_> = segments(dir, &run).unwrap().into_iter().filter_map(|segment| segment.head).collect();
        prop_assert_eq!(heads.last().unwrap().dropped_to, Seq(heads[0].first.0 - 1));
    }
}

use std::time::Duration;

use super::*;

fn limits(file: u64, run: u64) -> Limits {
    Limits { file_bytes: file, run_bytes: run, ..Limits::default() }
}

const HEAD: u64 = SegmentHead::MAX_LEN as u64;

#[test]
fn lines_stay_together_and_files_stay_small() {
    let check = |bytes, records, after_gap, lines: &str, expected| {
        let fill = Fill { bytes, records, after_gap };
        let limits = limits(HEAD + 10, u64::MAX);
        assert_eq!(place(&limits, fill, lines.as_bytes()), expected, "{fill:?} {lines:?}");
    };
    // An empty file keeps room for its first line.
    check(0, false, false, "aaaa\nbbbb\n", Place::Here(10));
    check(0, false, false, "aaaa\nbbbb\nc\n", Place::Here(10));
    // A file goes up to its limit, to the byte, then a new one takes the rest.
    check(HEAD, true, false, "aaaa\nbbbb\n", Place::Here(10));
    check(HEAD + 1, true, false, "aaaa\nbbbb\n", Place::Here(5));
    check(HEAD + 5, true, false, "aaaa\nbbbb\n", Place::Here(5));
    check(HEAD + 6, true, false, "aaaa\nbbbb\n", Place::NewFile(10));
    check(HEAD + 99, true, false, "aaaa\n", Place::NewFile(5));
    // A line larger than any file has one for itself.
    check(0, false, false, "aaaaaaaaaaaaaa\nb\n", Place::Here(15));
    check(HEAD + 2, true, false, "aaaaaaaaaaaaaa\nb\n", Place::NewFile(15));
    // A first line without a record, which a crash left, is no reason for another file.
    check(HEAD, false, false, "aaaaaaaaaaaaaa\nb\n", Place::Here(15));
    // After a gap a new file, unless this one has nothing yet.
    check(HEAD, true, true, "aaaa\nbbbb\n", Place::NewFile(10));
    check(0, false, true, "aaaa\n", Place::Here(5));
}

#[test]
fn a_run_leaves_room_for_its_next_file() {
    assert_eq!(drops(&limits(10, 40), &[10, 10, 10]), 0);
    assert_eq!(drops(&limits(10, 40), &[1, 10, 10, 10]), 1);
    assert_eq!(drops(&limits(10, 40), &[10, 10, 10, 10, 10]), 2);
    assert_eq!(drops(&limits(10, 40), &[]), 0);
    // Files are at most half a run, so that the last one stays …
    assert_eq!(drops(&limits(100, 40), &[20]), 0);
    assert_eq!(drops(&limits(100, 40), &[20, 20]), 1);
    // … except when a single record made it larger than that.
    assert_eq!(drops(&limits(10, 40), &[5, 35]), 2);
}

/// Pieces from `run number bytes age live?`, age in seconds; checks which go, in order, as indices.
fn check_sweep(limits: Limits, pieces: &[(usize, u32, u64, u64, bool)], expected: &[usize]) {
    let now = Timestamp::from_micros(1_000_000_000_000);
    let pieces: Vec<Piece> = pieces
        .iter()
        .map(|&(run, number, bytes, age, live)| {
            let modified = Timestamp::from_micros(now.micros() - age * 1_000_000);
            Piece { run, number, bytes, modified, live }
        })
        .collect();
    assert_eq!(sweep(&limits, now, &pieces), expected);
}

#[test]
fn nothing_goes_below_the_limits() {
    check_sweep(Limits::default(), &[], &[]);
    check_sweep(Limits::default(), &[(0, 1, 5, 9, true), (0, 0, 5, 1, true), (1, 0, 7, 100, false)], &[]);
}

#[test]
fn old_files_go_except_the_newest_of_a_live_run() {
    let limits = Limits { age: Duration::from_secs(10), ..Limits::default() };
    let pieces = [(0, 1, 5, 30, true), (0, 0, 5, 20, true), (1, 1, 5, 30, false), (1, 0, 5, 20, false)];
    check_sweep(limits, &pieces, &[0, 2, 3]);
    check_sweep(limits, &[(0, 0, 5, 10, false), (1, 0, 5, 11, false)], &[1]);
    // No hole: a file that looks older than the one before it stays as long as that one.
    check_sweep(limits, &[(0, 2, 5, 5, false), (0, 1, 5, 30, false), (0, 0, 5, 3, false)], &[]);
}

#[test]
fn a_run_above_its_limit_loses_its_oldest_but_never_its_newest() {
    let pieces = [(0, 2, 40, 3, false), (0, 1, 40, 2, false), (0, 0, 40, 1, false), (1, 0, 999, 1, false)];
    check_sweep(limits(40, 100), &pieces, &[0]);
    check_sweep(limits(40, 10), &pieces, &[0, 1]);
}

#[test]
fn all_runs_above_their_limit_lose_finished_ones_first() {
    let pieces = [
        (0, 1, 10, 90, true),
        (0, 0, 10, 80, true),
        (1, 2, 10, 30, false),
        (1, 1, 10, 20, false),
        (1, 0, 10, 10, false),
        (2, 1, 10, 25, false),
        (2, 0, 10, 15, false),
    ];
    let total = |total_bytes| Limits { total_bytes, ..Limits::default() };
    check_sweep(total(70), &pieces, &[]);
    check_sweep(total(69), &pieces, &[2]);
    check_sweep(total(50), &pieces, &[2, 5]);
    check_sweep(total(40), &pieces, &[2, 5, 3]);
    check_sweep(total(30), &pieces, &[2, 5, 3, 0]);
    check_sweep(total(20), &pieces, &[2, 5, 3, 0, 6]);
    check_sweep(total(0), &pieces, &[2, 5, 3, 0, 6, 4]);
}

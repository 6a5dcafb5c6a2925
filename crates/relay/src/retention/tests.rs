//! What goes and what stays, on timelines of hours.

use super::*;
use crate::Extent;

const NOW: u64 = 1000;

fn hours_ago(hours: u64) -> Timestamp {
    Timestamp::from_micros((NOW - hours) * 3_600_000_000)
}

fn hours(n: u64) -> Option<Duration> {
    Some(Duration::from_secs(n * 3600))
}

/// A thread of a hundred records.
fn usage(name: &str, age: u64, bytes: u64) -> ThreadUsage {
    ThreadUsage {
        thread: ThreadId::new(name).unwrap(),
        extent: Extent { first: Seq(1), head: Seq(100) },
        bytes,
        stored_bytes: bytes,
        updated: hours_ago(age),
        trimmed: Trimmed::default(),
    }
}

fn span(run: &str, first: u64, last: u64, age: u64, status: RunStatus) -> Span {
    let run = RunId::new(run).unwrap();
    Span { run, first: Seq(first), last: Seq(last), updated: hours_ago(age), status }
}

#[track_caller]
fn check(retention: Retention, survey: &Survey, expected: &[(&str, u64)]) {
    let cuts = retention.plan(survey, Timestamp::from_micros(NOW * 3_600_000_000));
    assert_eq!(cuts.iter().map(|c| (c.thread.as_str(), c.through.0)).collect::<Vec<_>>(), expected);
}

fn survey(threads: Vec<ThreadUsage>, spans: Vec<(&str, Span)>) -> Survey {
    let mut survey = Survey { threads, ..Survey::default() };
    for (thread, span) in spans {
        survey.runs.entry(ThreadId::new(thread).unwrap()).or_default().push(span);
    }
    survey
}

#[test]
fn age_bytes_and_what_stays() {
    let threads = vec![usage("live", 90, 10), usage("old", 50, 10), usage("middle", 20, 10), usage("new", 1, 10)];
    let survey = survey(threads, vec![("live", span("live", 1, 100, 90, RunStatus::Running))]);
    check(Retention::default(), &survey, &[]);
    check(Retention { max_age: hours(30), ..Retention::default() }, &survey, &[("old", 100)]);
    check(Retention { max_bytes: Some(25), ..Retention::default() }, &survey, &[("old", 100), ("middle", 100)]);
    check(
        Retention { max_bytes: Some(0), keep_records: 30, ..Retention::default() },
        &survey,
        &[("old", 70), ("middle", 70), ("new", 70)],
    );
    check(Retention { max_age: hours(0), keep_records: 100, ..Retention::default() }, &survey, &[]);
}

/// What stays of a thread does not count as removed.
#[test]
fn bytes_go_until_it_is_enough() {
    let threads = || vec![usage("a", 50, 100), usage("b", 40, 100), usage("c", 30, 100)];
    let retention = |max_bytes| Retention { max_bytes: Some(max_bytes), keep_records: 50, ..Retention::default() };
    check(retention(300), &survey(threads(), vec![]), &[]);
    check(retention(260), &survey(threads(), vec![]), &[("a", 50)]);
    check(retention(240), &survey(threads(), vec![]), &[("a", 50), ("b", 50)]);
    check(retention(100), &survey(threads(), vec![]), &[("a", 50), ("b", 50), ("c", 50)]);
}

#[test]
fn a_run_that_can_go_on_stays_until_it_is_old() {
    for (status, stays) in [
        (RunStatus::Running, true),
        (RunStatus::Suspended, true),
        (RunStatus::Interrupted, false),
        (RunStatus::Halt, false),
    ] {
        let survey = survey(vec![usage("t", 50, 10)], vec![("t", span("r", 1, 100, 50, status))]);
        let gone: &[_] = if stays { &[] } else { &[("t", 100)] };
        check(Retention { max_age: hours(30), ..Retention::default() }, &survey, gone);
        // Room alone is no reason to remove what somebody may want to resume.
        let gone: &[_] = if status.is_final() { &[("t", 100)] } else { &[] };
        check(Retention { max_bytes: Some(0), ..Retention::default() }, &survey, gone);
        check(Retention { max_bytes: Some(0), max_age: hours(60), ..Retention::default() }, &survey, gone);
    }
}

#[test]
fn interrupted_runs_that_go_are_named() {
    let spans = vec![
        ("t", span("lost", 1, 50, 50, RunStatus::Interrupted)),
        ("t", span("done", 51, 60, 50, RunStatus::Done)),
        ("t", span("lost-too", 61, 100, 50, RunStatus::Interrupted)),
    ];
    let survey = survey(vec![usage("t", 50, 10)], spans);
    let retention = Retention { max_age: hours(30), keep_records: 45, ..Retention::default() };
    let cuts = retention.plan(&survey, Timestamp::from_micros(NOW * 3_600_000_000));
    assert_eq!(cuts[0].resting.iter().map(|span| span.run.as_str()).collect::<Vec<_>>(), ["lost"]);
    assert_eq!(cuts[0].most(), Trimmed { records: 55, bytes: 5 });
}

#[test]
fn only_what_comes_before_a_live_run_goes() {
    let spans = vec![
        ("t", span("done", 1, 40, 50, RunStatus::Done)),
        ("t", span("live", 31, 100, 1, RunStatus::Running)),
        ("t", span("young", 20, 30, 2, RunStatus::Done)),
    ];
    let all = Survey { complete: true, ..survey(vec![usage("t", 1, 100)], spans) };
    check(Retention { max_bytes: Some(10), ..Retention::default() }, &all, &[("t", 30)]);
    check(Retention { max_age: hours(30), ..Retention::default() }, &all, &[]);
}

#[test]
fn old_runs_of_a_thread_that_goes_on_go_once_all_runs_are_known() {
    let spans = vec![
        ("t", span("first", 1, 20, 50, RunStatus::Done)),
        ("t", span("second", 15, 40, 45, RunStatus::Halt)),
        ("t", span("third", 41, 70, 40, RunStatus::Cancelled)),
        ("t", span("young", 60, 90, 2, RunStatus::Done)),
        ("t", span("live", 91, 100, 1, RunStatus::Running)),
    ];
    let retention = Retention { max_age: hours(30), ..Retention::default() };
    let some = survey(vec![usage("t", 1, 100)], spans);
    check(retention, &some, &[]);
    // The third ends among records of a young one.
    check(retention, &Survey { complete: true, ..some }, &[("t", 40)]);
    // Records of runs that are not known any more say nothing of their age.
    let unknown = Survey { complete: true, ..survey(vec![usage("t", 1, 100)], vec![]) };
    check(retention, &unknown, &[]);
}

//! Windows: limits, filters, tails, waiting, gaps.

use std::time::Duration;

use taffrail_mcp_core::{EventSink, Record, RunFinished, RunStart, RunStatus, Seq, Start, Stream, Usage};
use taffrail_relay::{Delivery, Filter, Page, PageQuery, Pattern, Relay};

use crate::support::{log, memory, note, run, text, thread};

/// 1 run-start, 2..=101 lines alternating between two states and streams, flushed in blocks of ten.
async fn hundred() -> Relay {
    let relay = memory();
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    publisher
        .emit(RunStart { machine: "m".into(), depth: 0, entry: "s".into(), resumed: false, external: false }.into());
    for i in 0..100 {
        let (state, stream) = if i % 2 == 0 { ("even", Stream::Stdout) } else { ("odd", Stream::Stderr) };
        publisher.emit(log(state, stream, &format!("line {i}")));
        if i % 10 == 9 {
            publisher.flush().await.unwrap();
        }
    }
    relay
}

async fn finish(relay: &Relay) {
    let end = RunFinished {
        machine: "m".into(),
        depth: 0,
        status: RunStatus::Done,
        error: None,
        at: None,
        usage: Usage::default(),
        detail: None,
    };
    relay.commit(&thread(), &run("r"), &[end.into()], None).await.unwrap();
}

fn texts(page: &Page) -> Vec<String> {
    page.lines.iter().map(|line| text(&Record::parse(line).unwrap())).collect()
}

fn of_run() -> PageQuery {
    PageQuery { filter: Filter { run: Some(run("r")), ..Filter::default() }, ..PageQuery::default() }
}

#[tokio::test]
async fn pages_join_to_the_whole_log() {
    let relay = hundred().await;
    finish(&relay).await;
    for limit in [1, 3, 10, 200] {
        let (mut start, mut seen, mut done) = (Start::Beginning, Vec::new(), false);
        while !done {
            let page = relay.page(&thread(), &PageQuery { start, limit, ..of_run() }).await.unwrap();
            assert!(page.lines.len() <= limit);
            assert_eq!((page.meta.first, page.meta.head), (Seq(1), Seq(102)));
            seen.extend(page.lines.iter().map(|line| Record::parse(line).unwrap().seq.0));
            start = Start::After(page.meta.next);
            done = page.meta.done;
        }
        assert_eq!(seen, (1..=102).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn filters_count_what_they_looked_at() {
    let relay = hundred().await;
    let check = async |filter: Filter, matched: u64, first: &str| {
        let page = relay.page(&thread(), &PageQuery { filter, ..PageQuery::default() }).await.unwrap();
        assert_eq!((page.meta.matched, page.meta.scanned), (matched, 101));
        assert_eq!(texts(&page)[0], first);
        assert!(!page.meta.done);
    };
    check(Filter { state: Some("odd".into()), ..Filter::default() }, 50, "line 1").await;
    check(Filter { stream: Some("stdout".into()), ..Filter::default() }, 50, "line 0").await;
    check(Filter { types: vec!["run-start".into()], ..Filter::default() }, 1, "run-start").await;
    check(Filter { grep: Some(Pattern::new("line 9.").unwrap()), ..Filter::default() }, 10, "line 90").await;
}

#[tokio::test]
async fn a_page_is_cut_at_its_bytes_but_never_empty() {
    let relay = hundred().await;
    let page = relay.page(&thread(), &PageQuery { max_bytes: 1, ..PageQuery::default() }).await.unwrap();
    assert_eq!((page.lines.len(), page.meta.next), (1, Seq(1)));
    let page = relay.page(&thread(), &PageQuery { max_bytes: 1000, ..PageQuery::default() }).await.unwrap();
    let bytes: usize = page.lines.iter().map(|line| line.len()).sum();
    assert!(bytes <= 1000 && page.lines.len() > 3);
    let next = PageQuery { start: Start::After(page.meta.next), limit: 1, ..PageQuery::default() };
    let next = relay.page(&thread(), &next).await.unwrap();
    assert_eq!(Record::parse(&next.lines[0]).unwrap().seq, page.meta.next.next());
}

#[tokio::test]
async fn the_tail_is_the_last_that_match() {
    let relay = hundred().await;
    let tail = |tail, filter| PageQuery { tail: Some(tail), filter, ..PageQuery::default() };
    let page = relay.page(&thread(), &tail(3, Filter::default())).await.unwrap();
    assert_eq!(texts(&page), ["line 97", "line 98", "line 99"]);
    assert_eq!(page.meta.next, Seq(101));
    let odd = Filter { state: Some("odd".into()), ..Filter::default() };
    let page = relay.page(&thread(), &tail(20, odd)).await.unwrap();
    assert_eq!((page.lines.len(), texts(&page)[0].as_str()), (20, "line 61"));
    let page = relay.page(&thread(), &tail(1000, Filter::default())).await.unwrap();
    assert_eq!(page.lines.len(), 101);
}

#[tokio::test]
async fn waiting_ends_with_a_match_and_not_with_others() {
    let relay = hundred().await;
    let filter = Filter { grep: Some(Pattern::new("needle").unwrap()), ..Filter::default() };
    let query = PageQuery { start: Start::Live, filter, wait: Duration::from_secs(60), ..PageQuery::default() };
    let waiting = {
        let relay = relay.clone();
        tokio::spawn(async move { relay.page(&thread(), &query).await.unwrap() })
    };
    let publisher = relay.publisher(&thread(), &run("r")).await.unwrap();
    // The page begins where the log is when it is asked: words are repeated until it answers.
    let mut needles = 0;
    while !waiting.is_finished() {
        publisher.emit(note("hay"));
        publisher.emit(log("s", Stream::Stdout, "a needle"));
        needles += 1;
        publisher.flush().await.unwrap();
        tokio::task::yield_now().await;
    }
    let page = waiting.await.unwrap();
    assert!(page.meta.matched >= 1 && page.meta.matched <= needles);
    assert!(texts(&page).iter().all(|text| text == "a needle"));
}

#[tokio::test]
async fn waiting_on_a_finished_run_ends_at_once() {
    let relay = hundred().await;
    finish(&relay).await;
    let query = PageQuery { start: Start::After(Seq(102)), wait: Duration::from_secs(3600), ..of_run() };
    let page = tokio::time::timeout(Duration::from_secs(5), relay.page(&thread(), &query)).await.unwrap().unwrap();
    assert!(page.meta.done && page.lines.is_empty());
}

#[tokio::test]
async fn what_retention_removed_is_told_exactly() {
    let relay = hundred().await;
    relay.store().trim(thread(), Seq(45)).await.unwrap();
    let first = relay.extent(&thread()).await.unwrap().first;
    assert!(first > Seq(30) && first <= Seq(46), "{first}: whole blocks up to 45");
    // A fresh process: nothing in memory.
    let fresh = Relay::start(relay.store().clone(), Default::default()).unwrap();
    let mut follower = fresh.follow(&thread(), None, Start::After(Seq(3))).await.unwrap();
    let Delivery::Gap(gap) = follower.next().await.unwrap() else { panic!("no gap") };
    assert_eq!((gap.from, gap.to, gap.next), (Seq(4), Seq(first.0 - 1), Seq(first.0 - 1)));
    let Delivery::Blocks(blocks) = follower.next().await.unwrap() else { panic!("two gaps") };
    assert_eq!(blocks[0].first, first);
    let page = fresh.page(&thread(), &PageQuery::default()).await.unwrap();
    assert_eq!(page.gap.unwrap().from, Seq(1));
    assert_eq!((page.meta.first, page.lines.len() as u64), (first, 102 - first.0));
}

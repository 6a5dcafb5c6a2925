use bytes::Bytes;
use proptest::{collection::vec, prelude::*};
use taffrail_mcp_core::{Event, Gap, Message, Note, RecordHead, RunId, Timestamp};

use super::*;

fn thread() -> ThreadId {
    ThreadId::new("t").unwrap()
}

/// Records `first`, `first + 1`, … of a log whose every record is what its position says.
fn block(first: u64, count: u64) -> Block {
    let run = RunId::new("r").unwrap();
    let mut bytes = Vec::new();
    for seq in first..first + count {
        let head = RecordHead { seq: Seq(seq), thread: &thread(), run: &run, ts: Timestamp::from_micros(seq) };
        let event: Event = match seq % 3 {
            0 => Note::info(format!("{seq}")).into(),
            // Now and then one that few others are put together with.
            _ => Message {
                role: "m".into(),
                text: "x".repeat(if seq % 7 == 0 { TOGETHER_BYTES / 3 } else { 10 }),
                delta: false,
            }
            .into(),
        };
        head.encode(&event, &mut bytes);
    }
    Block { run, first: Seq(first), count, ts: Timestamp::from_micros(first + count), bytes: bytes.into() }
}

fn session(filter: Option<Filter>, after: u64) -> Session {
    Session::new(thread(), filter, Seq(after))
}

fn run(session: &mut Session, cache: &FrameCache, blocks: Vec<Block>) -> Vec<Bytes> {
    let mut frames = Vec::new();
    session.deliver(&Delivery::Blocks(blocks), cache, &mut |frame| frames.push(frame));
    frames
}

/// The whole log up to `last` in deliveries of blocks of these sizes, a stream beginning after `after`.
fn stream(last: u64, after: u64, sizes: &[(u64, bool)], filter: Option<Filter>, cache: &FrameCache) -> Vec<u8> {
    let mut session = session(filter, after);
    let (mut out, mut blocks, mut next) = (Vec::new(), Vec::new(), after + 1);
    for (size, together) in sizes.iter().cycle() {
        if next > last {
            break;
        }
        let count = (*size).min(last + 1 - next);
        blocks.push(block(next, count));
        next += count;
        if !together {
            out.extend(run(&mut session, cache, std::mem::take(&mut blocks)).concat());
        }
    }
    out.extend(run(&mut session, cache, blocks).concat());
    out
}

fn notes() -> Option<Filter> {
    Some(Filter { types: vec!["note".into()], ..Filter::default() })
}

proptest! {
    #[test]
    fn any_split_into_blocks_and_deliveries_is_the_same_stream(
        sizes in vec((1..9u64, any::<bool>()), 1..6), last in 1..60u64, filtered in any::<bool>(),
    ) {
        let cache = FrameCache::new(20_000);
        let filter = || if filtered { notes() } else { None };
        let whole = stream(last, 0, &[(last, false)], filter(), &cache);
        prop_assert_eq!(stream(last, 0, &sizes, filter(), &cache), whole);
    }

    #[test]
    fn who_connects_again_anywhere_goes_on_exactly(
        sizes in vec((1..9u64, any::<bool>()), 1..6), last in 1..60u64, cut in 0..60u64,
    ) {
        let cache = FrameCache::new(20_000);
        let cut = cut.min(last);
        let whole = stream(last, 0, &[(last, false)], None, &cache);
        let rest = stream(last, cut, &sizes, None, &cache);
        prop_assert!(whole.ends_with(&rest));
        let events = |bytes: &[u8]| bytes.windows(2).filter(|two| two == b"\n\n").count() as u64;
        prop_assert_eq!((events(&rest), events(&whole)), (last - cut, last));
    }
}

#[test]
fn one_block_is_handed_out_as_it_was_framed() {
    let cache = FrameCache::default();
    let [one, two] = [0, 1].map(|_| run(&mut session(None, 0), &cache, vec![block(1, 3)]));
    assert_eq!((one.len(), one[0].as_ptr()), (1, two[0].as_ptr()));
    // So is what is put together, up to a size.
    let blocks = || [1, 2, 7, 8, 14, 28, 35].map(|seq| block(seq, 1)).to_vec();
    let [one, two] = [0, 1].map(|_| run(&mut session(None, 0), &cache, blocks()));
    assert_eq!(
        one.iter().map(|frame| frame.as_ptr()).collect::<Vec<_>>(),
        two.iter().map(|frame| frame.as_ptr()).collect::<Vec<_>>()
    );
    assert_eq!(one.len(), 2);
    assert!(one[1].starts_with(b"id: 28\n"));
}

#[test]
fn what_a_filter_leaves_out_still_moves_the_cursor() {
    let cache = FrameCache::default();
    let filter = Some(Filter { types: vec!["nothing".into()], ..Filter::default() });
    let mut session = session(filter, 0);
    assert!(run(&mut session, &cache, vec![block(1, 100)]).is_empty());
    assert_eq!(session.silence(Seq(100)), frame::passed(Seq(100)));
    assert_eq!(session.silence(Seq(100)), frame::ALIVE);
    let mut told = Vec::new();
    let mut next = 101;
    while told.is_empty() {
        told = run(&mut session, &cache, vec![block(next, 100)]);
        next += 100;
    }
    assert_eq!((next - 101, told), (4100, vec![frame::passed(Seq(4200))]));
}

#[test]
fn a_gap_is_told_and_the_stream_goes_on_after_it() {
    let cache = FrameCache::default();
    let mut session = session(None, 2);
    let gap = Gap::retention(thread(), Seq(2), Seq(8)).unwrap();
    let mut frames = Vec::new();
    session.deliver(&Delivery::Gap(gap), &cache, &mut |frame| frames.push(frame));
    assert!(frames.concat().starts_with(b"event: gap\nid: 7\n"));
    // Whether the run is over has to be asked then: the record that said so may be gone.
    assert!(session.rests());
    session.goes_on();
    assert!(run(&mut session, &cache, vec![block(8, 1)])[0].starts_with(b"id: 8\n") && !session.rests());
    assert_eq!(session.silence(Seq(8)), frame::ALIVE);
}

//! Makes what the cases append, and reads it back.

use bytes::Bytes;
use taffrail_mcp_core::{
    ApprovalRequested, Approver, CancelRequested, Event, Exit, Reason, RunFold, RunId, RunStatus, Seq, ThreadId,
    Timestamp, Usage,
};
use taffrail_relay::{Append, Appended, Block, ReadBlocks, Store};

/// A run.
///
/// # Panics
///
/// When it is not a valid id.
pub fn run_id(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

/// A thread.
///
/// # Panics
///
/// When it is not a valid id.
pub fn thread_id(id: &str) -> ThreadId {
    ThreadId::new(id).unwrap()
}

/// A block of these lines, newlines not included.
pub fn block(run: &str, first: u64, lines: &[impl AsRef<[u8]>]) -> Block {
    let mut bytes = Vec::new();
    for line in lines {
        bytes.extend_from_slice(line.as_ref());
        bytes.push(b'\n');
    }
    let count = lines.len() as u64;
    Block { run: run_id(run), first: Seq(first), count, ts: Timestamp::from_micros(first * 1000), bytes: bytes.into() }
}

/// A block of `count` lines that say where they are and whose.
pub fn numbered(run: &str, first: u64, count: u64) -> Block {
    let lines: Vec<String> = (first..first + count).map(|seq| format!(r#"{{"seq":{seq},"run":"{run}"}}"#)).collect();
    block(run, first, &lines)
}

/// Consecutive numbered blocks of one run after `expected`.
pub fn blocks(run: &str, expected: u64, counts: &[u64]) -> Vec<Block> {
    let mut next = expected + 1;
    counts.iter().map(|&count| (numbered(run, next, count), next += count).0).collect()
}

/// An append without runs and claim.
pub fn append(thread: &str, expected: u64, blocks: Vec<Block>) -> Append {
    Append { thread: thread_id(thread), expected: Seq(expected), blocks, runs: Vec::new(), claim: None }
}

/// Appends one thing and returns what became of it.
///
/// # Panics
///
/// When the store fails.
pub async fn put(store: &dyn Store, append: Append) -> Appended {
    let mut answers = store.append(vec![append]).await.unwrap();
    assert_eq!(answers.len(), 1, "one answer for one append");
    answers.remove(0)
}

/// A query for everything in a thread.
pub fn all_of(thread: &str) -> ReadBlocks {
    ReadBlocks {
        thread: thread_id(thread),
        after: Seq::START,
        until: Seq(u64::MAX),
        run: None,
        max_bytes: usize::MAX,
        backwards: false,
    }
}

/// All lines of blocks, each with its newline.
pub fn lines(blocks: &[Block]) -> Vec<Bytes> {
    blocks.iter().flat_map(|block| block.lines().collect::<Vec<_>>()).collect()
}

/// The state of a run with something in every field.
pub fn fold(run: &str, thread: &str, status: RunStatus) -> RunFold {
    let mut fold = RunFold::new(run_id(run), thread_id(thread));
    fold.wrote(Seq(3), Timestamp::from_micros(1_796_023_967_123_456), 7, 1 << 40);
    let request = ApprovalRequested {
        approval: "a-1".into(),
        state: "agree".into(),
        message: "Deploy \"é\" 🚀\u{0}\\?\nReally?".into(),
        schema: Some(serde_json::json!({"type": "object", "n": [1, null, true, "x"]})),
        hash: "00ff".into(),
        by: Approver::Human,
    };
    fold.apply(Seq(3), fold.updated_at, &Event::from(request));
    fold.playbook = "release".into();
    fold.status = status;
    fold.state = Some("agree".into());
    fold.error = Some(Reason::GATE_FAILED);
    fold.detail = Some("‘x’ is not \t a number".into());
    fold.at = Some("agree".into());
    fold.checkpoint = Some(("c-1".into(), Seq(u64::from(u32::MAX) + 1)));
    fold.cancel = Some(CancelRequested { actor: "me".into(), reason: Some("later".into()), kill: true });
    fold.usage = Usage { steps: 1, wall_ms: 2, log_lines: 3, log_bytes: 4, clipped_lines: 5, clipped_bytes: u64::MAX };
    fold.exit = Some(Exit::Signal("SIGKILL".into()));
    fold
}

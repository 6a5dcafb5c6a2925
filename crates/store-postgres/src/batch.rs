//! Several appends as the parameters of one statement.

use tokio_postgres::types::ToSql;

use crate::prepare::Prepared;

/// Applies a batch; the function and its parameters are in `schema/1.sql`.
pub(crate) const APPEND: &str = "
SELECT answers, heads, claimed FROM {schema}.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
    $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33)";

/// Columns of a batch.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    /// Some of it may have lost a race for numbers in the batch before.
    again: bool,
    /// Where each column of an append comes from: its place among the appends as they were given.
    order: Vec<usize>,
    threads: Threads<'a>,
    appends: Appends,
    claims: Claims<'a>,
    blocks: Blocks<'a>,
    runs: Runs<'a>,
}

/// Each thread once, ascending.
#[derive(Debug, Default)]
struct Threads<'a> {
    name: Vec<&'a str>,
    fresh: Option<Vec<&'a str>>,
    from: Vec<i32>,
    to: Vec<i32>,
    expected: Vec<i64>,
    head: Vec<i64>,
    raw: Vec<i64>,
    stored: Vec<i64>,
    updated: Vec<Option<i64>>,
}

/// Appends by thread; those of one thread in their order.
#[derive(Debug, Default)]
struct Appends {
    thread: Vec<i32>,
    order: Vec<i32>,
    expected: Vec<i64>,
    head: Vec<i64>,
    raw: Vec<i64>,
    stored: Vec<i64>,
    updated: Vec<Option<i64>>,
}

/// Claims of appends; `None` when no append has one.
#[derive(Debug, Default)]
struct Claims<'a> {
    key: Option<Vec<Option<&'a [u8]>>>,
    value: Option<Vec<Option<&'a [u8]>>>,
    claimant: Option<Vec<Option<&'a str>>>,
}

#[derive(Debug, Default)]
struct Blocks<'a> {
    append: Vec<i32>,
    first: Vec<i64>,
    count: Vec<i32>,
    ts: Vec<i64>,
    run: Vec<Option<&'a str>>,
    codec: Vec<i16>,
    raw: Vec<i32>,
    bytes: Vec<&'a [u8]>,
}

/// States of runs, in the order of the calls.
#[derive(Debug, Default)]
struct Runs<'a> {
    append: Vec<i32>,
    run: Vec<&'a str>,
    thread: Vec<&'a str>,
    status: Vec<&'a str>,
    fold: Vec<&'a [u8]>,
}

impl<'a> Batch<'a> {
    /// The columns of these appends.
    pub(crate) fn new(given: &[&'a Prepared], again: bool) -> Self {
        let mut all: Vec<(usize, &'a Prepared)> = given.iter().copied().enumerate().collect();
        // Keeps the order of those of one thread.
        all.sort_by(|(_, a), (_, b)| a.thread.as_str().cmp(b.thread.as_str()));
        let mut batch = Self {
            again,
            order: all.iter().map(|(at, _)| *at).collect(),
            threads: Threads::default(),
            appends: Appends::default(),
            claims: Claims::new(&all),
            blocks: Blocks::default(),
            runs: Runs::default(),
        };
        for of_thread in all.chunk_by(|(_, a), (_, b)| a.thread == b.thread) {
            batch.push_thread(of_thread);
        }
        // SQL counts from 1.
        let mut by_call: Vec<(usize, i32)> = batch.order.iter().copied().zip(1..).collect();
        by_call.sort_unstable();
        batch.appends.order = by_call.into_iter().map(|(_, number)| number).collect();
        for (append, number) in given.iter().zip(&batch.appends.order) {
            batch.runs.push(append, *number);
        }
        batch
    }

    /// Answers as the function gives them, in the order in which the appends were given.
    pub(crate) fn in_order_of_calls<T>(&self, answers: Vec<T>) -> Vec<T> {
        let mut numbered: Vec<(usize, T)> = self.order.iter().copied().zip(answers).collect();
        numbered.sort_by_key(|(at, _)| *at);
        numbered.into_iter().map(|(_, answer)| answer).collect()
    }

    fn push_thread(&mut self, appends: &[(usize, &'a Prepared)]) {
        let (Some((_, first)), Some((_, last))) = (appends.first(), appends.last()) else { return };
        let name = first.thread.as_str();
        let is_chain = appends.windows(2).all(|pair| match pair {
            [(_, before), (_, after)] => before.head == after.expected,
            _ => true,
        });
        let threads = &mut self.threads;
        let from = self.appends.thread.len() as i32 + 1;
        threads.name.push(name);
        threads.from.push(from);
        // No thread has a negative head: one that is none makes the function look at each append.
        threads.expected.push(if is_chain { first.expected } else { -1 });
        threads.head.push(last.head);
        if appends.iter().any(|(_, append)| append.expected == 0) {
            threads.fresh.get_or_insert_default().push(name);
        }
        let (mut raw, mut stored, mut updated) = (0, 0, None);
        for ((_, append), number) in appends.iter().zip(from..) {
            self.appends.push(append, threads.name.len() as i32);
            self.blocks.push(append, number);
            raw += append.raw();
            stored += append.stored();
            updated = append.updated().or(updated);
        }
        threads.to.push(self.appends.thread.len() as i32);
        threads.raw.push(raw);
        threads.stored.push(stored);
        threads.updated.push(updated);
    }

    /// The parameters of [`APPEND`].
    pub(crate) fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        let Self { again, order: _, threads: t, appends: a, claims: c, blocks: b, runs: r } = self;
        vec![
            again,
            //
            &t.name,
            &t.fresh,
            &t.from,
            &t.to,
            &t.expected,
            &t.head,
            &t.raw,
            &t.stored,
            &t.updated,
            //
            &a.thread,
            &a.order,
            &a.expected,
            &a.head,
            &a.raw,
            &a.stored,
            &a.updated,
            //
            &c.key,
            &c.value,
            &c.claimant,
            //
            &b.append,
            &b.first,
            &b.count,
            &b.ts,
            &b.run,
            &b.codec,
            &b.raw,
            &b.bytes,
            //
            &r.append,
            &r.run,
            &r.thread,
            &r.status,
            &r.fold,
        ]
    }
}

impl Appends {
    fn push(&mut self, append: &Prepared, thread: i32) {
        self.thread.push(thread);
        self.expected.push(append.expected);
        self.head.push(append.head);
        self.raw.push(append.raw());
        self.stored.push(append.stored());
        self.updated.push(append.updated());
    }
}

impl<'a> Claims<'a> {
    fn new(all: &[(usize, &'a Prepared)]) -> Self {
        if all.iter().all(|(_, append)| append.claim.is_none()) {
            return Self::default();
        }
        let claims = || all.iter().map(|(_, append)| append.claim.as_ref());
        Self {
            key: Some(claims().map(|claim| claim.map(|claim| claim.key.as_bytes())).collect()),
            value: Some(claims().map(|claim| claim.map(|claim| claim.value.as_bytes())).collect()),
            claimant: Some(all.iter().map(|(_, append)| append.claimant.as_ref().map(|run| run.as_str())).collect()),
        }
    }
}

impl<'a> Blocks<'a> {
    fn push(&mut self, append: &'a Prepared, number: i32) {
        for row in &append.rows {
            self.append.push(number);
            self.first.push(row.first);
            self.count.push(row.count);
            self.ts.push(row.ts);
            self.run.push(row.run.as_ref().map(|run| run.as_str()));
            self.codec.push(row.packed.codec);
            self.raw.push(row.raw);
            self.bytes.push(&row.packed.bytes);
        }
    }
}

impl<'a> Runs<'a> {
    fn push(&mut self, append: &'a Prepared, number: i32) {
        for run in &append.runs {
            self.append.push(number);
            self.run.push(run.run.as_str());
            self.thread.push(run.thread.as_str());
            self.status.push(run.status);
            self.fold.push(&run.fold);
        }
    }
}

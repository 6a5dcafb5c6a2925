//! Several appends as the parameters of one statement.

use bytes::Bytes;
use tokio_postgres::types::ToSql;

use crate::prepare::Prepared;

/// Applies a batch; the function is in `schema/1.sql`.
pub(crate) const APPEND: &str =
    "SELECT answers, heads, claimed FROM {schema}.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
    $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30)";

/// Columns of a batch, named as the function's parameters.
#[derive(Debug, Default)]
pub(crate) struct Batch<'a> {
    t_name: Vec<&'a str>,
    t_fresh: Option<Vec<&'a str>>,
    t_expected: Vec<i64>,
    t_head: Vec<i64>,
    t_raw: Vec<i64>,
    t_stored: Vec<i64>,
    t_updated: Vec<Option<i64>>,
    chains: bool,
    a_thread: Vec<i32>,
    a_expected: Vec<i64>,
    a_head: Vec<i64>,
    a_raw: Vec<i64>,
    a_stored: Vec<i64>,
    a_updated: Vec<Option<i64>>,
    a_key: Option<Vec<Option<&'a [u8]>>>,
    a_value: Option<Vec<Option<&'a [u8]>>>,
    a_claimant: Option<Vec<Option<&'a str>>>,
    b_append: Vec<i32>,
    b_first: Vec<i64>,
    b_count: Vec<i32>,
    b_ts: Vec<i64>,
    b_run: Vec<Option<&'a str>>,
    b_codec: Vec<i16>,
    b_raw: Vec<i32>,
    b_bytes: Vec<&'a [u8]>,
    r_append: Vec<i32>,
    r_run: Vec<&'a str>,
    r_thread: Vec<&'a str>,
    r_status: Vec<&'a str>,
    r_fold: Vec<&'a [u8]>,
}

impl<'a> Batch<'a> {
    /// The columns of these appends, in their order.
    pub(crate) fn new(appends: &[&'a Prepared]) -> Self {
        let mut batch = Self { chains: true, ..Self::default() };
        batch.t_name = appends.iter().map(|append| append.thread.as_str()).collect();
        batch.t_name.sort_unstable();
        batch.t_name.dedup();
        let threads = batch.t_name.len();
        batch.t_raw = vec![0; threads];
        batch.t_stored = vec![0; threads];
        batch.t_updated = vec![None; threads];
        // Heads that were not set yet: no append has them.
        batch.t_expected = vec![-1; threads];
        batch.t_head = vec![-1; threads];
        for (append, number) in appends.iter().zip(1..) {
            batch.push(append, number);
        }
        if appends.iter().any(|append| append.claim.is_some()) {
            batch.chains = false;
            let claims = || appends.iter().map(|append| append.claim.as_ref());
            batch.a_key = Some(claims().map(|claim| claim.map(|claim| claim.key.as_bytes())).collect());
            batch.a_value = Some(claims().map(|claim| claim.map(|claim| claim.value.as_bytes())).collect());
            let claimant = |append: &&'a Prepared| append.claimant.as_ref().map(|run| run.as_str());
            batch.a_claimant = Some(appends.iter().map(claimant).collect());
        }
        batch.t_fresh = batch.fresh(appends);
        batch
    }

    /// Threads that an append wants to begin, ascending, each once.
    fn fresh(&self, appends: &[&'a Prepared]) -> Option<Vec<&'a str>> {
        let begins = |append: &&&'a Prepared| append.expected == 0;
        let mut fresh: Vec<_> = appends.iter().filter(begins).map(|append| append.thread.as_str()).collect();
        fresh.sort_unstable();
        fresh.dedup();
        (!fresh.is_empty()).then_some(fresh)
    }

    fn push(&mut self, append: &'a Prepared, number: i32) {
        let name = append.thread.as_str();
        let at = self.t_name.partition_point(|other| *other < name);
        let (raw, stored) = (append.raw(), append.stored());
        if let (Some(expected), Some(head)) = (self.t_expected.get_mut(at), self.t_head.get_mut(at)) {
            if *head < 0 {
                *expected = append.expected;
            } else if *head != append.expected {
                self.chains = false;
            }
            *head = append.head;
        }
        if let (Some(t_raw), Some(t_stored), Some(t_updated)) =
            (self.t_raw.get_mut(at), self.t_stored.get_mut(at), self.t_updated.get_mut(at))
        {
            *t_raw += raw;
            *t_stored += stored;
            *t_updated = append.updated().or(*t_updated);
        }
        // A batch of two thousand million appends does not fit memory.
        self.a_thread.push(at as i32 + 1);
        self.a_expected.push(append.expected);
        self.a_head.push(append.head);
        self.a_raw.push(raw);
        self.a_stored.push(stored);
        self.a_updated.push(append.updated());
        for row in &append.rows {
            self.b_append.push(number);
            self.b_first.push(row.first);
            self.b_count.push(row.count);
            self.b_ts.push(row.ts);
            self.b_run.push(row.run.as_ref().map(|run| run.as_str()));
            self.b_codec.push(row.packed.codec);
            self.b_raw.push(row.raw);
            self.b_bytes.push(Bytes::as_ref(&row.packed.bytes));
        }
        for run in &append.runs {
            self.r_append.push(number);
            self.r_run.push(run.run.as_str());
            self.r_thread.push(run.thread.as_str());
            self.r_status.push(run.status);
            self.r_fold.push(&run.fold);
        }
    }

    /// The parameters of [`APPEND`].
    pub(crate) fn params(&self) -> [&(dyn ToSql + Sync); 30] {
        [
            &self.t_name,
            &self.t_fresh,
            &self.t_expected,
            &self.t_head,
            &self.t_raw,
            &self.t_stored,
            &self.t_updated,
            &self.chains,
            &self.a_thread,
            &self.a_expected,
            &self.a_head,
            &self.a_raw,
            &self.a_stored,
            &self.a_updated,
            &self.a_key,
            &self.a_value,
            &self.a_claimant,
            &self.b_append,
            &self.b_first,
            &self.b_count,
            &self.b_ts,
            &self.b_run,
            &self.b_codec,
            &self.b_raw,
            &self.b_bytes,
            &self.r_append,
            &self.r_run,
            &self.r_thread,
            &self.r_status,
            &self.r_fold,
        ]
    }
}

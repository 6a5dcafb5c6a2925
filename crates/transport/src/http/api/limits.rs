//! How much one request may ask for.

/// Runs of a list by default.
pub(crate) const LISTED: u64 = 50;
/// Most runs of a list.
pub(crate) const MOST_LISTED: u64 = 500;
/// Most records of a page.
pub(crate) const MOST_RECORDS: u64 = 2000;
/// Most bytes of a page; one record comes back however large it is.
pub(crate) const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// Longest wait, in milliseconds: below the 60 s after which proxies give up.
pub(crate) const MOST_WAIT_MS: u64 = 30_000;

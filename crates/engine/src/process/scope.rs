//! Whose processes are whose.

use std::{
    ffi::{OsStr, OsString},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use super::clock;

/// The environment variable that marks processes.
pub(crate) const VARIABLE: &str = "TAFFRAIL_SCOPE";

/// Marks the processes of one run.
///
/// Each process started gets an entry `<this process>/<run>/<number>` in `TAFFRAIL_SCOPE`, a `:`-separated list that it
/// hands down to whatever it starts. Entries that we inherited stay in front, so that a run inside a run belongs to
/// both. Detached processes get only the inherited entries: they are nobody's to end but an outer run's.
#[derive(Debug, Clone)]
pub struct Scope {
    label: String,
}

impl Scope {
    /// The scope of the run `label`; characters other than letters, digits, `.`, `_` and `-` become `_`.
    pub fn new(label: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
        Self { label: label.chars().map(plain).collect() }
    }

    /// An entry that no other process has.
    pub(crate) fn entry(&self) -> Entry {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Entry(format!("{}/{}/{number}", this_process(), self.label))
    }
}

/// The entry of one started process, which its descendants inherit.
#[derive(Debug, Clone)]
pub(crate) struct Entry(String);

impl Entry {
    /// The value of the variable: the inherited list and this.
    pub(crate) fn list(&self) -> OsString {
        let mut list = inherited().map(OsStr::to_os_string).unwrap_or_default();
        if !list.is_empty() {
            list.push(":");
        }
        list.push(&self.0);
        list
    }

    /// Whether a list names this entry.
    pub(crate) fn is_in(&self, list: &[u8]) -> bool {
        list.split(|&b| b == b':').any(|entry| entry == self.0.as_bytes())
    }
}

/// The list we were started with.
pub(crate) fn inherited() -> Option<&'static OsStr> {
    static INHERITED: OnceLock<Option<OsString>> = OnceLock::new();
    INHERITED.get_or_init(|| std::env::var_os(VARIABLE)).as_deref()
}

/// What all our entries begin with: our process id and the time of first use, as the id alone comes again.
pub(crate) fn this_process() -> &'static str {
    static THIS: OnceLock<String> = OnceLock::new();
    THIS.get_or_init(|| format!("p{}-{:x}", std::process::id(), clock::now().micros()))
}

/// Whether a list names any entry of the process `process`.
pub(crate) fn is_of_process(list: &[u8], process: &str) -> bool {
    list.split(|&b| b == b':')
        .any(|entry| entry.strip_prefix(process.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_told_apart() {
        let scope = Scope::new("run:1/x");
        let (first, second) = (scope.entry(), scope.entry());
        let list = first.list().into_encoded_bytes();
        assert!(
            list.ends_with(format!("{}/run_1_x/{}", this_process(), first.0.rsplit('/').next().unwrap()).as_bytes())
        );
        assert!(first.is_in(&list) && !second.is_in(&list));
        assert!(is_of_process(&list, this_process()));
        assert!(!is_of_process(&list, &this_process()[..3]), "a prefix of a name is another name");
        assert!(is_of_process(b"outer/a/1:inner/b/2", "inner"));
    }
}

//! The playbooks of one run: the one that was started and all it may call, found once, before the run begins.
//!
//! So a run goes on with the texts it was started with, whatever happens to the files meanwhile.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use crate::playbook::{Action, Playbook};

/// Playbooks by name; for a name that was called and not found, why not.
#[derive(Debug, Clone, Default)]
pub struct Books(BTreeMap<String, Result<Arc<Playbook>, String>>);

impl Books {
    /// Collects `top` and what it may call, directly or not. `find` is asked once for each name; why a playbook cannot
    /// be had is told when it is called, not before.
    pub fn collect(top: &Arc<Playbook>, mut find: impl FnMut(&str) -> Result<Arc<Playbook>, String>) -> Self {
        let mut books = BTreeMap::from([(top.name.clone(), Ok(Arc::clone(top)))]);
        let mut unread = VecDeque::from([Arc::clone(top)]);
        while let Some(playbook) = unread.pop_front() {
            for name in called(&playbook) {
                if books.contains_key(name) {
                    continue;
                }
                let found = find(name);
                unread.extend(found.as_ref().ok().cloned());
                books.insert(name.to_owned(), found);
            }
        }
        Self(books)
    }

    pub(super) fn from_map(books: BTreeMap<String, Result<Arc<Playbook>, String>>) -> Self {
        Self(books)
    }

    /// Looks one up.
    ///
    /// # Errors
    ///
    /// Why it cannot be had, in words.
    pub fn named(&self, name: &str) -> Result<&Arc<Playbook>, String> {
        match self.0.get(name) {
            Some(Ok(playbook)) => Ok(playbook),
            Some(Err(why)) => Err(why.clone()),
            None => Err(format!("there is no playbook `{name}`")),
        }
    }

    /// Those that were found, by name.
    pub fn found(&self) -> impl Iterator<Item = (&str, &Arc<Playbook>)> {
        self.0.iter().filter_map(|(name, found)| Some((name.as_str(), found.as_ref().ok()?)))
    }
}

fn called(playbook: &Playbook) -> impl Iterator<Item = &str> {
    playbook.states.iter().filter_map(|state| match &state.action {
        Action::Call(spec) => Some(spec.playbook.as_str()),
        Action::Process(_) | Action::Approve(_) | Action::Ask(_) => None,
    })
}

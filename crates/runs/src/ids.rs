//! The one door to randomness: new ids.

use taffrail_mcp_core::{IdError, RunId};
use uuid::Uuid;

/// A new run's id: UUIDv7 text (RFC 9562, section 5.7), so that ids sort by time and cannot be guessed.
pub(crate) fn run() -> Result<RunId, IdError> {
    RunId::new(Uuid::now_v7().to_string())
}

/// A new id of a checkpoint or an approval of a run. It begins with the run's id, so that it alone leads to the run.
pub(crate) fn part_of(run: &RunId) -> String {
    format!("{run}:{}", Uuid::new_v4().simple())
}

/// A name that nobody else has.
pub(crate) fn unique() -> String {
    Uuid::new_v4().simple().to_string()
}

/// The run that a checkpoint or an approval belongs to.
pub(crate) fn run_of(part: &str) -> Option<RunId> {
    RunId::new(part.rsplit_once(':')?.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_leads_to_its_run() {
        let run = run().unwrap();
        assert_eq!(run_of(&part_of(&run)), Some(run.clone()));
        assert_ne!(part_of(&run), part_of(&run));
        assert_eq!(run_of("nonsense"), None);
        assert_eq!(run_of("../x:y"), None);
    }
}

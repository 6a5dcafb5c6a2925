//! What ran, against what was expected.

use std::collections::{BTreeMap, BTreeSet};

use super::expected::Expected;

/// What the suite found out about one thing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Check {
    pub(super) id: String,
    /// One id may come several times, with other names.
    pub(super) name: String,
    pub(super) status: String,
    pub(super) message: String,
}

/// Checks by scenario.
pub(super) type Ran = BTreeMap<String, Vec<Check>>;

/// Adds what another run found.
pub(super) fn add(ran: &mut Ran, more: Ran) {
    for (scenario, checks) in more {
        ran.entry(scenario).or_default().extend(checks);
    }
}

/// What came of one part of the run.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    leg: String,
    scenarios: usize,
    passed: usize,
    expected: usize,
    unexpected: Vec<String>,
}

impl Verdict {
    /// What was not expected, as lines for people.
    pub(super) fn problems(&self) -> impl Iterator<Item = String> {
        self.unexpected.iter().map(|what| format!("{}: {what}", self.leg))
    }
}

/// Judges one part of the run. `wanted` are its scenarios.
pub(super) fn judge(leg: &str, wanted: &BTreeSet<String>, ran: &Ran, expected: &[Expected]) -> Verdict {
    let mine: Vec<_> = expected.iter().filter(|entry| entry.legs.iter().any(|of| of == leg)).collect();
    let mut used = vec![false; mine.len()];
    let mut verdict = Verdict { leg: leg.to_owned(), ..Verdict::default() };
    for (scenario, checks) in ran {
        verdict.scenarios += 1;
        let (mut something, before) = (false, verdict.unexpected.len());
        for check in checks {
            let entry = mine.iter().position(|entry| {
                entry.scenario == *scenario
                    && entry.check == check.id
                    && entry.status == check.status
                    && check.message.contains(&entry.says)
            });
            match (check.status.as_str(), entry) {
                ("SUCCESS", _) => {
                    verdict.passed += 1;
                    something = true;
                }
                (_, Some(entry)) => {
                    // In bounds: `used` is as long as `mine`.
                    used[entry] = true;
                    verdict.expected += 1;
                    something = true;
                }
                ("INFO", None) => {}
                (status, None) => {
                    let Check { id, name, message, .. } = check;
                    verdict.unexpected.push(format!("{scenario}: {id} ({name}): {status}: {message}"));
                }
            }
        }
        if !something && verdict.unexpected.len() == before {
            verdict.unexpected.push(format!("{scenario}: nothing was checked"));
        }
    }
    for scenario in wanted.iter().filter(|scenario| !ran.contains_key(*scenario)) {
        verdict.unexpected.push(format!("{scenario}: did not run"));
    }
    for (entry, _) in mine.iter().zip(&used).filter(|(_, used)| !**used) {
        let Expected { scenario, check, status, says, .. } = entry;
        verdict.unexpected.push(format!(
            "{scenario}: {check}: no {status} that says `{says}`: what was expected has passed, or did not come"
        ));
    }
    verdict
}

/// The verdicts as a table.
pub(super) fn table(verdicts: &[Verdict]) -> String {
    let mut out = format!(
        "{:<12} {:>9} {:>13} {:>17} {:>10}\n",
        "revision", "scenarios", "checks passed", "expected failures", "unexpected"
    );
    for Verdict { leg, scenarios, passed, expected, unexpected } in verdicts {
        let unexpected = unexpected.len();
        out.push_str(&format!("{leg:<12} {scenarios:>9} {passed:>13} {expected:>17} {unexpected:>10}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, status: &str, message: &str) -> Check {
        Check { id: id.to_owned(), name: id.to_uppercase(), status: status.to_owned(), message: message.to_owned() }
    }

    fn judged(wanted: &[&str], ran: &[(&str, &[Check])], expected: &[(&str, &str, &str, &str)]) -> Verdict {
        let wanted = wanted.iter().map(|name| (*name).to_owned()).collect();
        let ran = ran.iter().map(|(name, checks)| ((*name).to_owned(), checks.to_vec())).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(scenario, check, status, says)| Expected {
                legs: vec!["2025".to_owned()],
                scenario: (*scenario).to_owned(),
                check: (*check).to_owned(),
                status: (*status).to_owned(),
                says: (*says).to_owned(),
            })
            .collect();
        judge("2025", &wanted, &ran, &expected)
    }

    #[test]
    fn what_is_expected_may_fail_and_nothing_else() {
        let checks = [check("a", "SUCCESS", ""), check("b", "FAILURE", "no sessions here"), check("c", "INFO", "")];
        let fine = judged(&["s"], &[("s", &checks)], &[("s", "b", "FAILURE", "no sessions")]);
        assert_eq!((fine.passed, fine.expected, fine.unexpected.len()), (1, 1, 0));
        let told = judged(&["s"], &[("s", &checks)], &[]);
        assert_eq!(told.problems().collect::<Vec<_>>(), ["2025: s: b (B): FAILURE: no sessions here"]);
        let other = judged(&["s"], &[("s", &checks)], &[("s", "b", "FAILURE", "something else")]);
        assert_eq!(other.unexpected.len(), 2, "{other:?}");
        let milder = judged(&["s"], &[("s", &checks)], &[("s", "b", "WARNING", "")]);
        assert_eq!(milder.unexpected.len(), 2, "{milder:?}");
    }

    #[test]
    fn an_unexpected_pass_fails() {
        let passes = judged(&["s"], &[("s", &[check("b", "SUCCESS", "")])], &[("s", "b", "FAILURE", "")]);
        assert!(passes.unexpected[0].contains("has passed"), "{passes:?}");
    }

    #[test]
    fn what_did_not_run_or_checked_nothing_fails() {
        let absent = judged(&["s", "t"], &[("s", &[check("a", "SUCCESS", "")])], &[]);
        assert_eq!(absent.unexpected, ["t: did not run"]);
        for nothing in [&[][..], &[check("i", "INFO", "")]] {
            assert_eq!(judged(&["s"], &[("s", nothing)], &[]).unexpected, ["s: nothing was checked"]);
        }
        let known = judged(&["s"], &[("s", &[check("i", "INFO", "")])], &[("s", "i", "INFO", "")]);
        assert_eq!((known.expected, known.unexpected.len()), (1, 0));
    }

    #[test]
    fn entries_for_other_parts_of_the_run_are_none_here() {
        let failed: Ran = [("s".to_owned(), vec![check("b", "FAILURE", "")])].into();
        let entry = Expected {
            legs: vec!["2026".to_owned()],
            scenario: "s".to_owned(),
            check: "b".to_owned(),
            status: "FAILURE".to_owned(),
            says: String::new(),
        };
        assert_eq!(judge("2025", &BTreeSet::new(), &failed, &[entry]).unexpected.len(), 1);
    }
}

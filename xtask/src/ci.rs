//! `cargo xtask ci`: everything, and every failure.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use crate::{Outcome, clients, conformance, deny, docs, examples, lint, test, wire};

const CLIENTS: &str = "clients";

type Step = (&'static str, fn() -> Result<Outcome>);

/// Cheap ones first. `clients`, `wire`, `examples` and `conformance` run what `test` has built.
const STEPS: &[Step] = &[
    ("format", lint::format),
    ("layers", lint::layers),
    ("promises", lint::promises),
    ("clippy", lint::clippy),
    ("test", || test::run(test::Size::Ci)),
    (CLIENTS, clients::run_all),
    ("wire", || wire::run(wire::Mode::Check)),
    ("examples", examples::run),
    ("conformance", || conformance::run(conformance::Build::Workspace)),
    ("docs", docs::run),
    ("deny", deny::run),
];

pub(crate) fn run() -> Result<Outcome> {
    let mut rows = Vec::new();
    // It waits for the network while what comes first compiles. Whatever goes wrong is found again, and told, by the step.
    let mut installing = Some(thread::spawn(clients::install));
    for (name, step) in STEPS {
        if *name == CLIENTS
            && let Some(installing) = installing.take()
        {
            let _ = installing.join();
        }
        println!("\n── {name}");
        let start = Instant::now();
        let result = step();
        if let Err(error) = &result {
            eprintln!("{name}: {error:#}");
        }
        rows.push((*name, result, start.elapsed()));
    }
    println!("\n{}", table(&rows));
    let failed: Vec<_> = rows.iter().filter(|(_, result, _)| result.is_err()).map(|(name, ..)| *name).collect();
    if !failed.is_empty() {
        bail!("{} of {} steps failed: {}", failed.len(), rows.len(), failed.join(", "));
    }
    Ok(Outcome::Passed)
}

fn table(rows: &[(&str, Result<Outcome>, Duration)]) -> String {
    let mut out = format!("{:<11} {:>7}  result\n", "step", "seconds");
    for (name, result, time) in rows {
        let words = match result {
            Ok(Outcome::Passed) => "ok".to_owned(),
            Ok(Outcome::Skipped(why)) => format!("skipped: {why}"),
            Err(error) => format!("FAILED: {}", format!("{error:#}").lines().next().unwrap_or_default()),
        };
        out.push_str(&format!("{name:<11} {:>7.1}  {words}\n", time.as_secs_f64()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_every_step() {
        let rows = [
            ("format", Ok(Outcome::Passed), Duration::from_millis(1250)),
            ("deny", Ok(Outcome::Skipped("not installed".into())), Duration::ZERO),
            ("test", Err(anyhow::anyhow!("two\nlines")), Duration::from_secs(100)),
        ];
        let expected = "step        seconds  result\nformat          1.2  ok\ndeny            0.0  skipped: not installed\ntest          100.0  FAILED: two\n";
        assert_eq!(table(&rows), expected);
    }
}

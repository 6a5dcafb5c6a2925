//! Reads a run's log, one JSON record a line, from standard input and prints it as a table.
//!
//! ```sh
//! taffrail logs RUN --json | cargo run -p mcp-core-read-a-log
//! ```
//!
//! It knows six types by name and shows the others by their type alone, so a log of a later version reads as well.

use std::io::{self, BufRead as _, Write as _};

use taffrail_mcp_core::{Event, Exit, Record, RunFold};

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut fold = None;
    for line in io::stdin().lock().split(b'\n') {
        match Record::parse(&line?) {
            Ok(record) => {
                writeln!(out, "{}", row(&record))?;
                // The state of a run is a fold of its log: nothing else has to be asked.
                fold.get_or_insert_with(|| RunFold::new(record.run.clone(), record.thread.clone()))
                    .apply_record(&record);
            }
            Err(error) => writeln!(out, "{:>6}  not a record: {error}", "?")?,
        }
    }
    if let Some(fold) = fold {
        let usage = fold.usage;
        let status = fold.status.as_str();
        writeln!(out, "{}: {status} after {} steps, {} lines of output", fold.playbook, usage.steps, usage.log_lines)?;
    }
    out.flush()
}

/// `seq  time  type  what`.
fn row(record: &Record) -> String {
    let ts = record.ts.to_string();
    let time = ts.get(11..23).unwrap_or_default();
    format!("{:>6}  {time}  {:<12}  {}", record.seq, record.event.kind(), what(&record.event)).trim_end().to_owned()
}

fn what(event: &Event) -> String {
    match event {
        Event::RunStart(start) => format!("{} at {}", start.machine, start.entry),
        Event::StateStart(start) => format!("step {}: {}", start.step, start.state),
        Event::StateDone(done) => {
            let exit = match &done.exit {
                Some(Exit::Code(code)) => format!("exit {code}, "),
                Some(Exit::Signal(signal)) => format!("{signal}, "),
                Some(Exit::Timeout(_)) => "timed out, ".to_owned(),
                None => String::new(),
            };
            format!("{}: {exit}{} → {}", done.state, done.policy, done.to.as_deref().unwrap_or("nowhere"))
        }
        Event::RunFinished(end) => match &end.error {
            Some(error) => format!("{}: {error}", end.status.as_str()),
            None => end.status.as_str().to_owned(),
        },
        // Output need not be text: the bytes are there, whatever they are.
        Event::Log(log) => format!("{} | {}", log.state, String::from_utf8_lossy(&log.data())),
        Event::Note(note) => note.text.clone().into_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: &str) {
        let head = r#"{"seq":7,"thread":"t","run":"r","ts":"2026-11-30T07:32:47.123456Z","#;
        let record = Record::parse(format!("{head}{body}}}").as_bytes()).unwrap();
        assert_eq!(row(&record), format!("     7  07:32:47.123  {expected}"));
    }

    #[test]
    fn rows() {
        check(
            r#""type":"log","state":"build","stream":"stdout","b64":"YQBi/w==""#,
            "log           build | a\0b\u{fffd}",
        );
        check(
            r#""type":"state-done","machine":"m","depth":0,"state":"test","step":1,"policy":"fail","exit":{"code":3}"#,
            "state-done    test: exit 3, fail → nowhere",
        );
        check(
            r#""type":"run-finished","machine":"m","depth":0,"status":"halt","error":"gate-failed""#,
            "run-finished  halt: gate-failed",
        );
        check(r#""type":"x-weather","wind":7"#, "x-weather");
    }

    #[test]
    fn every_line_of_the_input_is_a_record() {
        for line in include_str!("../input").lines() {
            Record::parse(line.as_bytes()).unwrap();
        }
    }
}

//! What the end of a process means for its state: `exit`, `output`, and whether it counts as failed.

use std::io::{self, Write};

use serde_json::{Value, json};
use taffrail_mcp_core::{Exit, Reason, preview};

use super::frame::{BranchEnd, Failure, FrameEnd};
use crate::playbook::{Parse, exit_value};

/// Of a process that has ended.
///
/// Text output loses its last line ends, as with `$(…)` in a shell: `output == "yes"` and `{{ ctx.version }}` mean what
/// they seem to. `keep` is how many bytes of the end of a text are kept.
pub(super) fn of_exit(exit: Exit, stdout: &[u8], truncated: bool, parse: Parse, keep: usize) -> BranchEnd {
    let mut failure = failure_of(&exit);
    let mut end = BranchEnd { item: Value::Null, exit, output: Value::Null, failure: None, truncated };
    match parse {
        Parse::Text => {
            let text = String::from_utf8_lossy(stdout);
            let text = text.trim_end_matches(['\n', '\r']);
            let kept = tail(text, keep);
            end.truncated |= kept.len() < text.len();
            end.output = Value::String(kept.to_owned());
        }
        Parse::Json => match serde_json::from_slice(stdout) {
            Ok(value) => end.output = value,
            Err(error) => {
                let cut = if truncated { " (it is longer than 64 KiB; only its end was kept)" } else { "" };
                let detail = format!("stdout is not JSON: {error}{cut}");
                // The exit is the cause where it failed too; what was printed then is often not JSON.
                failure.get_or_insert(Failure { reason: Reason::GATE_FAILED, detail });
            }
        },
    }
    end.failure = failure;
    end
}

/// Of a process that could not be started. Its exit is what a shell would report.
pub(super) fn of_spawn_failure(code: i32, detail: String) -> BranchEnd {
    BranchEnd {
        item: Value::Null,
        exit: Exit::Code(code),
        output: Value::Null,
        failure: Some(Failure { reason: Reason::SPAWN_FAILED, detail }),
        truncated: false,
    }
}

/// Of a called playbook: code 0 when it is done, 1 when it halted; `output` is `{status, ctx}`, and `error` and `at`
/// when it halted.
pub(super) fn of_call(playbook: &str, at: &str, ctx: serde_json::Map<String, Value>, end: FrameEnd) -> BranchEnd {
    let (code, output, failure) = match end {
        FrameEnd::Done => (0, json!({ "status": "done", "ctx": ctx }), None),
        FrameEnd::Halt(Failure { reason, detail }) => {
            let output = json!({ "status": "halt", "ctx": ctx, "error": reason, "at": at });
            let detail = format!("playbook `{playbook}` halted at `{at}`: {reason}: {detail}");
            (1, output, Some(Failure { reason: Reason::CALL_FAILED, detail }))
        }
    };
    BranchEnd { item: Value::Null, exit: Exit::Code(code), output, failure, truncated: false }
}

/// Of a called playbook that could not begin.
pub(super) fn of_failed_call(detail: String) -> BranchEnd {
    BranchEnd {
        item: Value::Null,
        exit: Exit::Code(1),
        output: Value::Null,
        failure: Some(Failure { reason: Reason::CALL_FAILED, detail }),
        truncated: false,
    }
}

fn failure_of(exit: &Exit) -> Option<Failure> {
    let (reason, detail) = match exit {
        Exit::Code(0) => return None,
        Exit::Code(code) => (Reason::GATE_FAILED, format!("exit code {code}")),
        Exit::Signal(signal) => (Reason::GATE_FAILED, format!("ended by {signal}")),
        Exit::Timeout(_) => (Reason::TIMEOUT, "it ran into its time limit".to_owned()),
    };
    Some(Failure { reason, detail })
}

/// An exit as the condition variable `exit`.
pub(super) fn exit_variable(exit: &Exit) -> Value {
    match exit {
        Exit::Code(code) => exit_value(Some(i64::from(*code)), None, false),
        Exit::Signal(signal) => exit_value(None, Some(signal), false),
        Exit::Timeout(_) => exit_value(None, None, true),
    }
}

/// The failure of a fan-out: its reason is that of its branches where they agree.
pub(super) fn of_branches<'a>(ends: impl Iterator<Item = (usize, &'a BranchEnd)>) -> Option<Failure> {
    const NAMED: usize = 3;
    let failed: Vec<(usize, &Failure)> =
        ends.filter_map(|(index, end)| end.failure.as_ref().map(|failure| (index, failure))).collect();
    let (_, first) = failed.first()?;
    let same = failed.iter().all(|(_, failure)| failure.reason == first.reason);
    let reason = if same { first.reason.clone() } else { Reason::GATE_FAILED };
    let named: Vec<String> =
        failed.iter().take(NAMED).map(|(index, failure)| format!("branch {index}: {}", failure.detail)).collect();
    let more = if failed.len() > NAMED { "; …" } else { "" };
    let count = failed.len();
    Some(Failure { reason, detail: format!("{count} failed: {}{more}", named.join("; ")) })
}

/// The last `keep` bytes of a text, or a little less, so that no character is cut.
fn tail(text: &str, keep: usize) -> &str {
    let mut from = text.len().saturating_sub(keep);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text.get(from..).unwrap_or_default()
}

/// The preview of an output, without writing out all of a large one.
pub(super) fn preview_of(output: Option<&Value>) -> String {
    match output {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => preview(text),
        Some(other) => {
            let mut start = Start(Vec::new());
            // The only error is that there is enough.
            let _ = serde_json::to_writer(&mut start, other);
            preview(&String::from_utf8_lossy(&start.0))
        }
    }
}

/// Takes what a preview can need (200 characters of up to 4 bytes, and more to see that there is more).
struct Start(Vec<u8>);

impl Write for Start {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        const ENOUGH: usize = 1024;
        let room = ENOUGH.saturating_sub(self.0.len()).min(bytes.len());
        if room == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.extend_from_slice(bytes.get(..room).unwrap_or_default());
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_loses_line_ends_and_its_beginning() {
        let end = of_exit(Exit::Code(0), b"a\nb\r\n\n", false, Parse::Text, 100);
        assert_eq!((end.output, end.truncated, end.failure), (json!("a\nb"), false, None));
        let end = of_exit(Exit::Code(0), "xé\n".as_bytes(), false, Parse::Text, 1);
        assert_eq!((end.output, end.truncated), (json!(""), true));
    }

    #[test]
    fn bad_json_is_a_failure_that_a_bad_exit_outranks() {
        let end = of_exit(Exit::Code(0), b"{", false, Parse::Json, 100);
        let failure = end.failure.unwrap();
        assert_eq!((end.output, failure.reason), (Value::Null, Reason::GATE_FAILED));
        assert!(failure.detail.starts_with("stdout is not JSON: EOF"), "{}", failure.detail);
        let end = of_exit(Exit::Code(3), b"no", false, Parse::Json, 100);
        assert_eq!(end.failure.unwrap().detail, "exit code 3");
    }

    #[test]
    fn previews_stop_early() {
        let large = Value::Array(vec![json!("é".repeat(50)); 100_000]);
        let text = preview_of(Some(&large));
        assert_eq!(text.chars().count(), 200);
        assert!(text.ends_with('…'));
        assert_eq!(preview_of(Some(&json!([1]))), "[1]");
        assert_eq!(preview_of(Some(&Value::Null)), "");
    }
}

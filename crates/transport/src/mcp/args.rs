//! The tools' arguments. Their doc comments are what a model reads.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use super::call::Failure;

/// Longest wait of one call, in seconds.
const MAX_WAIT_S: f64 = 300.0;

/// Seconds to wait; whatever a model writes above the most is the most.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(super) struct WaitSeconds(#[schemars(range(min = 0.0, max = 300.0))] f64);

impl WaitSeconds {
    /// What `run` and `resume` wait by default: below the 30 s at which the strictest hosts end a call.
    pub(super) const DEFAULT: Self = Self(25.0);
    /// Return at once.
    pub(super) const NONE: Self = Self(0.0);

    pub(super) fn limit(self) -> Result<Duration, Failure> {
        if self.0.is_nan() || self.0 < 0.0 {
            return Err(Failure::arguments("`wait_s` must be 0 (return at once) to 300 seconds"));
        }
        Ok(Duration::from_secs_f64(self.0.min(MAX_WAIT_S)))
    }
}

/// Arguments of `run`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunArgs {
    /// Playbook name, or a path where the server shares your disk.
    pub(super) playbook: String,
    /// Values for the playbook's inputs.
    #[serde(default)]
    pub(super) inputs: Option<Map<String, Value>>,
    /// Log to this thread; default: a new one.
    #[serde(default)]
    pub(super) thread: Option<String>,
    /// Any text of your choice: a repeated call with it returns the same run.
    #[serde(default)]
    pub(super) idempotency_key: Option<String>,
    /// Wait this long for the end (default 25; 0: return at once).
    #[serde(default)]
    pub(super) wait_s: Option<WaitSeconds>,
}

/// Arguments of `resume`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ResumeArgs {
    /// The run; or give `checkpoint`.
    #[serde(default)]
    pub(super) run: Option<String>,
    /// The checkpoint to go on from; works once.
    #[serde(default)]
    pub(super) checkpoint: Option<String>,
    /// What the run waits for: the answer, or `{"decision":"approve"}` or `"reject"`.
    #[serde(default)]
    pub(super) inputs: Option<Map<String, Value>>,
    /// Wait this long for the end (default 25; 0: return at once).
    #[serde(default)]
    pub(super) wait_s: Option<WaitSeconds>,
}

/// Arguments of `run_status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusArgs {
    /// The run.
    pub(super) run: String,
    /// A cursor (`head` of a snapshot): stop waiting at the first change of state past it.
    #[serde(default)]
    pub(super) after: Option<u64>,
    /// Wait this long for that change, or without `after` for the end (default 0).
    #[serde(default)]
    pub(super) wait_s: Option<WaitSeconds>,
}

/// Arguments of `run_logs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogsArgs {
    /// The run.
    pub(super) run: String,
    /// Read what comes after this; use the last `next cursor` (default 0: the beginning).
    #[serde(default)]
    pub(super) cursor: Option<u64>,
    /// Most records (default 200).
    #[serde(default)]
    #[schemars(range(min = 1, max = 2000))]
    pub(super) limit: Option<u32>,
    /// Most bytes of text (default 6000; 0: only the cursor and the counts).
    #[serde(default)]
    #[schemars(range(min = 0, max = 40000))]
    pub(super) max_bytes: Option<u64>,
    /// Only the last N matching records.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub(super) tail: Option<u32>,
    /// Only records that match this regular expression.
    #[serde(default)]
    pub(super) grep: Option<String>,
    /// Only records of this state.
    #[serde(default)]
    pub(super) state: Option<String>,
    /// Only this stream's output.
    #[serde(default)]
    pub(super) stream: Option<Stream>,
    /// If there is nothing yet, wait this long for it (repeated empty reads wait by themselves).
    #[serde(default)]
    pub(super) wait_s: Option<WaitSeconds>,
    /// `text` (default) or `json` (whole records).
    #[serde(default)]
    pub(super) format: Format,
}

/// Which output of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// How `run_logs` answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    #[default]
    Text,
    Json,
}

/// Arguments of `run_cancel`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelArgs {
    /// The run.
    pub(super) run: String,
    /// Why, for the log.
    #[serde(default)]
    pub(super) reason: Option<String>,
}

/// Arguments of `list_runs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListRunsArgs {
    /// Only runs of this status.
    #[serde(default)]
    pub(super) status: Option<Status>,
    /// Only runs of this thread.
    #[serde(default)]
    pub(super) thread: Option<String>,
    /// Most runs (default 20).
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    pub(super) limit: Option<u32>,
    /// Only runs before this one: the `before` of the last list.
    #[serde(default)]
    pub(super) before: Option<String>,
}

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Running,
    Suspended,
    Done,
    Halt,
    Cancelled,
    Interrupted,
}

impl Status {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Done => "done",
            Self::Halt => "halt",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Arguments of `list_playbooks`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListPlaybooksArgs {
    /// Show this playbook's whole contract.
    #[serde(default)]
    pub(super) name: Option<String>,
}

/// Arguments of `check_playbook`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckArgs {
    /// A playbook by name; or give `path` or `source`.
    #[serde(default)]
    pub(super) name: Option<String>,
    /// A playbook file, where the server shares your disk.
    #[serde(default)]
    pub(super) path: Option<String>,
    /// The YAML itself.
    #[serde(default)]
    pub(super) source: Option<String>,
}

/// Reads a call's arguments.
pub(super) fn read<T: DeserializeOwned>(arguments: Option<Map<String, Value>>) -> Result<T, Failure> {
    let arguments = arguments.unwrap_or_default();
    let error = match try_read(&arguments) {
        Ok(read) => return Ok(read),
        Err(error) => error,
    };
    // Of a value of the wrong kind serde does not say whose it is: the argument without which the error
    // is another one.
    let named = error.starts_with("missing field") || error.starts_with("unknown field");
    let culprit = arguments.keys().filter(|_| !named).find(|key| {
        let mut others = arguments.clone();
        others.remove(*key);
        try_read::<T>(&others).err().as_ref() != Some(&error)
    });
    Err(Failure::arguments(match culprit {
        Some(key) => format!("`{key}`: {error}"),
        None => error,
    }))
}

fn try_read<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(arguments.clone())).map_err(|error| error.to_string())
}

//! The keys of the language: one table per mapping, shared by the parser and the published schema, so that the two
//! cannot disagree.

/// A key and what it is for.
pub(crate) type KeyDoc = (&'static str, &'static str);

/// Keys of the file.
pub(crate) const PLAYBOOK: &[KeyDoc] = &[
    ("playbook", "The name: kebab-case, equal to the file's name without its extension."),
    ("description", "What it is for, for people and models that choose among playbooks."),
    ("inputs", "What a run can be given, by name."),
    ("budget", "Limits that end a run whatever it does."),
    ("entry", "The state a run begins with; default: the first."),
    ("states", "The states, by name. Without gates a state goes on to the next in this order."),
];

/// Keys of an input.
pub(crate) const INPUT: &[KeyDoc] = &[
    ("type", "The JSON type of the value; default: string."),
    ("required", "Whether a run cannot start without it; default: false."),
    ("default", "The value when none is given."),
    ("description", "What it is for."),
    ("enum", "The only values allowed."),
    ("secret", "Never stored: a resumed run must be given it again; default: false."),
];

/// Keys of `budget`.
pub(crate) const BUDGET: &[KeyDoc] = &[
    ("steps", "Most states started, at any depth; default: 200."),
    ("wall", "Longest time from the first start, pauses left out, such as `30m`; default: 24h."),
    ("output", "Most bytes of process output kept, such as `64MiB`; past it output is clipped. Default: 1GiB."),
];

/// The five keys that say what a state does.
pub(crate) const ACTIONS: &[KeyDoc] = &[
    ("run", "A shell command, passed to `sh -c` as it is: never templated, values arrive as environment."),
    ("exec", "A program and its arguments, without a shell; each element is one argument and may be a template."),
    ("call", "The name of another playbook."),
    ("approve", "Pauses the run until someone decides; the text is the question and may be a template."),
    ("ask", "Pauses the run until someone answers; the text is the question and may be a template."),
];

/// The other keys of a state.
pub(crate) const STATE: &[KeyDoc] = &[
    ("env", "Environment of a `run` or `exec`; each value may be a template and gives one string."),
    ("cwd", "Working directory of a `run` or `exec`, relative to the run's; may be a template."),
    ("timeout", "Longest time of a `run` or `exec`, such as `10m`; past it the process group is ended."),
    ("detach", "Lets children of a `run` or `exec` outlive the state; default: false."),
    ("emit", "`message` turns the lines a `run` or `exec` writes on stdout into `message` events."),
    ("parse", "How the output of a `run` or `exec` is read: `text` (the last 64 KiB) or `json`; default: text."),
    ("with", "Inputs of a `call`; strings in the values may be templates."),
    ("by", "Who may decide an `approve`: `human` or `agent`; default: human."),
    ("schema", "JSON Schema of the answer to an `ask`: an object with primitive properties."),
    ("over", "Fans out: one concurrent branch for each item of a list, or of a template that gives one."),
    ("sample", "Fans out: this many concurrent branches of the same."),
    ("max_parallel", "Most branches at the same time; default: the number of processors."),
    ("output", "Keeps the output as `ctx.NAME` for later states."),
    ("gates", "Where to go next: the first gate whose condition holds decides."),
];

/// Keys of a gate.
pub(crate) const GATE: &[KeyDoc] = &[
    ("when", "A CEL condition, or `otherwise`."),
    ("then", "`ok` goes on; `fail` halts the run."),
    ("repair", "Runs a state again, at most this many times."),
    ("escalate", "`true` goes on elsewhere; to `END` it halts with `escalated`."),
    ("to", "A state or `END`; default: the next state, for `repair` this one."),
];

/// Keys of a state that belong to some actions only.
pub(crate) const BELONGS: &[(&str, &[&str])] = &[
    ("env", &["run", "exec"]),
    ("cwd", &["run", "exec"]),
    ("timeout", &["run", "exec"]),
    ("detach", &["run", "exec"]),
    ("emit", &["run", "exec"]),
    ("parse", &["run", "exec"]),
    ("with", &["call"]),
    ("by", &["approve"]),
    ("schema", &["ask"]),
    ("over", &["run", "exec", "call"]),
    ("sample", &["run", "exec", "call"]),
    ("max_parallel", &["run", "exec", "call"]),
];

/// The target that is no state.
pub(crate) const END: &str = "END";

/// The names in a table.
pub(crate) fn names(table: &'static [KeyDoc]) -> impl Iterator<Item = &'static str> {
    table.iter().map(|(name, _)| *name)
}

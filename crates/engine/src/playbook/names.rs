//! What may be called what.

/// Longest name: names become file names, environment and columns.
pub(crate) const MAX_CHARS: usize = 64;

/// Kebab-case: the name of a playbook.
pub(crate) const KEBAB: &str = "[a-z0-9]+(-[a-z0-9]+)*";
/// Kebab-case or snake_case: the name of a state.
pub(crate) const STATE: &str = "[a-z0-9]+([-_][a-z0-9]+)*";
/// What both CEL and minijinja read as one name: an input or an output.
pub(crate) const IDENTIFIER: &str = "[A-Za-z_][A-Za-z0-9_]*";

/// Whether the text is a kebab-case name.
pub(crate) fn is_kebab(text: &str) -> bool {
    in_words(text, &['-'])
}

/// Whether the text can name a state.
pub(crate) fn is_state(text: &str) -> bool {
    in_words(text, &['-', '_'])
}

/// Whether the text can follow a dot in CEL and in minijinja.
pub(crate) fn is_identifier(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    fits(text) && text.chars().all(plain) && !text.starts_with(|c: char| c.is_ascii_digit()) && !is_reserved(text)
}

/// Whether the text can be an environment variable a shell can read.
pub(crate) fn is_variable(text: &str) -> bool {
    const MAX_BYTES: usize = 256;
    text.len() <= MAX_BYTES
        && !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Words that CEL keeps for itself, which would make `inputs.NAME` unreadable.
fn is_reserved(text: &str) -> bool {
    matches!(text, "true" | "false" | "null" | "in" | "none" | "True" | "False" | "None")
}

fn in_words(text: &str, separators: &[char]) -> bool {
    fits(text)
        && text
            .split(separators)
            .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()))
}

fn fits(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_CHARS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let long = "a".repeat(65);
        for (text, kebab, state, identifier) in [
            ("release", true, true, true),
            ("deploy-one", true, true, false),
            ("deploy_one", false, true, true),
            ("Deploy", false, false, true),
            ("2fast", true, true, false),
            ("-a", false, false, false),
            ("a--b", false, false, false),
            ("../etc", false, false, false),
            ("a/b", false, false, false),
            ("a.b", false, false, false),
            ("", false, false, false),
            ("é", false, false, false),
            ("in", true, true, false),
            (long.as_str(), false, false, false),
        ] {
            assert_eq!((is_kebab(text), is_state(text), is_identifier(text)), (kebab, state, identifier), "{text}");
        }
    }
}

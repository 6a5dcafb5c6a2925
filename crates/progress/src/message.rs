//! The message beside the number: one line, short, and the latest.

use std::{
    fmt::{self, Display, Write as _},
    sync::{
        Mutex, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Characters of a message on the wire. The strictest host that shows progress cuts there.
pub const MESSAGE_CHARS: usize = 200;

/// Bytes that are kept of a message until it is sent: 200 characters of any script, and white space that goes away.
const KEPT_BYTES: usize = 1024;

/// As many threads can leave a message in the very same moment. One more is passed over: its number counts, its words
/// do not.
const SLOTS: usize = 8;

#[derive(Debug, Default)]
struct Slot {
    key: u64,
    text: String,
}

/// The latest message of many threads.
///
/// A writer takes a slot that is free; nobody waits for a slot. The text with the largest key is the latest.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    slots: [Mutex<Slot>; SLOTS],
    begun: AtomicU64,
    ended: AtomicU64,
}

/// Somebody is about to report a number with a message.
pub(crate) struct Saying<'a> {
    messages: &'a Messages,
    key: u64,
}

impl Messages {
    /// Before the number is taken, so that a sender that sees the number knows that words are coming.
    #[inline]
    pub(crate) fn begin(&self) -> Saying<'_> {
        Saying { messages: self, key: self.begun.fetch_add(1, Ordering::SeqCst) + 1 }
    }

    /// Grows with each message, also with those that came to nothing.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    /// Whether somebody is about to leave a message.
    pub(crate) fn coming(&self) -> bool {
        self.ended() != self.begun.load(Ordering::SeqCst)
    }

    /// The newest text, as it goes over the wire, if its key is larger than `seen`, which becomes its key.
    pub(crate) fn take(&self, seen: &mut u64) -> Option<String> {
        let mut newest = None;
        for slot in &self.slots {
            let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.key > *seen {
                *seen = slot.key;
                newest = Some(slot.text.clone());
            }
        }
        newest.map(|text| one_line(&text)).filter(|text| !text.is_empty())
    }
}

impl Saying<'_> {
    /// Keeps `message` as the latest. Never waits.
    pub(crate) fn put(self, message: impl Display) {
        let Self { messages: Messages { slots, .. }, key } = self;
        for turn in 0..SLOTS {
            let Some(slot) = slots.get((key as usize).wrapping_add(turn) % SLOTS) else { return };
            let mut slot = match slot.try_lock() {
                Ok(slot) => slot,
                Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            // A writer that was held up leaves alone what is newer than its own.
            if slot.key < key {
                slot.text.clear();
                // A text that is too long ends the writing with an error, on purpose.
                let _ = write!(Bounded(&mut slot.text), "{message}");
                slot.key = key;
            }
            return;
        }
    }
}

impl Drop for Saying<'_> {
    /// Also when the number was refused, or writing the message panicked.
    #[inline]
    fn drop(&mut self) {
        self.messages.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// Takes the first [`KEPT_BYTES`], whole characters only.
struct Bounded<'a>(&'a mut String);

impl fmt::Write for Bounded<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = KEPT_BYTES - self.0.len().min(KEPT_BYTES);
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let cut = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        self.0.push_str(text.get(..cut).unwrap_or_default());
        Err(fmt::Error)
    }
}

/// One line of at most [`MESSAGE_CHARS`] characters: white space and control characters become single spaces, escape
/// sequences of terminals go, and the end is cut, because the meaning comes first.
///
/// ```
/// assert_eq!(taffrail_progress::one_line("built\tall \u{1b}[32mparts\u{1b}[0m\n"), "built all parts");
/// ```
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(KEPT_BYTES));
    let (mut chars, mut count, mut space) = (text.chars(), 0, false);
    // Where the text ends if it has to end in an ellipsis.
    let mut cut = 0;
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            skip_escape(&mut chars);
            continue;
        }
        if c.is_whitespace() || c.is_control() {
            space = true;
            continue;
        }
        let gap = std::mem::take(&mut space) && !out.is_empty();
        if count + usize::from(gap) >= MESSAGE_CHARS {
            out.truncate(cut);
            out.push('…');
            return out;
        }
        if gap {
            out.push(' ');
            count += 1;
        }
        if count < MESSAGE_CHARS - 1 {
            cut = out.len() + c.len_utf8();
        }
        out.push(c);
        count += 1;
    }
    out
}

/// Passes over what follows an escape: `[`, parameters, one letter; or one character.
fn skip_escape(chars: &mut std::str::Chars<'_>) {
    if chars.clone().next() != Some('[') {
        chars.next();
        return;
    }
    chars.next();
    for c in chars.by_ref() {
        if ('@'..='~').contains(&c) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(one_line(text), expected);
    }

    #[test]
    fn one_line_of_words() {
        check("", "");
        check("plain", "plain");
        check("  two\r\n\tlines \n", "two lines");
        check("\u{1b}[1m\u{1b}[32mok\u{1b}[0m done\u{7}", "ok done");
        check("bad \u{1b}", "bad");
        check("bad \u{1b}[12", "bad");
        check("日本語\u{2028}x", "日本語 x");
    }

    #[test]
    fn two_hundred_characters_stay_and_one_more_is_cut() {
        let exact = "ü".repeat(MESSAGE_CHARS);
        check(&exact, &exact);
        check(&format!("{exact} \n"), &exact);
        check(&format!("{exact}x"), &format!("{}…", "ü".repeat(MESSAGE_CHARS - 1)));
        check(&format!("{} x", "y".repeat(199)), &format!("{}…", "y".repeat(199)));
        check(&format!("{} x", "y".repeat(198)), &format!("{} x", "y".repeat(198)));
    }

    #[test]
    fn the_latest_wins_and_is_taken_once() {
        let (messages, mut seen) = (Messages::default(), 0);
        assert_eq!(messages.take(&mut seen), None);
        for number in 0..100 {
            messages.begin().put(format_args!("number {number}"));
        }
        drop(messages.begin());
        assert_eq!((messages.ended(), messages.coming()), (101, false));
        assert_eq!(messages.take(&mut seen).as_deref(), Some("number 99"));
        assert_eq!(messages.take(&mut seen), None);
    }

    #[test]
    fn who_was_held_up_leaves_what_is_newer() {
        let messages = Messages::default();
        let old = messages.begin();
        (0..SLOTS).for_each(|_| messages.begin().put("new"));
        assert!(messages.coming());
        old.put("old");
        assert_eq!((messages.take(&mut 0).as_deref(), messages.coming()), (Some("new"), false));
    }

    #[test]
    fn a_message_of_any_length_costs_bounded_memory() {
        let messages = Messages::default();
        messages.begin().put("é".repeat(1 << 20));
        let kept = messages.slots.iter().map(|slot| slot.lock().unwrap().text.len()).sum::<usize>();
        assert!(kept <= KEPT_BYTES);
        assert_eq!(messages.take(&mut 0).map(|text| text.chars().count()), Some(MESSAGE_CHARS));
    }

    #[test]
    fn a_message_that_panics_harms_no_other() {
        struct Broken;
        impl Display for Broken {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                panic!("broken on purpose")
            }
        }
        let messages = Messages::default();
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| messages.begin().put(Broken))).is_err());
        assert!(!messages.coming());
        messages.begin().put("fine");
        assert_eq!(messages.take(&mut 0).as_deref(), Some("fine"));
    }

    proptest! {
        #[test]
        fn any_text_becomes_one_short_line(text in "\\PC{0,40}[\\x00-\\x20]{0,3}.{0,300}") {
            let line = one_line(&text);
            prop_assert!(line.chars().count() <= MESSAGE_CHARS);
            prop_assert!(!line.chars().any(|c| c.is_control() || (c.is_whitespace() && c != ' ')));
            prop_assert_eq!(line.trim(), line.as_str());
            prop_assert!(!line.contains("  "));
            prop_assert_eq!(one_line(&line), line);
        }
    }
}

//! Walks over JSON text (RFC 8259) without building values: whether it is well formed, and where things stand in it.
//!
//! For text that is kept as it is: nothing is allocated, and whatever its nesting, no stack is used.

use std::ops::Range;

use crate::encode::first_special;

/// Deepest nesting of objects and arrays, the outermost included: what the most careful of the common readers
/// (System.Text.Json) takes without being told to take more.
pub(crate) const MAX_DEPTH: usize = 64;

/// Something that is not JSON, and the offset at which that shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

/// A string, at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// What is between the quotes.
    pub(crate) inner: Range<usize>,
    /// It is written as [`crate::encode_json_str`] would write it.
    pub(crate) canonical: bool,
    /// Bytes of the text itself; only when it is canonical.
    pub(crate) len: usize,
}

/// A position in a text that is valid UTF-8.
#[derive(Debug)]
pub(crate) struct Walker<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0 }
    }

    /// The offset reached.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Passes bytes that are known.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// The byte here, if there is one.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Passes white space.
    pub(crate) fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Passes a byte that must be here.
    pub(crate) fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Fault> {
        if self.peek() != Some(byte) {
            return Err(self.fault(what));
        }
        self.at += 1;
        Ok(())
    }

    /// A fault here.
    pub(crate) fn fault(&self, what: &'static str) -> Fault {
        let what = if self.at >= self.text.len() { "the line ends before the object does" } else { what };
        Fault { at: self.at, what }
    }

    /// Passes a field's name and colon.
    pub(crate) fn name(&mut self) -> Result<Text, Fault> {
        self.space();
        if self.peek() != Some(b'"') {
            return Err(self.fault("a field's name in double quotes is expected here"));
        }
        let name = self.string()?;
        self.space();
        self.expect(b':', "a colon is expected here")?;
        Ok(name)
    }

    /// Passes a string; its opening quote is here.
    pub(crate) fn string(&mut self) -> Result<Text, Fault> {
        self.at += 1;
        let start = self.at;
        let (mut canonical, mut saved) = (true, 0);
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(offset) = first_special(rest) else {
                self.at = self.text.len();
                return Err(self.fault("the string has no end"));
            };
            self.at += offset;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let (length, plain) = self.escape()?;
                    canonical &= plain;
                    saved += length - 1;
                    self.at += length;
                }
                _ => return Err(self.fault("a control character in a string: it must be written as an escape")),
            }
        }
        let inner = start..self.at;
        self.at += 1;
        Ok(Text { len: inner.len() - saved, inner, canonical })
    }

    /// The length of the escape here, and whether it is the one that we would write.
    fn escape(&self) -> Result<(usize, bool), Fault> {
        let fault = || self.fault("a backslash in a string that begins no escape of JSON");
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f') => Ok((2, true)),
            Some(b'/') => Ok((2, false)),
            Some(b'u') => {
                let digits = self.text.get(self.at + 2..self.at + 6).ok_or_else(fault)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(fault());
                }
                // Only control characters without a short form are written so, in small letters.
                let ours = match digits {
                    [b'0', b'0', b'0', low] => !matches!(low, b'8' | b'9' | b'a' | b'c' | b'd' | b'A'..=b'F'),
                    [b'0', b'0', b'1', low] => !low.is_ascii_uppercase(),
                    _ => false,
                };
                Ok((6, ours))
            }
            _ => Err(fault()),
        }
    }

    /// Passes one value inside an object, with the white space around it.
    pub(crate) fn value(&mut self) -> Result<(), Fault> {
        // One bit for each container that is open: whether it is an object. The outermost object is the caller's.
        let (mut objects, mut depth) = (0u64, 1);
        loop {
            self.space();
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    if depth == MAX_DEPTH {
                        return Err(self.fault("nested deeper than 64 levels"));
                    }
                    self.at += 1;
                    self.space();
                    let is_object = open == b'{';
                    objects = objects << 1 | u64::from(is_object);
                    depth += 1;
                    if self.peek() != Some(if is_object { b'}' } else { b']' }) {
                        if is_object {
                            self.name()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => _ = self.string()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                _ => return Err(self.fault("a value is expected here")),
            }
            if !self.after_value(&mut objects, &mut depth)? {
                return Ok(());
            }
        }
    }

    /// Closes what ends here. Whether another value follows in what is still open.
    fn after_value(&mut self, objects: &mut u64, depth: &mut usize) -> Result<bool, Fault> {
        loop {
            self.space();
            if *depth == 1 {
                return Ok(false);
            }
            let is_object = *objects & 1 == 1;
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    if is_object {
                        self.name()?;
                    }
                    return Ok(true);
                }
                Some(b'}') if is_object => {}
                Some(b']') if !is_object => {}
                _ if is_object => return Err(self.fault("a comma or the end of the object is expected here")),
                _ => return Err(self.fault("a comma or the end of the array is expected here")),
            }
            self.at += 1;
            *objects >>= 1;
            *depth -= 1;
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        let fault = "not a number as JSON writes them";
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(fault)?,
            _ => return Err(self.fault(fault)),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits(fault)?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits(fault)?;
        }
        Ok(())
    }

    fn digits(&mut self, fault: &'static str) -> Result<(), Fault> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.fault(fault)) } else { Ok(()) }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Fault> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.fault("a value is expected here"));
        }
        self.at += word.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::*;

    /// Walks over `{"a":VALUE}`.
    fn walk(value: &str) -> Result<(), Fault> {
        let text = format!("{{\"a\":{value}}}");
        let mut walker = Walker::new(text.as_bytes());
        walker.expect(b'{', "")?;
        walker.name()?;
        walker.value()?;
        walker.expect(b'}', "a comma or the end of the object is expected here")?;
        if walker.at() == text.len() { Ok(()) } else { Err(walker.fault("more")) }
    }

    fn agrees(value: &str) -> Result<(), TestCaseError> {
        let ours = walk(value);
        // Not inside an object: there, a value with further fields behind it would be right.
        let serde = serde_json::from_str::<IgnoredAny>(value);
        prop_assert_eq!(ours.is_ok(), serde.is_ok(), "{:?}: {:?}, {:?}", value, ours, serde.map(|_| ()));
        Ok(())
    }

    #[test]
    fn depth_is_bounded_and_needs_no_stack() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(walk(&nested(MAX_DEPTH - 1)), Ok(()));
        assert_eq!(walk(&nested(MAX_DEPTH)).unwrap_err().what, "nested deeper than 64 levels");
        assert!(walk(&"[".repeat(1_000_000)).is_err());
        let objects = format!("{}1{}", "{\"a\":".repeat(MAX_DEPTH - 1), "}".repeat(MAX_DEPTH - 1));
        assert_eq!(walk(&objects), Ok(()));
    }

    #[test]
    fn faults_are_where_they_show() {
        for (value, at, what) in [
            ("", 5, "a value is expected here"),
            ("tru", 5, "a value is expected here"),
            ("01", 6, "a comma or the end of the object is expected here"),
            ("1.", 7, "not a number as JSON writes them"),
            ("\"a\\x\"", 7, "a backslash in a string that begins no escape of JSON"),
            ("\"\t\"", 6, "a control character in a string: it must be written as an escape"),
            ("[1 2]", 8, "a comma or the end of the array is expected here"),
            ("{\"b\" 1}", 10, "a colon is expected here"),
            ("{b:1}", 6, "a field's name in double quotes is expected here"),
            ("\"abc", 10, "the line ends before the object does"),
        ] {
            assert_eq!(walk(value), Err(Fault { at, what }), "{value}");
        }
    }

    proptest! {
        #[test]
        fn it_takes_what_serde_takes(value in "[\\[\\]{}:,\"\\\\ tn0-9.eE+-]{0,12}") {
            agrees(&value)?;
        }

        #[test]
        fn it_takes_what_serde_takes_of_almost_json(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("{"), Just("}"), Just("["), Just("]"), Just(","), Just(":"), Just("\"k\":"), Just("\"a\\u00e9\""),
                    Just("\"\\ud800\""), Just("1"), Just("-0.5e+3"), Just("true"), Just("null"), Just(" "), Just("\r"),
                    Just("\"é\""), Just("\"\\/\""), Just("\"\\u12g4\""), Just("\u{7f}"), Just("\"\u{0}\""),
                ],
                0..8,
            )
        ) {
            agrees(&parts.concat())?;
        }

        #[test]
        fn canonical_is_what_we_write(text in "(\\PC|[\\x00-\\x22\\\\]){0,20}", inner in "([a-z\"/\\x00]|\\\\[\"\\\\/nrtbfu0-9a-fA-F]{1,5}){0,6}") {
            let mut written = Vec::new();
            crate::encode_json_str(&text, &mut written);
            let found = Walker::new(&written).string().unwrap();
            prop_assert!(found.canonical);
            prop_assert_eq!(found.len, text.len());
            // Of other spellings, exactly those that we would write.
            let quoted = format!("\"{inner}\"");
            let mut walker = Walker::new(quoted.as_bytes());
            if let (Ok(found), Ok(read)) = (walker.string(), serde_json::from_str::<String>(&quoted)) {
                let mut again = Vec::new();
                crate::encode_json_str(&read, &mut again);
                prop_assert_eq!(found.canonical, again == quoted.as_bytes(), "{}", quoted);
                if found.canonical {
                    prop_assert_eq!(found.len, read.len());
                }
            }
        }
    }
}

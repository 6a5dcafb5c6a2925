//! Splits a byte stream into lines of a bounded length. No I/O in here.

/// Splits what is pushed into it at `\n`, holding at most `max` bytes of an unfinished line.
#[derive(Debug)]
pub(super) struct Lines {
    held: Vec<u8>,
    max: usize,
    /// In the rest of a line that was already told to be too long.
    skipping: bool,
}

/// What a line turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A line without its end.
    Whole(&'a [u8]),
    /// A line of more than `max` bytes; told once, as soon as it is known.
    TooLong,
}

/// Capacity kept between lines: one huge message must not pin its memory for the life of the process.
const KEEP: usize = 256 * 1024;

impl Lines {
    pub(super) fn new(max: usize) -> Self {
        Self { held: Vec::new(), max, skipping: false }
    }

    /// Takes `chunk` and hands each line that it completes to `each`, until that fails.
    pub(super) fn push<E>(
        &mut self,
        mut chunk: &[u8],
        mut each: impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (piece, rest) = chunk.split_at(end);
            chunk = rest.get(1..).unwrap_or_default();
            if self.skipping {
                self.skipping = false;
            } else if self.held.len() + piece.len() > self.max {
                self.forget();
                each(Line::TooLong)?;
            } else if self.held.is_empty() {
                each(Line::Whole(piece))?;
            } else {
                self.held.extend_from_slice(piece);
                let told = each(Line::Whole(&self.held));
                self.forget();
                told?;
            }
        }
        if self.skipping {
            return Ok(());
        }
        if self.held.len() + chunk.len() > self.max {
            self.forget();
            self.skipping = true;
            return each(Line::TooLong);
        }
        self.held.extend_from_slice(chunk);
        Ok(())
    }

    /// The last line, when the stream ended without a line end.
    pub(super) fn finish(self) -> Option<Vec<u8>> {
        (!self.held.is_empty()).then_some(self.held)
    }

    fn forget(&mut self) {
        self.held.clear();
        if self.held.capacity() > KEEP {
            self.held = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Pushes `input` in pieces of every size and compares what comes out, `!` standing for too long.
    fn check(input: &str, expected: &[&str]) {
        for size in 1..=input.len().max(1) {
            let mut lines = Lines::new(5);
            let mut seen = Vec::new();
            for chunk in input.as_bytes().chunks(size) {
                let Ok(()) = lines.push(chunk, |line| {
                    seen.push(match line {
                        Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                        Line::TooLong => "!".to_owned(),
                    });
                    Ok::<_, Infallible>(())
                });
            }
            if let Some(last) = lines.finish() {
                seen.push(String::from_utf8_lossy(&last).into_owned());
            }
            assert_eq!(seen, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn splits_at_line_ends_whatever_the_pieces() {
        check("", &[]);
        check("ab\ncd\n", &["ab", "cd"]);
        check("ab\n\ncd", &["ab", "", "cd"]);
        check("12345\n", &["12345"]);
    }

    #[test]
    fn a_long_line_is_told_once_and_skipped() {
        check("123456\nab\n", &["!", "ab"]);
        check("ab\n1234567890123\n\ncd", &["ab", "!", "", "cd"]);
        check("123456789", &["!"]);
    }
}

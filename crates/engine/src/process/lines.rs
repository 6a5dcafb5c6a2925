//! Cutting a stream of bytes into lines: a state machine without I/O.

#[cfg(test)]
mod tests;

use memchr::memchr2;
use taffrail_mcp_core::{LogLine, MAX_LINE_BYTES, Stream};

/// How far beyond the longest piece a line must go before it is cut: then any character across the cut is known whole.
const LOOKAHEAD: usize = 3;

/// Cuts the bytes of one stream into lines.
///
/// What comes out depends on the bytes alone, never on how they were chunked:
///
/// - `\n` and `\r\n` end a line. At the end of the stream a line may lack its end.
/// - A line that is drawn over, `old\rnew`, keeps only its last drawing that is not empty; earlier drawings and all its
///   carriage returns are counted in `folded`. So `done\r` and `done\r\r\n` keep `done`.
/// - A line longer than [`MAX_LINE_BYTES`] comes in pieces of at most that, cut before a character that would lie
///   across the cut when the bytes there are UTF-8. A carriage return reaches back only to the beginning of its piece:
///   what was handed out before stays.
///
/// Memory: one piece. A stream of redraws without end keeps the latest drawing and a count.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The latest drawing of the unfinished line, or its latest piece.
    drawing: Vec<u8>,
    /// Carriage returns read after it.
    returns: u64,
    /// Bytes folded from this piece.
    folded: u64,
    /// Pieces of this line handed out.
    part: u64,
    /// Bytes at the front of `drawing` that the last piece borrowed.
    handed_out: usize,
}

/// A line, or a piece of one, borrowed from the chunk or from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// The bytes, without newline.
    pub(crate) data: &'a [u8],
    /// Which piece of a long line.
    pub(crate) part: Option<u64>,
    /// Another piece follows.
    pub(crate) more: bool,
    /// Bytes of earlier drawings, and carriage returns.
    pub(crate) folded: u64,
    /// A newline followed.
    pub(crate) eol: bool,
    /// The newline was `\r\n`.
    pub(crate) crlf: bool,
}

impl<'a> Piece<'a> {
    const fn whole(data: &'a [u8], crlf: bool) -> Self {
        Self { data, part: None, more: false, folded: 0, eol: true, crlf }
    }

    /// The line for a log.
    pub(crate) const fn line(&self, state: &'a str, index: Option<u64>, stream: Stream) -> LogLine<'a> {
        let &Self { data, part, more, folded, eol, crlf } = self;
        LogLine { state, index, stream, data, part, more, redraw: folded > 0, folded, eol, crlf }
    }
}

impl Lines {
    /// Takes bytes off the front of `chunk` until a piece is complete; `None` when the chunk is used up.
    pub(crate) fn next<'a, 'c: 'a>(&'a mut self, chunk: &mut &'c [u8]) -> Option<Piece<'a>> {
        self.forget_handed_out();
        if self.is_between_lines()
            && let Some(piece) = whole_line(chunk)
        {
            return Some(piece);
        }
        while let Some(&first) = chunk.first() {
            match first {
                b'\n' if self.drawing.len() > MAX_LINE_BYTES => return Some(self.cut()),
                b'\n' => {
                    *chunk = &chunk[1..];
                    return Some(self.finish(true));
                }
                b'\r' => {
                    *chunk = &chunk[1..];
                    self.returns += 1;
                }
                _ => {
                    self.fold();
                    let run = memchr2(b'\n', b'\r', chunk).unwrap_or(chunk.len());
                    // `drawing` never holds more than the bound, as reaching it cuts.
                    let take = run.min(MAX_LINE_BYTES + LOOKAHEAD - self.drawing.len());
                    let (taken, rest) = chunk.split_at(take);
                    self.drawing.extend_from_slice(taken);
                    *chunk = rest;
                    if self.drawing.len() == MAX_LINE_BYTES + LOOKAHEAD {
                        return Some(self.cut());
                    }
                }
            }
        }
        None
    }

    /// What is left at the end of the stream; to be called until it gives `None`.
    pub(crate) fn end(&mut self) -> Option<Piece<'_>> {
        self.forget_handed_out();
        if self.is_between_lines() {
            None
        } else if self.drawing.len() > MAX_LINE_BYTES {
            Some(self.cut())
        } else {
            Some(self.finish(false))
        }
    }

    fn is_between_lines(&self) -> bool {
        self.drawing.is_empty() && self.returns == 0 && self.part == 0
    }

    fn forget_handed_out(&mut self) {
        self.drawing.drain(..self.handed_out);
        self.handed_out = 0;
    }

    /// A character follows carriage returns: what was drawn before them is overwritten.
    fn fold(&mut self) {
        if self.returns > 0 {
            self.folded += self.drawing.len() as u64 + self.returns;
            self.drawing.clear();
            self.returns = 0;
        }
    }

    fn finish(&mut self, eol: bool) -> Piece<'_> {
        let crlf = eol && self.returns > 0;
        let folded = self.folded + self.returns - u64::from(crlf);
        let part = (self.part > 0).then_some(self.part);
        (self.returns, self.folded, self.part, self.handed_out) = (0, 0, 0, self.drawing.len());
        Piece { data: &self.drawing, part, more: false, folded, eol, crlf }
    }

    fn cut(&mut self) -> Piece<'_> {
        let at = cut_at(&self.drawing);
        let (part, folded) = (self.part, self.folded);
        (self.part, self.folded, self.handed_out) = (part + 1, 0, at);
        Piece { data: &self.drawing[..at], part: Some(part), more: true, folded, eol: true, crlf: false }
    }
}

/// The common case: the chunk begins with a whole line that is neither long nor drawn over. It is not copied.
fn whole_line<'a>(chunk: &mut &'a [u8]) -> Option<Piece<'a>> {
    let end = memchr2(b'\n', b'\r', chunk)?;
    if end > MAX_LINE_BYTES {
        return None;
    }
    let (data, rest) = chunk.split_at(end);
    let (crlf, rest) = match rest {
        [b'\n', rest @ ..] => (false, rest),
        [b'\r', b'\n', rest @ ..] => (true, rest),
        _ => return None,
    };
    *chunk = rest;
    Some(Piece::whole(data, crlf))
}

/// Where to cut a line longer than a piece: at the bound, or before the character that lies across it.
fn cut_at(data: &[u8]) -> usize {
    for back in 1..=LOOKAHEAD {
        let start = MAX_LINE_BYTES - back;
        let width = match data.get(start) {
            Some(0x80..=0xbf) => continue,
            Some(0xc2..=0xdf) => 2,
            Some(0xe0..=0xef) => 3,
            Some(0xf0..=0xf4) => 4,
            _ => 1,
        };
        let whole = data.get(start..start + width).is_some_and(|bytes| std::str::from_utf8(bytes).is_ok());
        return if width > back && whole { start } else { MAX_LINE_BYTES };
    }
    MAX_LINE_BYTES
}

//! `Transfer-Encoding: chunked`, without copying.

use anyhow::{Result, bail};

/// Where in the encoding a connection stands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Chunked {
    /// Reading a size; the digits so far.
    #[default]
    Start,
    Size(usize),
    /// In the rest of a size's line, which may hold extensions.
    SizeEnd(usize),
    /// This many bytes of the chunk are to come.
    Data(usize),
    /// In the line end behind a chunk.
    DataEnd,
    /// The last chunk was seen.
    End,
}

impl Chunked {
    /// Takes the next piece of content off the input; `None` when the input is used up or the content has ended.
    pub(crate) fn next<'i>(&mut self, input: &mut &'i [u8]) -> Result<Option<&'i [u8]>> {
        loop {
            if let Self::Data(left) = *self {
                if input.is_empty() {
                    return Ok(None);
                }
                let (piece, rest) = input.split_at(left.min(input.len()));
                *input = rest;
                *self = if piece.len() == left { Self::DataEnd } else { Self::Data(left - piece.len()) };
                return Ok(Some(piece));
            }
            let Some((&byte, rest)) = input.split_first() else { return Ok(None) };
            *self = match (*self, byte) {
                (Self::End, _) => return Ok(None),
                (Self::Start, _) if byte.is_ascii_hexdigit() => Self::Size(hex(byte)),
                (Self::Size(size), _) if byte.is_ascii_hexdigit() => Self::Size(size << 4 | hex(byte)),
                (Self::Size(0) | Self::SizeEnd(0), b'\n') => Self::End,
                (Self::Size(size) | Self::SizeEnd(size), b'\n') => Self::Data(size),
                (Self::Size(size) | Self::SizeEnd(size), _) => Self::SizeEnd(size),
                (Self::DataEnd, b'\r') => Self::DataEnd,
                (Self::DataEnd, b'\n') => Self::Start,
                _ => bail!("byte {byte} has no place in the size of a chunk"),
            };
            *input = rest;
        }
    }

    pub(crate) fn ended(&self) -> bool {
        matches!(self, Self::End)
    }
}

fn hex(byte: u8) -> usize {
    char::from(byte).to_digit(16).unwrap_or_default() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_it_is_cut() {
        let sent = b"5\r\nhello\r\n1;ext=1\r\n \r\n00a\r\nwide world\r\n0\r\n\r\n";
        for cut in 1..sent.len() {
            let (mut chunked, mut got) = (Chunked::default(), Vec::new());
            for mut piece in sent.chunks(cut) {
                while let Some(data) = chunked.next(&mut piece).unwrap() {
                    got.extend_from_slice(data);
                }
            }
            assert_eq!(String::from_utf8_lossy(&got), "hello wide world", "in pieces of {cut}");
            assert!(chunked.ended());
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(Chunked::default().next(&mut b"x".as_slice()).is_err());
    }
}

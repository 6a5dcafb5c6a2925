//! Cuts an event stream into events.

use memchr::memchr_iter;

use super::message::parse;

/// Puts together events that reads have cut in two; whole ones are not copied.
#[derive(Debug, Default)]
pub(crate) struct Events {
    carry: Vec<u8>,
    /// The event in `carry` was given out.
    taken: bool,
}

impl Events {
    /// Takes the next event, its blank line included, off the input.
    pub(crate) fn next<'s, 'i: 's>(&'s mut self, input: &mut &'i [u8]) -> Option<&'s [u8]> {
        /// As much as is looked at to end an event that has begun earlier; most are shorter.
        const STEP: usize = 1024;
        if self.taken {
            self.carry.clear();
            self.taken = false;
        }
        if self.carry.is_empty() {
            if let Some(end) = end_of_event(input) {
                let (event, rest) = input.split_at(end);
                *input = rest;
                return Some(event);
            }
            self.carry.extend_from_slice(input);
            *input = &[];
            return None;
        }
        while !input.is_empty() {
            let (step, rest) = input.split_at(STEP.min(input.len()));
            // The line end before may be the first of the two.
            let old = self.carry.len();
            let from = old.saturating_sub(1);
            self.carry.extend_from_slice(step);
            if let Some(end) = self.carry.get(from..).and_then(end_of_event) {
                let end = from + end;
                self.carry.truncate(end);
                *input = input.get(end - old..).unwrap_or_default();
                self.taken = true;
                return Some(&self.carry);
            }
            *input = rest;
        }
        None
    }
}

/// Behind the first blank line.
fn end_of_event(bytes: &[u8]) -> Option<usize> {
    memchr_iter(b'\n', bytes).find(|at| bytes.get(at + 1) == Some(&b'\n')).map(|at| at + 2)
}

/// What a subscriber looks at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen<'a> {
    /// An event without a name; its id, up to what is no digit any more.
    Event { id: Option<u64> },
    /// One with a name, such as `gap` or `end`.
    Named(&'a [u8]),
    /// A comment, or a time to retry after.
    Nothing,
}

/// Reads the head of an event.
pub(crate) fn look(event: &[u8]) -> Seen<'_> {
    // The usual form first: an id, then data.
    if let Some(rest) = event.strip_prefix(b"id: ") {
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if rest.get(digits..digits + 6) == Some(b"\ndata:") {
            return Seen::Event { id: rest.get(..digits).and_then(parse) };
        }
    }
    let (mut id, mut data) = (None, false);
    for line in event.split(|b| *b == b'\n') {
        let value = |name: &[u8]| {
            let value = line.strip_prefix(name)?;
            Some(value.strip_prefix(b" ").unwrap_or(value))
        };
        if let Some(name) = value(b"event:") {
            return Seen::Named(name);
        }
        if let Some(value) = value(b"id:") {
            let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
            id = value.get(..digits).and_then(parse);
        }
        data |= line.starts_with(b"data:");
    }
    if data { Seen::Event { id } } else { Seen::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_however_they_are_cut() {
        let sent =
            b": hi\n\nretry: 2000\n\nid: 1\ndata: {}\n\nid: 1733:4\ndata: x\n\nid:3\nevent:gap\ndata: {}\n\nid: 4";
        let expected = [
            Seen::Nothing,
            Seen::Nothing,
            Seen::Event { id: Some(1) },
            Seen::Event { id: Some(1733) },
            Seen::Named(b"gap"),
        ];
        for cut in 1..sent.len() {
            let (mut events, mut count) = (Events::default(), 0);
            for mut piece in sent.chunks(cut) {
                while let Some(event) = events.next(&mut piece) {
                    assert_eq!(look(event), expected[count], "in pieces of {cut}");
                    count += 1;
                }
            }
            assert_eq!(count, expected.len(), "in pieces of {cut}");
        }
    }
}

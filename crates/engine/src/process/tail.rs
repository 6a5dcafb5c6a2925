//! The end of a stream.

/// How much of it is kept, in bytes.
pub(crate) const TAIL_BYTES: usize = 64 * 1024;

/// Keeps the last 64 KiB that went by, in at most twice the memory.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    kept: Vec<u8>,
    truncated: bool,
}

impl Tail {
    /// More went by.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        if self.kept.len() + last.len() > 2 * TAIL_BYTES {
            self.cut(TAIL_BYTES - last.len());
        }
        self.truncated |= last.len() < bytes.len();
        self.kept.extend_from_slice(last);
    }

    /// The end, and whether anything came before it.
    pub(crate) fn into_end(mut self) -> (Vec<u8>, bool) {
        self.cut(TAIL_BYTES);
        (self.kept, self.truncated)
    }

    fn cut(&mut self, to: usize) {
        let excess = self.kept.len().saturating_sub(to);
        self.truncated |= excess > 0;
        self.kept.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_whatever_the_chunks() {
        for (total, chunk) in [(10, 3), (TAIL_BYTES, 1000), (TAIL_BYTES + 1, 7), (400_000, 300_000), (1_000_000, 4096)]
        {
            let all: Vec<u8> = (0..total).map(|i| (i % 251) as u8).collect();
            let mut tail = Tail::default();
            all.chunks(chunk).for_each(|chunk| tail.push(chunk));
            assert!(tail.kept.len() <= 2 * TAIL_BYTES);
            let from = total.saturating_sub(TAIL_BYTES);
            assert_eq!(tail.into_end(), (all[from..].to_vec(), from > 0), "{total} in {chunk}");
        }
    }
}

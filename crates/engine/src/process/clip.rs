//! Counting what is clipped.

use std::time::{Duration, Instant};

use taffrail_mcp_core::{ClipReason, Clipped, LogLine, Timestamp};

/// How long clipped output may go untold.
const PERIOD: Duration = Duration::from_secs(10);

/// What of one stream was clipped and not yet told.
#[derive(Debug, Default)]
pub(crate) struct Clip {
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    event: Clipped,
    due: Instant,
}

impl Clip {
    /// Counts a line, or a piece of one, that was read at `(now, ts)` and is not kept.
    pub(crate) fn count(&mut self, line: &LogLine<'_>, now: Instant, ts: Timestamp) {
        let pending = self.pending.get_or_insert_with(|| Pending {
            event: Clipped {
                state: Some(line.state.to_owned()),
                index: line.index,
                stream: line.stream,
                lines: 0,
                bytes: 0,
                reason: ClipReason::RunCap,
                from_ts: ts,
                to_ts: ts,
            },
            due: now + PERIOD,
        });
        pending.event.lines += u64::from(!line.more);
        pending.event.bytes += line.bytes();
        pending.event.to_ts = ts;
    }

    /// When it should be told, if there is anything to tell.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.pending.as_ref().map(|pending| pending.due)
    }

    /// What is to be told when it is due by `now`.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Clipped> {
        self.pending.take_if(|pending| pending.due <= now).map(|pending| pending.event)
    }

    /// What is to be told in any case.
    pub(crate) fn take(&mut self) -> Option<Clipped> {
        self.pending.take().map(|pending| pending.event)
    }
}

#[cfg(test)]
mod tests {
    use taffrail_mcp_core::Stream;

    use super::*;

    #[test]
    fn told_every_ten_seconds_and_at_the_end() {
        let start = Instant::now();
        let mut clip = Clip::default();
        let line = LogLine { more: true, ..LogLine::new("s", Stream::Stderr, b"abc") };
        clip.count(&line, start, Timestamp::from_micros(5));
        clip.count(&LogLine::new("s", Stream::Stderr, b"abc"), start, Timestamp::from_micros(9));
        assert_eq!((clip.due(), clip.take_due(start)), (Some(start + PERIOD), None));
        let told = clip.take_due(start + PERIOD).unwrap();
        assert_eq!((told.lines, told.bytes, told.from_ts.micros(), told.to_ts.micros()), (1, 7, 5, 9));
        assert_eq!((clip.due(), clip.take()), (None, None));
    }
}

//! When to send what: the pace of a stream, as a state machine without a clock.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    Config, Notification, ProgressToken, Source,
    stream::{Reading, Stream},
};

/// What a thread may take between its number and its words before the number goes out without them.
const WORDS_TAKE: Duration = Duration::from_millis(1);

/// Makes the two ends of one request's progress: emitters come from the [`Source`], notifications out of the [`Outlet`].
///
/// `wake` is called, from the thread of a report, when the outlet has [slept](Next::Sleep) and should be polled again. It
/// must return at once. With tokio, `RequestProgress` does all of this.
pub fn channel(token: ProgressToken, config: Config, wake: impl Fn() + Send + Sync + 'static) -> (Source, Outlet) {
    let stream = Arc::new(Stream::new(wake));
    (Source::new(Arc::clone(&stream)), Outlet::new(stream, token, config))
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Send this, then poll again, with the time at which it was sent.
    Send(Notification),
    /// Poll again at this time, not before: whatever happens until then is held back.
    Pause(Instant),
    /// Poll again at this time, if there is one, or as soon as `wake` is called.
    Sleep(Option<Instant>),
}

/// The end of a stream of progress from which notifications are sent.
///
/// What it gives out is strictly increasing and finite, whatever the emitters are told. Dropping it ends the stream:
/// reports are still checked, and go nowhere.
///
/// ```
/// use std::time::{Duration, Instant};
/// use taffrail_progress::{Config, Next, ProgressSource, ProgressToken, channel};
///
/// let (source, mut outlet) = channel(ProgressToken::Number(1), Config::default(), || {});
/// let p = source.counting_progress(Some(3));
/// p.emit_with("one")?;
/// let begin = Instant::now();
/// let Next::Send(first) = outlet.poll(begin) else { panic!("the first goes at once") };
/// assert_eq!((first.progress, first.total, first.message.as_deref()), (1.0, Some(3.0), Some("one")));
///
/// p.emit()?;
/// p.emit()?;
/// assert_eq!(outlet.poll(begin), Next::Pause(begin + Duration::from_millis(500)));
/// assert_eq!(outlet.finish().map(|last| last.progress), Some(3.0));
/// # Ok::<(), taffrail_progress::ProgressError>(())
/// ```
#[derive(Debug)]
pub struct Outlet {
    stream: Arc<Stream>,
    token: ProgressToken,
    config: Config,
    /// The last number on the wire.
    sent: Option<f64>,
    /// What the emitters had reached then.
    told: Option<f64>,
    /// The messages that had ended when they were last looked at, and the key of the newest of them.
    ended: u64,
    seen: u64,
    /// The message that stands, and whether it has not been sent yet.
    message: Option<String>,
    fresh: bool,
    /// Has waited for words that were coming.
    waited: bool,
    /// When the last notification went out, or, before, when there was an emitter to speak of.
    since: Option<Instant>,
    /// A notification was given out, and is sent as soon as there is another poll.
    sending: bool,
    finished: bool,
}

impl Outlet {
    fn new(stream: Arc<Stream>, token: ProgressToken, config: Config) -> Self {
        Self {
            stream,
            token,
            config,
            sent: None,
            told: None,
            ended: 0,
            seen: 0,
            message: None,
            fresh: false,
            waited: false,
            since: None,
            sending: false,
            finished: false,
        }
    }

    /// Says what to do at `now`. Times must not go back.
    pub fn poll(&mut self, now: Instant) -> Next {
        if self.finished {
            return Next::Sleep(None);
        }
        if std::mem::take(&mut self.sending) {
            self.since = Some(now);
        }
        self.stream.disarm();
        match self.look(now) {
            Next::Sleep(_) => {
                // See `Stream::arm`: what came before it wakes nobody, so look once more.
                self.stream.arm();
                let next = self.look(now);
                if !matches!(next, Next::Sleep(_)) {
                    self.stream.disarm();
                }
                next
            }
            next => next,
        }
    }

    fn look(&mut self, now: Instant) -> Next {
        let Some(reading) = self.stream.read() else { return Next::Sleep(None) };
        // After the number: the message of a number that was read is there, or coming.
        let coming = self.stream.messages().coming();
        self.take_message();
        if self.has_news(&reading) {
            let since = self.since.filter(|_| self.sent.is_some());
            let due = since.and_then(|since| since.checked_add(self.config.min_interval));
            if let Some(due) = due.filter(|due| now < *due) {
                return Next::Pause(due);
            }
            if coming && !std::mem::replace(&mut self.waited, true) {
                return Next::Pause(now + WORDS_TAKE);
            }
            if let Some(next) = self.give_out(&reading) {
                return Next::Send(next);
            }
        }
        let since = *self.since.get_or_insert(now);
        let Some(beat) = self.config.heartbeat.and_then(|after| since.checked_add(after)) else {
            return Next::Sleep(None);
        };
        if now < beat {
            return Next::Sleep(Some(beat));
        }
        match self.give_out(&reading) {
            Some(next) => Next::Send(next),
            None => {
                self.since = Some(now);
                Next::Sleep(self.config.heartbeat.and_then(|after| now.checked_add(after)))
            }
        }
    }

    /// The last notification, if there is anything left to say. It does not wait for its time. The stream ends here.
    pub fn finish(&mut self) -> Option<Notification> {
        if std::mem::replace(&mut self.finished, true) {
            return None;
        }
        let reading = self.stream.read();
        self.stream.close();
        let reading = reading?;
        self.take_message();
        if self.has_news(&reading) { self.give_out(&reading) } else { None }
    }

    fn has_news(&self, reading: &Reading) -> bool {
        reading.value.is_some() && (reading.value != self.told || self.fresh)
    }

    fn take_message(&mut self) {
        let ended = self.stream.messages().ended();
        if ended != self.ended {
            self.ended = ended;
            if let Some(text) = self.stream.messages().take(&mut self.seen) {
                (self.message, self.fresh) = (Some(text), true);
            }
        }
    }

    /// The next notification, if the wire has room for its number. In any case what there was to say is said.
    fn give_out(&mut self, reading: &Reading) -> Option<Notification> {
        (self.told, self.fresh, self.waited) = (reading.value, false, false);
        let progress = reading.after(self.sent)?;
        (self.sent, self.sending) = (Some(progress), true);
        Some(Notification { token: self.token.clone(), progress, total: reading.total, message: self.message.clone() })
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.stream.close();
    }
}

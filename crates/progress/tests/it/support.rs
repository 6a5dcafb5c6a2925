//! A wire that checks what goes over it.

use std::time::{Duration, Instant};

use taffrail_progress::{Config, Next, Notification, Outlet, ProgressToken, Source, channel};

pub(crate) const HALF: Duration = Duration::from_millis(500);

/// One request, in simulated time.
pub(crate) struct Wire {
    outlet: Outlet,
    pub(crate) now: Instant,
    pub(crate) sent: Vec<Notification>,
}

impl Wire {
    pub(crate) fn new(config: Config) -> (Source, Self) {
        let (source, outlet) = channel(ProgressToken::Number(1), config, || {});
        (source, Self { outlet, now: Instant::now(), sent: Vec::new() })
    }

    /// Lets time pass, sending whatever is to be sent meanwhile.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let at = match self.outlet.poll(self.now) {
                Next::Send(notification) => {
                    self.sent.push(notification);
                    continue;
                }
                Next::Pause(at) | Next::Sleep(Some(at)) => at,
                Next::Sleep(None) => end,
            };
            if at > end {
                break;
            }
            self.now = at;
            if at == end {
                if let Next::Send(notification) = self.outlet.poll(self.now) {
                    self.sent.push(notification);
                }
                break;
            }
        }
        self.now = end;
    }

    /// The end of the request. Checks the whole stream, and returns it.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Vec<Notification> {
        self.sent.extend(self.outlet.finish());
        check(&self.sent);
        self.sent
    }
}

/// What holds for every stream.
#[track_caller]
pub(crate) fn check(sent: &[Notification]) {
    for pair in sent.windows(2) {
        assert!(pair[0].progress < pair[1].progress, "{pair:?}");
    }
    for one in sent {
        assert!(one.progress.is_finite(), "{one:?}");
        assert!(one.message.as_ref().is_none_or(|text| text.chars().count() <= 200 && !text.contains('\n')), "{one:?}");
    }
}

pub(crate) fn numbers(sent: &[Notification]) -> Vec<f64> {
    sent.iter().map(|one| one.progress).collect()
}

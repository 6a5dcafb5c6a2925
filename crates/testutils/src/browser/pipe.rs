//! The DevTools protocol: JSON messages, each ended by a zero byte.

use std::{
    collections::VecDeque,
    io::{BufRead as _, BufReader, Read, Write},
    sync::{
        Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

/// One end of the pipe. One call at a time.
#[derive(Debug)]
pub(super) struct Pipe(Mutex<State>);

struct State {
    to: Box<dyn Write + Send>,
    from: Receiver<Value>,
    calls: u64,
    /// What came and was not asked for.
    events: VecDeque<Value>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("calls", &self.calls).field("events", &self.events).finish_non_exhaustive()
    }
}

impl Pipe {
    pub(super) fn new(to: impl Write + Send + 'static, from: impl Read + Send + 'static) -> Self {
        let (sender, messages) = mpsc::channel();
        // Ends with the browser, which ends when `to` is closed.
        thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut message = Vec::new();
            while from.read_until(0, &mut message).is_ok_and(|n| n > 0) {
                message.pop();
                let parsed = serde_json::from_slice(&message);
                message.clear();
                if parsed.is_ok_and(|parsed| sender.send(parsed).is_err()) {
                    return;
                }
            }
        });
        Self(Mutex::new(State { to: Box::new(to), from: messages, calls: 0, events: VecDeque::new() }))
    }

    /// Calls a method, of a page or of the browser, and gives its result.
    pub(super) fn call(
        &self,
        session: Option<&str>,
        method: &str,
        params: &Value,
        within: Duration,
    ) -> Result<Value, String> {
        let mut state = self.state();
        state.calls += 1;
        let id = state.calls;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let sent = state.to.write_all(format!("{message}\0").as_bytes()).and_then(|()| state.to.flush());
        sent.map_err(|error| format!("the browser is gone: {error}"))?;
        let mut answer = state.find(|message| message["id"] == id, within)?;
        match answer.get("error") {
            Some(error) => Err(error.to_string()),
            None => Ok(answer["result"].take()),
        }
    }

    /// The next event of a name, waited for if need be.
    pub(super) fn event(&self, session: &str, name: &str, within: Duration) -> Result<Value, String> {
        let mut state = self.state();
        let is_it = |message: &Value| message["sessionId"] == session && message["method"] == name;
        match state.events.iter().position(is_it) {
            Some(at) => Ok(state.events.remove(at).unwrap_or_default()),
            None => state.find(is_it, within),
        }
    }

    /// Drops the events that have come.
    pub(super) fn forget_events(&self) {
        let mut state = self.state();
        while state.from.try_recv().is_ok() {}
        state.events.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked here left nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The first message from here on that is looked for; events before it are kept.
    fn find(&mut self, is_it: impl Fn(&Value) -> bool, within: Duration) -> Result<Value, String> {
        let deadline = Instant::now() + within;
        loop {
            let message = self.from.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let message = message.map_err(|error| match error {
                RecvTimeoutError::Timeout => format!("no answer within {within:?}"),
                RecvTimeoutError::Disconnected => "the browser is gone".to_owned(),
            })?;
            if is_it(&message) {
                return Ok(message);
            }
            if message.get("method").is_some() {
                self.events.push_back(message);
            }
        }
    }
}

//! A headless Chromium, driven as a person would drive it.
//!
//! A [`Browser`] is one process with a new profile; a [`Page`] is a tab with cookies of its own. Pages are driven by the
//! [DevTools protocol](https://chromedevtools.github.io/devtools-protocol/) over a pipe: when the test's process ends,
//! however it ends, the pipe closes and the browser ends too.
//!
//! Chromium is looked for in `PATH`. When there is none and this is root, Debian's package `chromium` is installed.
//!
//! ```no_run
//! use taffrail_testutils::browser::Browser;
//!
//! let browser = Browser::start();
//! let page = browser.page();
//! page.open("http://127.0.0.1:7433/");
//! page.until("the page has a title", "document.title !== ''");
//! assert_eq!(page.eval("document.title"), "Taffrail");
//! ```

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod pipe;
mod process;

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use self::{pipe::Pipe, process::Process};

/// No single step of a page takes longer, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// The first steps of a browser and of a tab start several processes each, which takes longer.
const START_PATIENCE: Duration = Duration::from_secs(90);

/// A browser. Dropping it ends all its processes and removes its profile.
#[derive(Debug)]
pub struct Browser {
    pipe: Pipe,
    /// Last: it ends when the pipe is closed.
    process: Process,
}

/// A tab with cookies of its own. All its methods panic when something fails, with what was said.
#[derive(Debug)]
pub struct Page<'a> {
    browser: &'a Browser,
    session: String,
}

impl Browser {
    /// Starts it. Takes about two seconds.
    pub fn start() -> Self {
        let (process, to, from) = Process::start();
        let browser = Self { pipe: Pipe::new(to, from), process };
        browser.call_within(START_PATIENCE, None, "Browser.getVersion", &json!({}));
        browser
    }

    /// Opens an empty tab that shares nothing with the others.
    pub fn page(&self) -> Page<'_> {
        let text = |value: &Value, field: &str| value[field].as_str().expect("an id").to_owned();
        let context = text(&self.start_step("Target.createBrowserContext", &json!({})), "browserContextId");
        let asked = json!({ "url": "about:blank", "browserContextId": context });
        let target = text(&self.start_step("Target.createTarget", &asked), "targetId");
        let asked = json!({ "targetId": target, "flatten": true });
        let session = text(&self.start_step("Target.attachToTarget", &asked), "sessionId");
        self.call(Some(&session), "Page.enable", &json!({}));
        Page { browser: self, session }
    }

    fn start_step(&self, method: &str, params: &Value) -> Value {
        self.call_within(START_PATIENCE, None, method, params)
    }

    fn call(&self, session: Option<&str>, method: &str, params: &Value) -> Value {
        self.call_within(PATIENCE, session, method, params)
    }

    fn call_within(&self, within: Duration, session: Option<&str>, method: &str, params: &Value) -> Value {
        let answer = self.pipe.call(session, method, params, within);
        answer.unwrap_or_else(|error| panic!("{method}: {error}\n{}", self.process.said()))
    }
}

impl Page<'_> {
    /// Goes to a URL as if it was typed, and returns when the page that comes is there with all its parts. Gives the
    /// status of the answer.
    #[track_caller]
    pub fn open(&self, url: &str) -> u16 {
        self.browser.pipe.forget_events();
        let answer = self.browser.call(Some(&self.session), "Page.navigate", &json!({ "url": url }));
        assert_eq!(answer.get("errorText"), None, "{url} cannot be opened");
        let loaded = self.browser.pipe.event(&self.session, "Page.loadEventFired", PATIENCE);
        loaded.unwrap_or_else(|error| panic!("{url} is not loaded: {error}\n{}", self.browser.process.said()));
        let status = self.eval("performance.getEntriesByType('navigation')[0].responseStatus");
        status.as_u64().and_then(|status| status.try_into().ok()).expect("a status")
    }

    /// What an expression is, as JSON; promises are waited for.
    #[track_caller]
    pub fn eval(&self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.browser.call(Some(&self.session), "Runtime.evaluate", &asked);
        if let Some(thrown) = answer.get("exceptionDetails") {
            panic!("{expression}\nthrew {}", thrown["exception"]["description"].as_str().unwrap_or("something"));
        }
        answer["result"].get("value").cloned().unwrap_or_default()
    }

    /// Waits until an expression is true, as JavaScript has it, and gives what it is then.
    #[track_caller]
    pub fn until(&self, what: &str, expression: &str) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let value = self.eval(expression);
            if !matches!(value, Value::Null | Value::Bool(false)) && value != 0 && value != "" {
                return value;
            }
            assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what} ({expression})");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types a text into the field that has the focus.
    pub fn type_text(&self, text: &str) {
        self.browser.call(Some(&self.session), "Input.insertText", &json!({ "text": text }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_opened_and_asked_and_nothing_is_left() {
        let browser = Browser::start();
        let dir = browser.process.dir().to_owned();
        let page = browser.page();
        page.open("data:text/html,<title>A page</title><script>setTimeout(() => window.late = 7, 50)</script>");
        assert_eq!(page.eval("document.title"), "A page");
        assert_eq!(page.until("a timer has fired", "window.late"), 7);
        assert_eq!(page.eval("new Promise((done) => setTimeout(() => done([1, null]), 1))"), json!([1, null]));
        assert_eq!(browser.page().eval("document.title"), "", "another page is another page");
        assert!(!process::all_of(&dir).is_empty());
        drop(browser);
        assert_eq!(process::all_of(&dir), Vec::<u32>::new());
        assert!(!dir.exists());
    }

    #[test]
    #[should_panic(expected = "threw ReferenceError: there is not defined")]
    fn what_a_page_throws_is_told() {
        Browser::start().page().eval("there.is.none");
    }
}

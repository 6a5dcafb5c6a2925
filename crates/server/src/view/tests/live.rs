//! The live view on a terminal, and that it gives the terminal back.

use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use serde_json::json;

use super::*;
use crate::view::{Mode, View};

#[derive(Clone, Default)]
pub(super) struct Out(Arc<Mutex<Vec<u8>>>, Option<usize>);

impl std::io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut out = self.0.lock().unwrap();
        if self.1.is_some_and(|most| out.len() + bytes.len() > most) {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        out.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Out {
    /// What was written since the last time.
    pub(super) fn raw(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }

    /// The same, with escapes that can be read.
    pub(super) fn take(&self) -> String {
        self.raw().replace('\x1b', "^").replace('\r', "<")
    }
}

fn view(mode: Mode) -> (View, Out) {
    let out = Out::default();
    (View::new(mode, Box::new(out.clone())), out)
}

#[test]
fn modes_fit_the_place() {
    let live = |color| Mode::Live { color };
    let plain = Mode::Plain { color: false };
    let cases = [
        ((true, true, false, Some("xterm")), Mode::Json),
        ((false, true, false, Some("xterm")), live(true)),
        ((false, true, true, Some("xterm")), live(false)),
        ((false, true, false, Some("dumb")), plain),
        ((false, true, false, None), plain),
        ((false, false, false, Some("xterm")), plain),
    ];
    for ((json, terminal, no_color, term), mode) in cases {
        assert_eq!(Mode::pick(json, terminal, no_color, term), mode);
    }
}

#[test]
fn the_tree_is_drawn_and_taken_away() {
    let (mut view, out) = view(Mode::Live { color: true });
    view.record(&run_start(0, "build"));
    view.record(&state_start(0, 0, 1, "build", "run"));
    assert_eq!(out.take(), "");
    view.tick(at(1000), (40, 10));
    assert_snapshot!(out.take(), @r#"
    ^[?2026h^[?25l<^[36m⠋^[0m ^[1mrelease^[0m  1.0s  ^[2mrun-1^[0m^[K<
      ^[36m⠋^[0m build     1.0s^[K<
    ^[J^[?2026l
    "#);
    view.record(&state_done(3200, 0, 1, "build", "ok", json!({"exit":{"code":0},"to":"END"})));
    view.record(&finished(3200, "done", json!({})));
    view.finish(&snapshot(json!({})));
    assert_snapshot!(out.take(), @r#"
    <^[2A  ^[32m✓^[0m build     3.2s^[K<
    ^[J^[?25h^[32m✓^[0m ^[1mrelease^[0m ^[32mdone^[0m in 12.3s  ^[2m1,200 lines^[0m
      ^[2mrun:^[0m        run-1
    "#);
    drop(view);
    assert_eq!(out.take(), "");
}

#[test]
fn a_dropped_view_gives_the_cursor_back() {
    let (mut view, out) = view(Mode::Live { color: false });
    view.tick(at(0), (40, 10));
    out.take();
    drop(view);
    assert_eq!(out.take(), "<^[1A^[J^[?25h");
}

#[test]
fn output_of_a_command_scrolls_by() {
    let (mut view, out) = view(Mode::Live { color: false });
    view.record(&run_start(0, "exec"));
    view.record(&state_start(0, 0, 1, "exec", "run"));
    view.record(&log(10, "exec", "\x1b[2Jhello\t\x1b]0;title\x07world"));
    view.tick(at(1000), (60, 10));
    assert_snapshot!(out.take(), @r#"
    ^[?2026h^[?25l<hello   world^[K<
    ⠋ release  1.0s  1 line  run-1^[K<
    ^[J^[?2026l
    "#);
    view.record(&log(10, "exec", "more"));
    view.finish(&snapshot(json!({"playbook":"my build"})));
    assert_snapshot!(out.take(), @r#"
    <^[1Amore^[K<
    ^[J^[?25h✓ my build done in 12.3s  1,200 lines
      run:        run-1
    "#);
}

#[test]
fn much_output_is_not_held_back() {
    let (mut view, out) = view(Mode::Live { color: false });
    view.record(&run_start(0, "exec"));
    for _ in 0..2000 {
        view.record(&log(10, "exec", &"x".repeat(80)));
    }
    assert!(out.take().len() > 2 * 64 * 1024);
}

#[test]
fn json_is_passed_on_as_it_is() {
    let (mut view, out) = view(Mode::Json);
    view.record(b"{\"not\":  \"ours\"}");
    view.record(b"{\"a\":1}\n");
    view.tick(at(0), (80, 24));
    view.finish(&snapshot(json!({})));
    assert_eq!(out.take(), "{\"not\":  \"ours\"}\n{\"a\":1}\n");
}

#[test]
fn a_broken_terminal_hurts_nobody() {
    let out = Out(Arc::default(), Some(10));
    let mut view = View::new(Mode::Live { color: true }, Box::new(out.clone()));
    view.tick(at(0), (0, 0));
    view.record(&run_start(0, "build"));
    view.finish(&snapshot(json!({})));
    drop(view);
    assert_eq!(out.take(), "");
}

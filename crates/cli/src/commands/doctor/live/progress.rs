//! A bar on a terminal: a large cluster takes its time.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on stderr, if that is a terminal.
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// So many of something are to be read.
    pub(super) fn new(what: &str, count: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(count as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template(&format!("reading {what} {{bar:30}} {{pos}} of {{len}}"));
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self(bar)
    }

    /// One is read.
    pub(super) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

//! A bar on a terminal for renderings that take their time.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What is done in less is not worth a bar.
const QUIET: Duration = Duration::from_secs(1);

/// A bar that shows itself only after a second, on stderr if that is a terminal.
pub(super) struct Progress {
    start: Instant,
    bar: ProgressBar,
}

impl Progress {
    /// Nothing is done yet.
    pub(super) fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("rendering {bar:30} {pos} of {len} Applications");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { start: Instant::now(), bar }
    }

    /// So many are done, of so many that are known of.
    pub(super) fn tell(&self, done: usize, known: usize) {
        if self.start.elapsed() >= QUIET {
            self.bar.set_length(known as u64);
            self.bar.set_position(done as u64);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

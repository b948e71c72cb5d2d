//! A progress bar on standard error, where somebody watches and the work is long.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracewalk_report::drive::Progress;

/// Shows how far the work has come.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

/// Below this no bar is worth a look.
const LONG_WORK: u64 = 32 << 20;

impl Bar {
    /// A bar for `bytes` bytes of work. There is none where the output itself goes to a terminal and shows the
    /// progress, or where nobody watches.
    pub(crate) fn new(bytes: u64, quiet: bool) -> Self {
        let watched = io::stderr().is_terminal() && !io::stdout().is_terminal();
        let target = if watched && !quiet && bytes >= LONG_WORK {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        let template = "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self(bar)
    }
}

impl Progress for Bar {
    fn done(&self, bytes: u64) {
        self.0.set_position(bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

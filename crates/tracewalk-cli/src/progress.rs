//! A progress bar on standard error, for long work at a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracewalk_analysis::drive::Progress;

/// Shows how far work has come.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

/// The shortest work with a bar, in bytes.
const LONG_WORK: u64 = 32 << 20;

impl Bar {
    /// For `bytes` bytes of work. Without `watches` there is no bar: an output on a terminal shows progress itself.
    pub(crate) fn new(bytes: u64, watches: bool) -> Self {
        let target = match watches && bytes >= LONG_WORK {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        let template = "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self(bar)
    }
}

impl Bar {
    /// For this number of captures. Without `watches` there is no bar.
    pub(crate) fn of_captures(all: u64, watches: bool) -> Self {
        let target = if watches { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(all), target);
        let template = "{wide_bar} {pos}/{len} captures {eta}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self(bar)
    }
}

impl Progress for Bar {
    fn done(&self, bytes: u64) -> bool {
        self.0.set_position(bytes);
        true
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

//! Watching the work: a progress bar on standard error, where somebody looks and the work is long, and the end of the
//! work where memory runs out.

use std::cell::Cell;
use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracewalk_analysis::drive::Progress;
use tracewalk_input::MemoryLimit;

use crate::messages::Messages;

/// Shows how far the work has come, and ends it at the limit of memory.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    bar: ProgressBar,
    /// How many bytes of memory end the work.
    most: Option<u64>,
    /// Up to this byte of the capture it cannot have come to that.
    enough_until: Cell<u64>,
    /// Memory ran out behind this byte, and it was told.
    ended_at: Cell<Option<u64>>,
    messages: &'a Messages,
}

/// Below this no bar is worth a look.
const LONG_WORK: u64 = 32 << 20;

/// The part of the limit that is kept to write the results.
const KEPT: u64 = 8;

/// No more bytes of memory come from a byte of the capture: the costliest of all, the newest instructions without an end, takes
/// 40 and now and then moves them.
const MOST_FOR_A_BYTE: u64 = 128;

impl<'a> Watch<'a> {
    /// For `bytes` bytes of work. There is no bar where the output itself goes to a terminal and shows the progress, or
    /// where nobody looks.
    pub(crate) fn new(bytes: u64, limit: MemoryLimit, messages: &'a Messages) -> Self {
        let watched = io::stderr().is_terminal() && !io::stdout().is_terminal();
        let target = if watched && !messages.quiet() && bytes >= LONG_WORK {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(bytes), target);
        let template = "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let most = limit.bytes().map(|limit| limit - limit / KEPT);
        Self { bar, most, enough_until: Cell::default(), ended_at: Cell::default(), messages }
    }
}

impl Watch<'_> {
    /// Behind which byte of the capture the work ended, if not at its end.
    pub(crate) const fn ended_at(&self) -> Option<u64> {
        self.ended_at.get()
    }
}

impl Progress for Watch<'_> {
    fn done(&self, bytes: u64) -> bool {
        self.bar.set_position(bytes);
        let Some(most) = self.most else { return true };
        if bytes < self.enough_until.get() {
            return true;
        }
        let used = in_use().unwrap_or(0);
        self.enough_until.set(bytes.saturating_add(most.saturating_sub(used) / MOST_FOR_A_BYTE));
        if used > most && self.ended_at.get().is_none() {
            self.ended_at.set(Some(bytes));
            self.messages.cut();
            self.messages.incomplete(format_args!(
                "{} MiB of memory are in use; decoding ends behind byte {bytes} of the capture, and what was found up to \
                 there is printed; raise --memory, or decode less with --id or an option that limits the result",
                used >> 20,
            ));
        }
        self.ended_at.get().is_none()
    }
}

/// How many bytes of memory the process has that are no file's; `None` where the system does not say it.
fn in_use() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes =
        status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?.trim().strip_suffix(" kB")?;
    kibibytes.parse::<u64>().ok()?.checked_mul(1024)
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

//! Watches long work: its progress, and its end if memory runs out.

use std::cell::Cell;
use std::fmt;

use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::Progress;
use tracewalk_input::MemoryLimit;

use crate::notice::NoticeKind;
use crate::observer::{Observer, Say};

/// Follows the progress of work on a capture, and ends it at the limit of memory.
pub struct Watch<'a> {
    progress: Box<dyn Progress + 'a>,
    /// The number of bytes of memory that ends the work.
    most: Option<u64>,
    /// The byte of the capture before which the work cannot have used this memory.
    enough_until: Cell<u64>,
    /// The byte of the capture after which the work was ended.
    ended_at: Cell<Option<u64>>,
    observer: &'a dyn Observer,
}

/// One part in this number of the limit is reserved for writing the results.
const KEPT: u64 = 8;

/// The most bytes of memory for a byte of the capture. The costliest use is to hold the newest instructions without a
/// limit: 48 bytes for each atom, and a byte has at most 15 atoms.
const MOST_FOR_A_BYTE: u64 = 15 * 48;

impl<'a> Watch<'a> {
    /// Watches work on `bytes` bytes.
    pub(crate) fn new(bytes: u64, limit: MemoryLimit, observer: &'a dyn Observer) -> Self {
        Self {
            progress: observer.work(bytes),
            most: limit.bytes().map(|limit| limit - limit / KEPT),
            enough_until: Cell::default(),
            ended_at: Cell::default(),
            observer,
        }
    }

    /// The byte of the capture after which the work was ended: results cover the part before it. `None` if the work was finished.
    #[must_use]
    pub const fn ended_at(&self) -> Option<u64> {
        self.ended_at.get()
    }

    fn end_at(&self, bytes: u64) -> bool {
        let first = self.ended_at.get().is_none();
        if first {
            self.ended_at.set(Some(bytes));
        }
        first
    }
}

impl Progress for Watch<'_> {
    fn done(&self, bytes: u64) -> bool {
        if !self.progress.done(bytes) {
            self.end_at(bytes);
        }
        if let Some(most) = self.most
            && bytes >= self.enough_until.get()
        {
            let used = in_use().unwrap_or(0);
            self.enough_until.set(bytes.saturating_add(most.saturating_sub(used) / MOST_FOR_A_BYTE));
            if used > most && self.end_at(bytes) {
                self.observer.say_at(CaptureOffset(bytes), NoticeKind::MemoryExhausted { used });
            }
        }
        self.ended_at.get().is_none()
    }
}

impl fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { most, ended_at, .. } = self;
        f.debug_struct("Watch").field("most", most).field("ended_at", ended_at).finish_non_exhaustive()
    }
}

/// The process's memory that is not a file's, in bytes; `None` if the system does not report it.
fn in_use() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes =
        status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?.trim().strip_suffix(" kB")?;
    kibibytes.parse::<u64>().ok()?.checked_mul(1024)
}

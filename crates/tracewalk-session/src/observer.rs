//! Receivers of a session's notices, as they arise, later, or all at once; and of the progress of long work, which ends if memory
//! runs out.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tracewalk::span::CaptureOffset;
use tracewalk_analysis::Statistics;
use tracewalk_analysis::drive::{NoProgress, Progress};
use tracewalk_analysis::itm::ItmCounts;
use tracewalk_input::MemoryLimit;

use crate::model::{Itm, Source};
use crate::notice::{Notice, NoticeKind};
use crate::outcome::Followed;
use crate::session::Session;

/// Receives notices as they arise, and watches long work.
pub trait Observer {
    /// Receives a notice.
    fn notice(&self, notice: Notice);

    /// Work on a number of bytes of a capture begins. The returned value receives the progress, and may end the work.
    fn work(&self, _bytes: u64) -> Box<dyn Progress + '_> {
        Box::new(NoProgress)
    }

    /// A source was followed.
    fn followed(&self, _session: &Session, _source: &Source, _followed: &Followed<'_>) {}

    /// An ITM without instruction trace was read.
    fn heard(&self, _itm: &Itm, _counts: &ItmCounts, _statistics: &Statistics) {}

    /// Receives notices that arise when names are looked up in a program, perhaps after the session has ended.
    fn late(&self) -> Late {
        Late::default()
    }
}

/// Notices that arise when names are looked up in a program. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Late(Arc<Mutex<Vec<Notice>>>);

impl Late {
    pub(crate) fn add(&self, notice: Notice) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    /// Adds a missing source file; one notice lists all of them.
    pub(crate) fn add_missing_source(&self, file: &str) {
        let mut notices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = notices.iter_mut().find_map(|notice| match &mut notice.kind {
            NoticeKind::SourcesMissing { files } => Some(files),
            _ => None,
        });
        match known {
            Some(files) => _ = files.insert(file.to_owned()),
            None => notices.push(NoticeKind::SourcesMissing { files: [file.to_owned()].into() }.into()),
        }
    }

    /// Takes the notices since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Notice> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An observer that collects notices.
#[derive(Debug, Default)]
pub struct Notices(RefCell<Vec<Notice>>);

impl Notices {
    /// The notices, in the order in which they arose.
    #[must_use]
    pub fn into_vec(self) -> Vec<Notice> {
        self.0.into_inner()
    }

    /// Passes the notices on.
    pub(crate) fn pass_on(self, observer: &dyn Observer) {
        self.into_vec().into_iter().for_each(|notice| observer.notice(notice));
    }
}

impl Observer for Notices {
    fn notice(&self, notice: Notice) {
        self.0.borrow_mut().push(notice);
    }
}

/// Reports notices about a capture.
pub(crate) trait Say {
    /// Reports a notice without a place.
    fn say(&self, kind: NoticeKind);
    /// Reports a notice that first occurs at a place.
    fn say_at(&self, at: CaptureOffset, kind: NoticeKind);
}

impl Say for dyn Observer + '_ {
    fn say(&self, kind: NoticeKind) {
        self.notice(kind.into());
    }

    fn say_at(&self, at: CaptureOffset, kind: NoticeKind) {
        self.notice(kind.at(at));
    }
}

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

//! Receivers of a session's notices: as they arise, later, or all at once.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use tracewalk::span::CaptureOffset;
use tracewalk_analysis::drive::{NoProgress, Progress};

use crate::model::Source;
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

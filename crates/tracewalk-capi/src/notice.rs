//! The notices of a session, as data.

use std::cell::RefCell;
use std::ffi::{CString, c_char};

use tracewalk_session::{Notice, Observer, Severity};

use crate::boundary::{c_text, size_field};

/// How serious a notice is.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_severity {
    /// Worth knowing.
    Note = 0,
    /// Something may be wrong with an answer.
    Warning = 1,
    /// A part of the capture could not be read.
    Incomplete = 2,
}

/// A notice about the capture or an answer. The texts live as long as the session.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tracewalk_notice {
    /// The number of bytes of this structure that the library fills in.
    pub size: u32,
    /// How serious the notice is.
    pub severity: tracewalk_severity,
    /// 1 if `offset` is valid.
    pub has_offset: u32,
    /// 0.
    pub reserved: u32,
    /// The offset in the capture's file at which the notice first occurs.
    pub offset: u64,
    /// A short name of the notice's kind, which is the same in all versions.
    pub kind: *const c_char,
    /// The sentence, as the command prints it.
    pub sentence: *const c_char,
}

/// Collects notices.
#[derive(Debug, Default)]
pub(crate) struct Listener(RefCell<Vec<Said>>);

/// A notice with texts that C can read.
#[derive(Debug)]
pub(crate) struct Said {
    severity: tracewalk_severity,
    offset: Option<u64>,
    kind: CString,
    sentence: CString,
}

impl Listener {
    pub(crate) fn into_vec(self) -> Vec<Said> {
        self.0.into_inner()
    }
}

impl Observer for Listener {
    fn notice(&self, notice: Notice) {
        let severity = match notice.severity() {
            Severity::Note => tracewalk_severity::Note,
            Severity::Warning => tracewalk_severity::Warning,
            Severity::Incomplete => tracewalk_severity::Incomplete,
        };
        let (kind, sentence) = (c_text(notice.kind.name()), c_text(&tracewalk_sentences::sentence(&notice)));
        self.0.borrow_mut().push(Said { severity, offset: notice.at.map(|at| at.0), kind, sentence });
    }
}

impl Said {
    pub(crate) fn to_c(&self) -> tracewalk_notice {
        tracewalk_notice {
            size: size_field::<tracewalk_notice>(),
            severity: self.severity,
            has_offset: self.offset.is_some().into(),
            reserved: 0,
            offset: self.offset.unwrap_or(0),
            kind: self.kind.as_ptr(),
            sentence: self.sentence.as_ptr(),
        }
    }
}

//! A session's notices, as objects and as Python's warnings.

use std::ffi::CString;

use pyo3::prelude::*;
use tracewalk_session::{Notice, Severity};

use crate::problem::TracewalkWarning;

/// A notice about a capture or an answer.
#[pyclass(name = "Notice", module = "tracewalk", frozen, get_all, eq, hash)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Said {
    /// `note`, `warning`, or `incomplete`: a part of the capture could not be read.
    severity: &'static str,
    /// A short name of the kind, which is the same in all versions.
    kind: &'static str,
    /// The offset in the capture's file at which the notice first occurs, if it has one.
    offset: Option<u64>,
    /// The sentence.
    message: String,
}

#[pymethods]
impl Said {
    fn __repr__(&self) -> String {
        format!("<tracewalk.Notice {} {}: {:?}>", self.severity, self.kind, self.message)
    }

    fn __str__(&self) -> &str {
        &self.message
    }
}

impl Said {
    pub(crate) fn of(notice: &Notice) -> Self {
        let severity = match notice.severity() {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Incomplete => "incomplete",
        };
        let (kind, offset) = (notice.kind.name(), notice.at.map(|at| at.0));
        Self { severity, kind, offset, message: tracewalk_sentences::sentence(notice) }
    }

    /// Whether a part of the capture is missing or unreadable.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.severity == "incomplete"
    }
}

/// Warns of notices that are more serious than a note.
pub(crate) fn warn(py: Python<'_>, said: &[Said]) -> PyResult<()> {
    let category = py.get_type::<TracewalkWarning>();
    for said in said.iter().filter(|said| said.severity != "note") {
        // A sentence has no NUL.
        let message = CString::new(said.message.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &category, &message, 2)?;
    }
    Ok(())
}

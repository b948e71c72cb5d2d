//! The snapshot's file that is being read.

use std::path::{Path, PathBuf};

use super::error::{CaptureError, CaptureErrorKind as Kind};
use super::ini::{Entry, Section};
use crate::excerpt::excerpt;
use crate::number;
use crate::origin::Naming;
use crate::paths::Confinement;

/// The file that is being read, and the directory that its names are confined to.
pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    pub(super) confinement: &'a Confinement,
}

impl Place<'_> {
    pub(super) fn error(&self, line: Option<u32>, kind: Kind) -> CaptureError {
        CaptureError { file: self.path.to_owned(), line, kind }
    }

    /// The path of the file that an entry names.
    pub(super) fn file(&self, section: &Section, entry: &Entry) -> Result<PathBuf, CaptureError> {
        self.confinement.resolve(&entry.value).map_err(|problem| {
            let by = Some(Box::new(self.naming(section, entry)));
            self.error(Some(entry.line), Kind::Path { name: excerpt(&entry.value), problem, by })
        })
    }

    /// The place where a file is named.
    pub(super) fn naming(&self, section: &Section, entry: &Entry) -> Naming {
        let (key, section) = (excerpt(&entry.key), format!("[{}]", excerpt(&section.name)));
        Naming { key, section, file: self.path.to_owned(), line: entry.line }
    }

    /// The error of a file that an entry names. For an unreadable file, the error's place is the line that
    /// names it.
    pub(super) fn named(&self, section: &Section, entry: &Entry, error: CaptureError) -> CaptureError {
        match error {
            CaptureError { file, line: None, kind: Kind::File(problem) } => {
                let by = Box::new(self.naming(section, entry));
                self.error(Some(entry.line), Kind::NamedFile { file, problem, by })
            }
            error => error,
        }
    }

    /// A required entry of a section.
    pub(super) fn required<'s>(
        &self,
        section: &'s Section,
        key: &'static str,
    ) -> Result<&'s Entry, CaptureError> {
        let missing = || Kind::MissingKey { place: format!("[{}]", excerpt(&section.name)), key };
        section.entry(key).ok_or_else(|| self.error(Some(section.line), missing()))
    }
}

/// An entry's value as a number.
pub(super) fn entry_number(entry: &Entry, place: &Place<'_>) -> Result<u64, CaptureError> {
    number::parse(&entry.value).ok_or_else(|| {
        let found = format!("`{}`", excerpt(&entry.value));
        place.error(Some(entry.line), Kind::Type { key: excerpt(&entry.key), expected: "a number", found })
    })
}

//! Why a saved file cannot be read.

use std::{fmt, io};

use tracewalk::plain::plain;

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedError {
    /// What was to be read.
    pub saved: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub kind: SavedErrorKind,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SavedErrorKind {
    /// The file does not begin as it should.
    NotSaved,
    /// Something else is saved in it.
    Other {
        /// What.
        found: String,
    },
    /// It is of a version that is not known.
    Version {
        /// Which.
        found: String,
    },
    /// The file stops in this line or after it, without the line that ends it.
    CutOff,
    /// The line that ends the file counts others than those that stand before it.
    Lines {
        /// How many there are.
        found: u64,
        /// How many there were when it was written.
        expected: u64,
    },
    /// The file has ended before this line.
    BehindEnd,
    /// The line is no item, or none as it should be.
    Item {
        /// Where in the line, from 1.
        column: usize,
        /// What is wrong, in serde's words.
        problem: String,
    },
    /// The line begins with something else than the letters that exist.
    UnknownItem {
        /// What it begins with.
        found: String,
    },
    /// The line says something of an item that has to stand before it, and none does.
    Misplaced,
    /// A field is missing, or holds something that it may not.
    Field {
        /// The field.
        field: &'static str,
        /// What it holds.
        found: String,
    },
    /// The file cannot be read any further, in the operating system's words.
    Read(String),
}

impl SavedErrorKind {
    /// A field holds something that it may not.
    pub(crate) fn field(field: &'static str, found: impl fmt::Display) -> Self {
        Self::Field { field, found: found.to_string() }
    }

    /// A short name that stays.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotSaved => "not_saved",
            Self::Other { .. } => "other_saved",
            Self::Version { .. } => "saved_version",
            Self::CutOff => "saved_cut_off",
            Self::Lines { .. } => "saved_lines",
            Self::BehindEnd => "saved_behind_end",
            Self::Item { .. } | Self::UnknownItem { .. } => "saved_item",
            Self::Misplaced => "saved_misplaced",
            Self::Field { .. } => "saved_field",
            Self::Read(_) => "saved_read",
        }
    }
}

impl From<io::Error> for SavedErrorKind {
    fn from(error: io::Error) -> Self {
        Self::Read(error.to_string())
    }
}

impl From<serde_json::Error> for SavedErrorKind {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        // Which line it is of the file, serde does not know.
        let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem);
        Self::Item { column: error.column(), problem: plain(problem.into()).into_owned() }
    }
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let saved = self.saved;
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            SavedErrorKind::NotSaved => write!(f, "is not how saved {saved} begins"),
            SavedErrorKind::Other { found } => write!(f, "found saved {found:?}, expected saved {saved}"),
            SavedErrorKind::Version { found } => {
                write!(f, "found saved {saved} of version {found:?}, expected 1, 2 or 3")
            }
            SavedErrorKind::CutOff => f.write_str("the file is cut off here"),
            SavedErrorKind::Lines { found, expected } => {
                write!(f, "found {found} lines before the end, expected {expected}")
            }
            SavedErrorKind::BehindEnd => f.write_str("the file has ended before it"),
            SavedErrorKind::Item { column, problem } => write!(f, "column {column}: {problem}"),
            SavedErrorKind::UnknownItem { found } => {
                write!(f, "found an item {found:?}, which saved {saved} does not have")
            }
            SavedErrorKind::Misplaced => f.write_str("the line that it belongs to does not stand before it"),
            SavedErrorKind::Field { field, found } if found.is_empty() => write!(f, "found no {field}"),
            SavedErrorKind::Field { field, found } => {
                write!(f, "found {found:?} where the {field} should be")
            }
            SavedErrorKind::Read(problem) => write!(f, "cannot be read: {problem}"),
        }
    }
}

impl std::error::Error for SavedError {}

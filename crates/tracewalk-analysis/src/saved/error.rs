//! Why a saved file cannot be read.

use std::{fmt, io};

use tracewalk::plain::plain;

/// Why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedError {
    /// The kind of file that was expected.
    pub saved: &'static str,
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub kind: SavedErrorKind,
}

/// The problem with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SavedErrorKind {
    /// The file does not begin like a saved file.
    NotSaved,
    /// The file has another kind.
    Other {
        /// The kind found.
        found: String,
    },
    /// The file has an unknown version.
    Version {
        /// The version found.
        found: u32,
    },
    /// The file stops in this line or after it, without the line that ends it.
    CutOff,
    /// The last line states a number of lines that differs from the number before it.
    Lines {
        /// The number of lines found.
        found: u64,
        /// The number of lines stated.
        expected: u64,
    },
    /// The last line states a checksum that the lines before it do not have.
    Damaged {
        /// The checksum found.
        found: u32,
        /// The checksum stated.
        expected: u32,
    },
    /// The file has ended before this line.
    AfterEnd,
    /// The line is not a valid item.
    Item {
        /// The column, from 1.
        column: usize,
        /// The problem in serde's words.
        problem: String,
    },
    /// The line belongs to an item that has to come before it and is missing.
    Misplaced,
    /// A field is missing, or has an invalid value.
    Field {
        /// The field.
        field: &'static str,
        /// The field's content.
        found: String,
    },
    /// The file cannot be read any further, in the operating system's words.
    Read(String),
}

impl SavedErrorKind {
    /// A field has an invalid value.
    pub(crate) fn field(field: &'static str, found: impl fmt::Display) -> Self {
        Self::Field { field, found: found.to_string() }
    }

    /// A stable short name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotSaved => "not_saved",
            Self::Other { .. } => "other_saved",
            Self::Version { .. } => "saved_version",
            Self::CutOff => "saved_cut_off",
            Self::Lines { .. } => "saved_lines",
            Self::Damaged { .. } => "saved_damaged",
            Self::AfterEnd => "saved_behind_end",
            Self::Item { .. } => "saved_item",
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
        // serde counts lines within the item, not within the file.
        let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem);
        Self::Item { column: error.column(), problem: plain(problem.into()).into_owned() }
    }
}

impl fmt::Display for SavedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let saved = self.saved;
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            SavedErrorKind::NotSaved => write!(f, "is not the first line of saved {saved}"),
            SavedErrorKind::Other { found } => write!(f, "found saved {found:?}, expected saved {saved}"),
            SavedErrorKind::Version { found } => {
                write!(f, "found saved {saved} of version {found}, expected 1")
            }
            SavedErrorKind::CutOff => f.write_str("the file is cut off here"),
            SavedErrorKind::Lines { found, expected } => {
                write!(f, "found {found} lines before the end, expected {expected}")
            }
            SavedErrorKind::Damaged { found, expected } => {
                write!(f, "the lines before it are damaged: found checksum {found}, expected {expected}")
            }
            SavedErrorKind::AfterEnd => f.write_str("is after the end of the saved data"),
            SavedErrorKind::Item { column, problem } => write!(f, "column {column}: {problem}"),
            SavedErrorKind::Misplaced => f.write_str("the line that it belongs to is missing before it"),
            SavedErrorKind::Field { field, found } if found.is_empty() => write!(f, "found no {field}"),
            SavedErrorKind::Field { field, found } => {
                write!(f, "found {found:?}, expected the {field}")
            }
            SavedErrorKind::Read(problem) => write!(f, "cannot be read: {problem}"),
        }
    }
}

impl std::error::Error for SavedError {}

//! Why there is no report of coverage, and what is worth knowing of one.

use std::fmt;
use std::path::PathBuf;

use tracewalk_analysis::coverage::{RevisionError, Stale};
use tracewalk_analysis::programs::ProgramId;

use super::PathMap;
use crate::notice::Severity;
use crate::request::Pattern;

/// Why there is no report of coverage.
#[derive(Clone, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum CoverageError {
    /// A file is no base of a comparison.
    NotABase(PathBuf, String),
    /// A base was saved from another program.
    OtherProgram(PathBuf, ProgramId),
    /// The lines of the base cannot be found in its sources, or in the changes since.
    Revision { error: RevisionError, by_diff: bool },
    /// The patterns match nothing in the program.
    NothingSelected,
    /// Nothing was measured, so that a comparison would show no loss.
    NothingToCompare,
}

impl CoverageError {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Revision { error, .. } => error.kind.name(),
            _ => self.into(),
        }
    }
}

impl fmt::Display for CoverageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotABase(file, problem) => write!(f, "{}: {problem}", file.display()),
            Self::OtherProgram(file, id) => {
                write!(f, "{}: was saved from another program ({id})", file.display())
            }
            Self::Revision { error, .. } => error.fmt(f),
            Self::NothingSelected => f.write_str("the patterns to include match nothing in the program"),
            Self::NothingToCompare => {
                f.write_str("nothing was measured, so that a comparison with any base would show no loss")
            }
        }
    }
}

/// The use of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selects {
    /// Includes files.
    Files,
    /// Excludes files.
    NotFiles,
    /// Includes functions.
    Functions,
    /// Excludes functions.
    NotFunctions,
}

/// Something worth knowing about a report of coverage.
#[derive(Clone, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum CoverageNotice {
    /// Sources that are not, or may not be, those that were compiled: the first file, and the number of others.
    StaleSource { why: Stale, first: String, others: usize },
    /// Sources that were not found: the number, that of all files, and the first one.
    SourcesNotFound { missing: usize, files: usize, first: String },
    /// A pattern matches nothing in the program.
    UnusedPattern(Selects, Pattern),
    /// No source path begins as a map states.
    UnusedPathMap(PathMap),
    /// A diff changes no file of the program.
    DiffOfNothing(PathBuf),
}

impl CoverageNotice {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// How serious the notice is: libraries often have no sources, but a program has.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::SourcesNotFound { missing, files, .. } if *missing < *files => Severity::Note,
            _ => Severity::Warning,
        }
    }
}

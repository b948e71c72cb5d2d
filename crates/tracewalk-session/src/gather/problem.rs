//! Why places cannot be added up, and what is worth knowing of their sum.

use std::fmt;
use std::path::PathBuf;

use tracewalk_analysis::clock::Unit;
use tracewalk_analysis::programs::{MergeError, ProgramId};
use tracewalk_analysis::saved::SavedError;
use tracewalk_input::FileProblem;

use crate::notice::Severity;

/// Why places cannot be added up. The text states the problem; `tracewalk-sentences` adds what to try.
#[derive(Clone, Debug)]
pub struct PlacesError {
    /// The place; empty if it is all of them.
    pub file: PathBuf,
    /// The problem.
    pub kind: PlacesErrorKind,
}

/// The problem with a place.
#[derive(Clone, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum PlacesErrorKind {
    /// The place is given twice: it would count twice.
    NamedTwice,
    /// The file cannot be read.
    Unreadable(FileProblem),
    /// The file is not a saved answer of this kind.
    Saved(SavedError),
    /// The saved file contains no program: it would be no part of the sum.
    SavedNothing,
    /// The saved file is of another kind of answer.
    OtherKind { found: &'static str, expected: &'static str },
    /// The saved file is of another program, made of these images.
    OtherProgram { found: ProgramId, images: String, expected: Vec<ProgramId> },
    /// The answers of this place and those before do not add up.
    CannotAdd(MergeError),
    /// The saved answer is of a whole trace, and a part of it was asked for.
    WindowOfSaved,
    /// The saved answer is in another unit.
    OtherUnit { found: Unit, expected: Unit },
    /// The saved answer does not measure functions.
    NoFunctions,
    /// The capture arrives over time, and is among directories and lists.
    Arrives,
    /// The directory cannot be searched, in the system's words.
    Directory(String),
    /// The list of captures cannot be read, in the system's words.
    List(String),
    /// The places hold no capture.
    NoCaptures,
    /// The directory is one capture, whose name no pattern matches.
    IsCapture,
    /// The capture has changed since it was added up.
    CaptureChanged,
    /// The file of an earlier run cannot be continued from.
    Resume(String),
}

impl PlacesErrorKind {
    /// The error at a place.
    #[must_use]
    pub fn at(self, file: impl Into<PathBuf>) -> PlacesError {
        PlacesError { file: file.into(), kind: self }
    }

    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unreadable(problem) => problem.name(),
            Self::Saved(error) => error.kind.name(),
            Self::CannotAdd(error) => error.name(),
            Self::OtherUnit { .. } | Self::NoFunctions => "other_measure",
            Self::NoCaptures | Self::IsCapture => "no_captures",
            _ => self.into(),
        }
    }
}

impl fmt::Display for PlacesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.as_os_str().is_empty() {
            write!(f, "{}: ", self.file.display())?;
        }
        f.write_str(match &self.kind {
            PlacesErrorKind::Unreadable(problem) => return problem.fmt(f),
            PlacesErrorKind::Saved(error) => return error.fmt(f),
            PlacesErrorKind::CannotAdd(error) => return error.fmt(f),
            PlacesErrorKind::Resume(problem) => problem,
            PlacesErrorKind::Directory(error) => return write!(f, "cannot be searched: {error}"),
            PlacesErrorKind::List(error) => return write!(f, "cannot be read as a list of captures: {error}"),
            PlacesErrorKind::OtherKind { found, expected } => {
                return write!(f, "was saved by `tracewalk {found}`, not by `tracewalk {expected}`");
            }
            PlacesErrorKind::OtherProgram { found, expected, .. } => {
                let expected = expected.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
                return write!(f, "is of another program: found {found}, expected {expected}");
            }
            PlacesErrorKind::OtherUnit { found, expected } => {
                return write!(f, "was saved in {}, not in {}", found.name(), expected.name());
            }
            PlacesErrorKind::NamedTwice => "is given twice, and would count twice",
            PlacesErrorKind::SavedNothing => "contains no program: nothing was measured when it was saved",
            PlacesErrorKind::WindowOfSaved => "was saved as a whole, so a window cannot be cut out of it",
            PlacesErrorKind::NoFunctions => "was saved without functions",
            PlacesErrorKind::Arrives => "arrives over time, but directories and lists hold only complete captures",
            PlacesErrorKind::NoCaptures => {
                "found no capture; in directories, only snapshots, capture.toml, perf.data and recordings of logic analysers are recognised"
            }
            PlacesErrorKind::IsCapture => {
                "is one capture, because it has a description, and patterns match only its name, not its files"
            }
            PlacesErrorKind::CaptureChanged => "has changed since it was gathered; the earlier version counts",
        })
    }
}

impl std::error::Error for PlacesError {}

/// Something worth knowing about a sum.
#[derive(Clone, Debug, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum PlacesNotice {
    /// Captures with the trace of another one, and the first pair. Two runs may be equal, but a copy counts twice. `count` is
    /// unknown if captures are followed one by one.
    SameTrace { count: Option<u64>, file: PathBuf, other: PathBuf },
    /// A saved file has the contents of another one.
    SameContents { file: PathBuf, other: PathBuf },
    /// Runs of one name in two files count as one.
    SameRun { file: PathBuf, run: String, other: PathBuf },
    /// A saved program is identified by all of its memory: an image has no build ID.
    KnownByMemory { file: PathBuf, program: String },
    /// Captures that do not count: the number, and the first with its problem in words. `all` is unknown if captures are
    /// followed one by one.
    CapturesLeftOut { count: u64, all: Option<u64>, first: String, problem: String },
    /// Only a part of these captures counts.
    CapturesInPart { count: u64, all: Option<u64>, first: String, problem: String },
}

impl PlacesNotice {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::SameTrace { .. } | Self::SameContents { .. } => "equal_content",
            _ => self.into(),
        }
    }

    /// How serious the notice is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::KnownByMemory { .. } => Severity::Note,
            Self::CapturesLeftOut { .. } | Self::CapturesInPart { .. } => Severity::Incomplete,
            _ => Severity::Warning,
        }
    }
}

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
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum PlacesError {
    /// A capture or saved file is given twice: it would count twice.
    Twice(PathBuf),
    /// A file cannot be read.
    Unreadable(PathBuf, FileProblem),
    /// A file is not a saved answer of this kind.
    Saved(PathBuf, SavedError),
    /// A saved file contains no program: it would be no part of the sum.
    SavedNothing(PathBuf),
    /// A saved file is of another kind of answer.
    OtherKind { file: PathBuf, found: &'static str, expected: &'static str },
    /// A saved file is of another program.
    OtherProgram { file: PathBuf, found: ProgramId, images: String, expected: Vec<ProgramId> },
    /// The answers of this place and those before do not add up.
    CannotAdd(PathBuf, MergeError),
    /// A saved answer is of a whole trace, and a part of it was asked for.
    SavedWhole(PathBuf),
    /// A saved answer is in another unit.
    OtherUnit { file: PathBuf, found: Unit, expected: Unit },
    /// A saved answer does not measure functions.
    NoFunctions(PathBuf),
    /// A capture arrives over time, and is among directories and lists.
    Arrives(PathBuf),
    /// A directory cannot be searched, in the system's words.
    Directory(PathBuf, String),
    /// A list of captures cannot be read, in the system's words.
    List(String, String),
    /// The places hold no capture.
    NoCaptures,
    /// A directory is one capture, whose name does not match.
    IsCapture(PathBuf),
    /// A capture has changed since it was added up.
    Changed(PathBuf),
    /// A file of an earlier run cannot be continued from.
    Resume(PathBuf, String),
}

impl PlacesError {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Twice(_) => "named_twice",
            Self::Unreadable(_, problem) => problem.name(),
            Self::Saved(_, error) => error.kind.name(),
            Self::SavedNothing(_) => "saved_nothing",
            Self::OtherKind { .. } => "other_kind",
            Self::OtherProgram { .. } => "other_program",
            Self::CannotAdd(_, error) => error.name(),
            Self::SavedWhole(_) => "window_of_saved",
            Self::OtherUnit { .. } | Self::NoFunctions(_) => "other_measure",
            Self::Arrives(_) => "arrives",
            Self::Directory(..) => "directory",
            Self::List(..) => "list",
            Self::NoCaptures | Self::IsCapture(_) => "no_captures",
            Self::Changed(_) => "capture_changed",
            Self::Resume(..) => "resume",
        }
    }
}

impl fmt::Display for PlacesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = match self {
            Self::List(list, error) => {
                return write!(f, "{list}: cannot be read as a list of captures: {error}");
            }
            Self::NoCaptures => {
                return f.write_str(
                    "found no capture; in directories, only snapshots, capture.toml, perf.data and recordings of logic analysers are recognised",
                );
            }
            Self::Resume(file, _)
            | Self::Twice(file)
            | Self::Unreadable(file, _)
            | Self::Saved(file, _)
            | Self::SavedNothing(file)
            | Self::OtherKind { file, .. }
            | Self::OtherProgram { file, .. }
            | Self::CannotAdd(file, _)
            | Self::SavedWhole(file)
            | Self::OtherUnit { file, .. }
            | Self::NoFunctions(file)
            | Self::Arrives(file)
            | Self::Directory(file, _)
            | Self::IsCapture(file)
            | Self::Changed(file) => file,
        };
        write!(f, "{}: ", file.display())?;
        match self {
            Self::List(..) | Self::NoCaptures => Ok(()),
            Self::Twice(_) => f.write_str("is given twice, and would count twice"),
            Self::Unreadable(_, problem) => problem.fmt(f),
            Self::Saved(_, error) => error.fmt(f),
            Self::SavedNothing(_) => f.write_str("contains no program: nothing was measured when it was saved"),
            Self::OtherKind { found, expected, .. } => {
                write!(f, "was saved by `tracewalk {found}`, not by `tracewalk {expected}`")
            }
            Self::OtherProgram { found, expected, .. } => {
                let expected = expected.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
                write!(f, "is of another program: found {found}, expected {expected}")
            }
            Self::CannotAdd(_, error) => error.fmt(f),
            Self::SavedWhole(_) => f.write_str("was saved as a whole, so a window cannot be cut out of it"),
            Self::OtherUnit { found, expected, .. } => {
                write!(f, "was saved in {}, not in {}", found.name(), expected.name())
            }
            Self::NoFunctions(_) => f.write_str("was saved without functions"),
            Self::Arrives(_) => {
                f.write_str("arrives over time, but directories and lists hold only complete captures")
            }
            Self::Directory(_, error) => write!(f, "cannot be searched: {error}"),
            Self::IsCapture(_) => f.write_str(
                "is one capture, because it has a description, and --match matches only its name, not its files",
            ),
            Self::Changed(_) => f.write_str("has changed since it was gathered; the earlier version counts"),
            Self::Resume(_, problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for PlacesError {}

/// Something worth knowing about a sum.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum PlacesNotice {
    /// A capture has the trace of another one. Two runs may be equal, but a copy counts twice.
    SameTrace { file: PathBuf, other: PathBuf },
    /// A saved file has the contents of another one.
    SameContents { file: PathBuf, other: PathBuf },
    /// The number of captures with the trace of another one, and the first pair.
    Copies { count: u64, first: PathBuf, other: PathBuf },
    /// Runs of one name in two files count as one.
    SameRun { file: PathBuf, run: String, other: PathBuf },
    /// A saved program is identified by all of its memory: an image has no build ID.
    KnownByMemory { file: PathBuf, program: String },
    /// Captures that do not count: the number, and the first with its problem in words. `all` is unknown if captures are
    /// followed one by one.
    LeftOut { count: u64, all: Option<u64>, first: String, problem: String },
    /// Captures of which only a part counts.
    Partial { count: u64, all: Option<u64>, first: String, problem: String },
}

impl PlacesNotice {
    /// A stable short name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SameTrace { .. } | Self::SameContents { .. } | Self::Copies { .. } => "equal_content",
            Self::SameRun { .. } => "same_run",
            Self::KnownByMemory { .. } => "known_by_memory",
            Self::LeftOut { .. } => "captures_left_out",
            Self::Partial { .. } => "captures_in_part",
        }
    }

    /// How serious the notice is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::KnownByMemory { .. } => Severity::Note,
            Self::LeftOut { .. } | Self::Partial { .. } => Severity::Incomplete,
            _ => Severity::Warning,
        }
    }
}

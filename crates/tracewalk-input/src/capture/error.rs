//! What can be wrong with a capture's description.

use std::fmt;
use std::path::{Path, PathBuf};

use tracewalk::plain::Plain;

use super::dump::DumpProblem;
use super::perf::PerfProblem;
use super::stream::StreamProblem;
use super::wire::RecordingProblem;
use crate::file::FileProblem;
use crate::origin::Naming;
use crate::paths::PathProblem;

/// The place of a key outside all tables of a capture.toml.
pub const OUTSIDE_TABLES: &str = "the file";

/// Why a capture cannot be opened: the file, the line, and the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureError {
    /// The file, or the option, that holds the mistake.
    pub file: PathBuf,
    /// The line, from 1, if there is one.
    pub line: Option<u32>,
    /// What is wrong.
    pub kind: CaptureErrorKind,
}

impl CaptureError {
    /// A file that cannot be read.
    /// A file that cannot be read.
    #[must_use]
    pub fn of_file(path: &Path, problem: FileProblem) -> Self {
        Self { file: path.to_owned(), line: None, kind: CaptureErrorKind::File(problem) }
    }
}

/// What is wrong with a capture's description.
#[derive(Clone, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", prefix = "description_")]
#[non_exhaustive]
pub enum CaptureErrorKind {
    /// The file cannot be read.
    File(FileProblem),
    /// A description names a file that it may not name.
    Path {
        /// The name.
        name: String,
        /// What is wrong with the name.
        problem: PathProblem,
        /// The entry that names the file; `None` for the description itself.
        by: Option<Box<Naming>>,
    },
    /// A file that the description names cannot be read.
    NamedFile {
        /// The file.
        file: PathBuf,
        /// Why the file cannot be read.
        problem: FileProblem,
        /// The entry that names the file.
        by: Box<Naming>,
    },
    /// A perf recording cannot be read.
    Perf(PerfProblem),
    /// The directory holds neither `snapshot.ini` nor `capture.toml`.
    NoDescription {
        /// The first of its files, by name.
        files: Vec<String>,
    },
    /// The directory holds several descriptions.
    SeveralDescriptions {
        /// Their names.
        files: Vec<String>,
    },
    /// A directory that descriptions may use does not exist.
    NotADirectory,
    /// The text is not TOML, in the parser's words.
    Toml(String),
    /// The text is not YAML, or more of YAML than is read, in the parser's words.
    Yaml(String),
    /// A line is neither `[section]`, `key=value` nor a comment.
    Line {
        /// The line.
        found: String,
    },
    /// A `key=value` line comes before the first `[section]`.
    BeforeSection {
        /// The key.
        key: String,
    },
    /// The key is unknown.
    UnknownKey {
        /// The table, section or option with the key.
        place: String,
        /// The key.
        key: String,
        /// The known key that was probably meant.
        nearest: &'static str,
    },
    /// The key is known, but its value is not.
    UnknownValue {
        /// The key.
        key: String,
        /// The word.
        found: String,
        /// The known word that was probably meant; empty if none was.
        nearest: &'static str,
    },
    /// A required key is missing.
    MissingKey {
        /// The table or section that should have the key.
        place: String,
        /// The key.
        key: &'static str,
    },
    /// A key is given twice.
    Repeated {
        /// The key, or the name of something else that is repeated.
        key: String,
    },
    /// The value is of another type.
    Type {
        /// The key.
        key: String,
        /// The type that the key takes.
        expected: &'static str,
        /// What was found.
        found: String,
    },
    /// The number is greater than the key allows.
    TooLarge {
        /// The key.
        key: String,
        /// The number.
        found: u64,
        /// The greatest number that the key allows.
        limit: u64,
    },
    /// The number is not a valid trace ID.
    TraceId {
        /// The number.
        found: u64,
    },
    /// The snapshot is of an unknown version.
    Version {
        /// The version.
        found: String,
    },
    /// A name is used that nothing in the snapshot has.
    Undefined {
        /// The kind of thing that the name should refer to: a device, a buffer.
        what: &'static str,
        /// The name.
        name: String,
        /// The name that was probably meant, if any.
        nearest: Option<String>,
    },
    /// A memory dump cannot be used.
    Dump(DumpProblem),
    /// The snapshot describes no trace buffer.
    NoBuffer,
    /// A debugger's log has no registers of an MTB.
    NoMtbRegisters,
    /// The snapshot has more parts than any system.
    TooMany {
        /// The kind of part.
        what: &'static str,
        /// The number of parts.
        found: usize,
        /// The greatest number.
        limit: usize,
    },
    /// A live capture cannot be opened.
    Stream(StreamProblem),
    /// A logic analyser's recording cannot be read.
    Recording(RecordingProblem),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", Plain(self.file.display()), Plain(&self.kind)),
            None => write!(f, "{}: {}", Plain(self.file.display()), Plain(&self.kind)),
        }
    }
}

impl std::error::Error for CaptureError {}

impl CaptureErrorKind {
    /// A stable short name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::File(problem) | Self::NamedFile { problem, .. } => problem.name(),
            Self::Path { problem, .. } => problem.name(),
            Self::NotADirectory { .. } => "file_no_directory",
            Self::NoDescription { .. } => "description_missing",
            Self::Dump(problem) => problem.name(),
            Self::NoMtbRegisters => "no_mtb_registers",
            Self::Stream(problem) => problem.name(),
            Self::Perf(_) => "perf",
            Self::Recording(problem) => problem.name(),
            _ => self.into(),
        }
    }
}

impl fmt::Display for CaptureErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(problem) => problem.fmt(f),
            Self::Path { name, problem, .. } => write!(f, "the file name `{name}` {problem}"),
            Self::NamedFile { file, problem, .. } => {
                write!(f, "the file {}: {problem}", Plain(file.display()))
            }
            Self::Perf(problem) => problem.fmt(f),
            Self::NoDescription { files } => {
                f.write_str("holds neither snapshot.ini nor capture.toml")?;
                if files.is_empty() { Ok(()) } else { write!(f, ", but {}", files.join(", ")) }
            }
            Self::NotADirectory => f.write_str("no such directory"),
            Self::SeveralDescriptions { files } => {
                write!(f, "has several descriptions: {}", files.join(", "))
            }
            Self::Toml(message) | Self::Yaml(message) => f.write_str(message),
            Self::Line { found } => {
                write!(f, "expected `[section]`, `key=value` or a comment, found `{found}`")
            }
            Self::BeforeSection { key } => write!(f, "`{key}` comes before the first `[section]`"),
            Self::UnknownKey { place, key, nearest: "" } => write!(f, "unknown key `{key}` in {place}"),
            Self::UnknownKey { place, key, nearest } => {
                write!(f, "unknown key `{key}` in {place}, the nearest known one is `{nearest}`")
            }
            Self::UnknownValue { key, found, nearest: "" } => write!(f, "unknown {key} `{found}`"),
            Self::UnknownValue { key, found, nearest } => {
                write!(f, "unknown {key} `{found}`, the nearest known one is `{nearest}`")
            }
            Self::MissingKey { place, key } => write!(f, "{place} has no `{key}`"),
            Self::Repeated { key } => write!(f, "`{key}` is given twice"),
            Self::Type { key, expected, found } => {
                write!(f, "expected {expected} for `{key}`, found {found}")
            }
            Self::TooLarge { key, found, limit } => {
                write!(f, "expected at most 0x{limit:x} for `{key}`, found 0x{found:x}")
            }
            Self::TraceId { found } => {
                write!(f, "expected a trace ID from 0x01 to 0x6f, found 0x{found:02x}")
            }
            Self::Version { found } => write!(f, "expected snapshot version 1.0, found `{found}`"),
            Self::Undefined { what, name, nearest: Some(nearest) } => {
                write!(f, "there is no {what} `{name}`, the nearest name is `{nearest}`")
            }
            Self::Undefined { what, name, nearest: None } => write!(f, "there is no {what} `{name}`"),
            Self::TooMany { what, found, limit } => {
                write!(f, "expected at most {limit} {what}, found {found}")
            }
            Self::Dump(problem) => problem.fmt(f),
            Self::Recording(problem) => problem.fmt(f),
            Self::Stream(problem) => problem.fmt(f),
            Self::NoBuffer => f.write_str("describes no trace buffer"),
            Self::NoMtbRegisters => f.write_str("has no registers of an MTB"),
        }
    }
}

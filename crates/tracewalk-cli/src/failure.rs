//! Why a command fails.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use tracewalk_input::image::ImageError;
use tracewalk_session::{OpenError, PlacesError, RunError};

use tracewalk_sentences::of_run;

/// A failure: one sentence, ending in a remedy.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of the output has closed it.
    ClosedPipe,
    /// The output cannot be written.
    Output(io::Error),
    /// The capture cannot be opened, or work on it ended.
    Run(RunError),
    /// A file cannot be written.
    Write { file: PathBuf, error: io::Error },
    /// The compared captures differ.
    Different,
    /// `crash` found no fault.
    NoFault,
    /// A check failed.
    Unmet(String),
    /// The input is invalid.
    Input { kind: &'static str, problem: String, hint: String },
}

impl Failure {
    pub(crate) fn input(kind: &'static str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Input { kind, problem: problem.into(), hint: hint.into() }
    }

    /// A short name of the failure, which is stable across versions (docs/formats.md).
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::ClosedPipe => "closed_pipe",
            Self::Output(_) | Self::Write { .. } => "output",
            Self::Run(error) => error.name(),
            Self::Different => "different",
            Self::NoFault => "no_fault",
            Self::Unmet(_) => "unmet",
            Self::Input { kind, .. } => kind,
        }
    }

    /// Whether it concerns one capture, so that others can still be answered.
    pub(crate) const fn is_of_capture(&self) -> bool {
        matches!(self, Self::Run(error) if !matches!(error, RunError::Places(_) | RunError::Coverage(_)))
    }

    /// A named pipe may have lost its reader.
    pub(crate) fn write(file: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Write { file: file.to_owned(), error },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClosedPipe => f.write_str("the reader of the output closed the pipe"),
            Self::Output(error) => write!(f, "cannot write the output: {error}"),
            Self::Run(error) => f.write_str(&of_run(error)),
            Self::Write { file, error } => write!(f, "{}: cannot be written: {error}", file.display()),
            Self::Different => f.write_str("the captures differ"),
            Self::NoFault => f.write_str("no fault ended the program"),
            Self::Unmet(what) => f.write_str(what),
            Self::Input { problem, hint, .. } => write!(f, "{problem}; {hint}"),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Sink(error) => error.into(),
            other => Self::Run(other),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::ClosedPipe,
            _ => Self::Output(error),
        }
    }
}

/// Errors that end work on a capture.
macro_rules! ends_work {
    ($($error:ty)+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Run(error.into())
            }
        })+
    };
}

ends_work! { OpenError PlacesError ImageError }

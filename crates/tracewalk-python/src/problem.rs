//! The reason why work ended without an answer, as an exception.

use std::io;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyUserWarning};
use pyo3::prelude::*;
use tracewalk_input::image::ImageError;
use tracewalk_session::{OpenError, RunError};

create_exception!(
    tracewalk,
    TracewalkError,
    PyException,
    "A capture cannot be opened, or work on it ended without an answer.\n\n`kind` is a short name of the reason, which does not change between versions."
);
create_exception!(
    tracewalk,
    TracewalkWarning,
    PyUserWarning,
    "Something may be wrong with an answer, or a part of the capture could not be read."
);

/// The reason why there is no answer, in a form that can be sent between threads.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    kind: String,
    message: String,
}

impl Problem {
    pub(crate) fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into() }
    }

    /// A defect of this program.
    pub(crate) fn defect(what: &str) -> Self {
        Self::new("internal", format!("tracewalk has a defect: {what}; please report it with the capture"))
    }

    /// An invalid argument.
    pub(crate) fn argument(name: &str, problem: impl std::fmt::Display) -> Self {
        Self::new("arguments", format!("{name}: {problem}"))
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Problem> for PyErr {
    fn from(problem: Problem) -> Self {
        Python::attach(|py| {
            let error = TracewalkError::new_err(problem.message);
            match error.value(py).setattr("kind", problem.kind) {
                Ok(()) => error,
                Err(error) => error,
            }
        })
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        Self::new(error.name(), tracewalk_sentences::of_open(&error))
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        Self::new(error.name(), tracewalk_sentences::of_run(&error))
    }
}

impl From<ImageError> for Problem {
    fn from(error: ImageError) -> Self {
        OpenError::from(error).into()
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        RunError::Sink(error).into()
    }
}

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TracewalkError", py.get_type::<TracewalkError>())?;
    module.add("TracewalkWarning", py.get_type::<TracewalkWarning>())
}

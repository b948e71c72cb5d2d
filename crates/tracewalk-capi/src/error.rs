//! The reasons why a function failed.

use std::ffi::{CString, c_char};

use tracewalk_input::image::ImageError;
use tracewalk_session::{OpenError, RunError};

use crate::boundary::{c_text, release};
use crate::status::{Problem, tracewalk_status};

/// The reason why a function failed. The program owns the error, and frees it.
#[derive(Debug)]
pub struct tracewalk_error {
    status: tracewalk_status,
    kind: CString,
    message: CString,
}

impl From<Problem> for tracewalk_error {
    fn from(problem: Problem) -> Self {
        let Problem { status, kind, message } = problem;
        Self { status, kind: c_text(kind), message: c_text(&message) }
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        let message = tracewalk_sentences::of_open(&error);
        Self { status: tracewalk_status::Open, kind: error.name(), message }
    }
}

impl From<ImageError> for Problem {
    fn from(error: ImageError) -> Self {
        OpenError::from(error).into()
    }
}

impl From<RunError> for Problem {
    fn from(error: RunError) -> Self {
        let message = tracewalk_sentences::of_run(&error);
        Self { status: tracewalk_status::Run, kind: error.name(), message }
    }
}

/// The status that came with the error; `TRACEWALK_STATUS_OK` for a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_error_status(error: Option<&tracewalk_error>) -> tracewalk_status {
    error.map_or(tracewalk_status::Ok, |error| error.status)
}

/// A short name of the reason, which is the same in all versions. The text lives as long as the error; null for a null
/// pointer.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_error_kind(error: Option<&tracewalk_error>) -> *const c_char {
    error.map_or(std::ptr::null(), |error| error.kind.as_ptr())
}

/// A sentence for people. The text lives as long as the error; null for a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_error_message(error: Option<&tracewalk_error>) -> *const c_char {
    error.map_or(std::ptr::null(), |error| error.message.as_ptr())
}

/// Frees an error; a null pointer is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_error_free(error: Option<Box<tracewalk_error>>) {
    release(error);
}

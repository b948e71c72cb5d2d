//! Why a function has no answer.

use std::ffi::{CString, c_char};

use tracewalk_input::image::ImageError;
use tracewalk_session::{OpenError, RunError};

use crate::boundary::{c_text, release};

/// What a function answers. Below 0 it failed, and the error says why.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_status {
    /// It is done.
    Ok = 0,
    /// There is nothing more.
    End = 1,
    /// There is nothing more until more bytes are pushed.
    NeedInput = 2,
    /// A callback ended the work.
    Stopped = 3,
    /// An argument is not what it should be.
    Argument = -1,
    /// The capture or an image cannot be opened.
    Open = -2,
    /// Work on a source failed.
    Run = -3,
    /// The handle is not in a state for this.
    State = -4,
    /// A defect of the library: please report it.
    Defect = -5,
}

/// Why a function failed. It belongs to the program, which frees it.
#[derive(Debug)]
pub struct tracewalk_error {
    status: tracewalk_status,
    kind: CString,
    message: CString,
}

/// The same, on this side.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: tracewalk_status,
    kind: &'static str,
    message: String,
}

impl Problem {
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self { status: tracewalk_status::Argument, kind: "arguments", message: message.into() }
    }

    pub(crate) fn state(message: impl Into<String>) -> Self {
        Self { status: tracewalk_status::State, kind: "state", message: message.into() }
    }

    pub(crate) fn defect() -> Self {
        let message =
            "tracewalk has a defect: it gave up where it should not; please report it with the capture";
        Self { status: tracewalk_status::Defect, kind: "internal", message: message.to_owned() }
    }
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

/// A short name of why it failed, which stays what it is. It lives as long as the error; null for a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_error_kind(error: Option<&tracewalk_error>) -> *const c_char {
    error.map_or(std::ptr::null(), |error| error.kind.as_ptr())
}

/// A sentence for people. It lives as long as the error; null for a null pointer.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_error_message(error: Option<&tracewalk_error>) -> *const c_char {
    error.map_or(std::ptr::null(), |error| error.message.as_ptr())
}

/// Frees an error; a null pointer is none.
#[unsafe(no_mangle)]
pub extern "C" fn tracewalk_error_free(error: Option<Box<tracewalk_error>>) {
    release(error);
}

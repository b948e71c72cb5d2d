//! The results of calls, and the reasons why calls fail.

/// The result of a function. Below 0 the function failed, and the error states the reason.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tracewalk_status {
    /// Done.
    Ok = 0,
    /// There is nothing more.
    End = 1,
    /// There is nothing more until more bytes are pushed.
    NeedInput = 2,
    /// A callback ended the work.
    Stopped = 3,
    /// An argument is invalid.
    Argument = -1,
    /// The capture or an image cannot be opened.
    Open = -2,
    /// Work on a source failed.
    Run = -3,
    /// The handle's state does not allow the call.
    State = -4,
    /// A defect of the library: please report it.
    Defect = -5,
}

/// The reason why a call failed, in Rust's form.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: tracewalk_status,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self { status: tracewalk_status::Argument, kind: "arguments", message: message.into() }
    }

    pub(crate) fn state(message: impl Into<String>) -> Self {
        Self { status: tracewalk_status::State, kind: "state", message: message.into() }
    }

    pub(crate) fn defect() -> Self {
        let message = "tracewalk has a defect and gave up on this call; please report it with the capture";
        Self { status: tracewalk_status::Defect, kind: "internal", message: message.to_owned() }
    }
}

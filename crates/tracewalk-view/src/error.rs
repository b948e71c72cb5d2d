//! Errors before the page can be shown.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use tracewalk_session::{OpenError, RunError};

/// Why a recording cannot be shown.
#[derive(Debug)]
#[non_exhaustive]
pub enum ViewError {
    /// Nothing executes in the capture.
    Nothing,
    /// The server cannot listen at this address.
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's message.
        error: io::Error,
    },
    /// The system has no random numbers for the token.
    NoToken,
    /// The server could not be started, or the page could not be written.
    Io(io::Error),
    /// The server ended, though nothing had asked it to.
    Ended,
    /// The rest of the capture cannot be opened.
    Open(OpenError),
    /// A source cannot be followed.
    Run(RunError),
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("the capture contains no execution"),
            Self::Listen { address, error } => write!(f, "cannot listen on {address}: {error}"),
            Self::NoToken => f.write_str("the system has no random numbers for the page's token"),
            Self::Io(error) => write!(f, "cannot serve the page: {error}"),
            Self::Ended => f.write_str("the page's server ended"),
            Self::Open(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ViewError {}

impl From<OpenError> for ViewError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<RunError> for ViewError {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

impl From<io::Error> for ViewError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

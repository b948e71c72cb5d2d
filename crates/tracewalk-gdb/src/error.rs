//! Why a recording cannot be walked through.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use tracewalk_input::image::ImageError;
use tracewalk_session::{OpenError, RunError};

/// Why a recording cannot be walked through.
#[derive(Debug)]
#[non_exhaustive]
pub enum GdbError {
    /// A saved snapshot cannot be read.
    Open(OpenError),
    /// An image cannot be used.
    Image(ImageError),
    /// A source cannot be followed.
    Run(RunError),
    /// No source has program flow that can be followed.
    Nothing,
    /// Two passes over a source differ: a defect of tracewalk, or the source's file changed meanwhile.
    Differs {
        /// The steps of the first pass.
        followed: u64,
        /// The steps of the second pass.
        indexed: u64,
    },
    /// Memory ran out, or an observer ended the work.
    Ended {
        /// The byte of the capture after which the work ended.
        byte: u64,
    },
    /// There is no such step.
    NoStep {
        /// The step.
        step: u64,
        /// The number of steps.
        steps: u64,
    },
    /// The server cannot listen at the address.
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        error: io::Error,
    },
    /// Standard input or output failed.
    Streams(io::Error),
}

impl fmt::Display for GdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Image(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Nothing => f.write_str("no execution could be followed in the trace"),
            Self::Differs { followed, indexed } => {
                write!(
                    f,
                    "found {indexed} steps in the second pass over the trace, expected {followed} as in the first"
                )
            }
            Self::Ended { byte } => {
                write!(
                    f,
                    "the recording cannot be stepped through: decoding ended after byte {byte} of the capture"
                )
            }
            Self::NoStep { step, steps } => write!(f, "found {steps} steps, expected step {step} among them"),
            Self::Listen { address, error } => write!(f, "cannot listen on {address}: {error}"),
            Self::Streams(error) => write!(f, "standard input or output failed: {error}"),
        }
    }
}

impl std::error::Error for GdbError {}

impl From<OpenError> for GdbError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<ImageError> for GdbError {
    fn from(error: ImageError) -> Self {
        Self::Image(error)
    }
}

impl From<RunError> for GdbError {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}

//! What an encoder makes of a path.

use crate::path::Path;

/// One source's trace, and the truth about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The bytes that the trace unit would have sent.
    pub bytes: Vec<u8>,
    /// What they say: the path without what this trace unit does not tell, and without the end of the path where a
    /// target was never reached.
    pub told: Path,
    /// The cycles that the told instructions took, by the encoder's model of time.
    pub cycles: u64,
}

/// Why a path cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// The program has no code at an address that was executed.
    NoCode {
        /// Where.
        at: tracewalk::ids::Address,
    },
    /// The exception has no code in this protocol.
    NoExceptionCode {
        /// Which one.
        exception: tracewalk::ids::Exception,
    },
    /// The packet encoder refused a packet: the configuration does not fit the path.
    Packet {
        /// What it says.
        message: String,
    },
}

impl std::fmt::Display for EncodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoCode { at } => write!(f, "the path executes {at}, where the program has no code"),
            Self::NoExceptionCode { exception } => write!(f, "this protocol has no code for {exception}"),
            Self::Packet { message } => f.write_str(message),
        }
    }
}

impl std::error::Error for EncodeError {}

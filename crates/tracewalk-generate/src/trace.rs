//! What an encoder makes of a path.

use crate::path::{Path, Step};

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
    /// For each step of the path, how many cycles had passed behind it, by the same model.
    pub times: Vec<u64>,
}

impl Trace {
    /// A line for each step of the path that it was made from: what it was, and how many cycles had passed behind it.
    ///
    /// `I ADDRESS CYCLES` for an instruction, `X NUMBER RETURN CYCLES` for an exception, `T CYCLES` for a return.
    #[must_use]
    pub fn times_text(&self, path: &Path) -> String {
        let lines = path.steps.iter().zip(&self.times).filter_map(|(step, cycles)| match step {
            Step::Instruction(executed) => Some(format!("I {:x} {cycles}\n", executed.address)),
            Step::Exception(taken) => {
                let number = taken.exception.number();
                let returns_to =
                    taken.preferred_return.map_or_else(|| "-".to_owned(), |address| format!("{address:x}"));
                Some(format!("X {number} {returns_to} {cycles}\n"))
            }
            Step::ExceptionReturn => Some(format!("T {cycles}\n")),
            Step::Access(_) | Step::ContextId(_) => None,
        });
        lines.collect()
    }
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

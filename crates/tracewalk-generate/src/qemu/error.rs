//! Why a log of QEMU cannot be read.

use std::fmt::{self, Display, Formatter};

use tracewalk::ids::Address;

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub kind: LogErrorKind,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogErrorKind {
    /// The line is not as QEMU 7.2 writes it.
    Unreadable,
    /// An instruction's registers are not in the log: QEMU ran without `-d cpu`.
    NoRegisters,
    /// The log contains no instruction: QEMU ran without `-d exec`.
    NoInstructions,
    /// An instruction ran where the program has no code.
    NoCode {
        /// The instruction's address.
        at: Address,
    },
    /// QEMU took an exception that this reader does not know.
    UnknownException {
        /// QEMU's number for the exception.
        number: u32,
    },
    /// The handler's link register does not name the instruction that was logged.
    WrongLink {
        /// The instruction that the link register should name.
        expected: Address,
        /// The instruction that it names.
        found: Address,
    },
}

impl Display for LogError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.kind {
            LogErrorKind::Unreadable => write!(f, "not a line in the format of QEMU 7.2"),
            LogErrorKind::NoRegisters => {
                write!(
                    f,
                    "the log has no registers for the previous instruction; run QEMU with -d exec,nochain,int,cpu"
                )
            }
            LogErrorKind::NoInstructions => {
                write!(f, "the log ends without any instruction; run QEMU with -d exec,nochain,int,cpu")
            }
            LogErrorKind::NoCode { at } => write!(f, "{at} was executed, at which the program has no code"),
            LogErrorKind::UnknownException { number } => {
                write!(f, "QEMU's exception {number} is unknown")
            }
            LogErrorKind::WrongLink { expected, found } => {
                write!(f, "the exception came from {expected}, but its link register says {found}")
            }
        }
    }
}

impl std::error::Error for LogError {}

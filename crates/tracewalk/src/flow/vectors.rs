//! Answers from the vector table if the trace does not state what happened.

use crate::ids::{Exception, Location};
use crate::program::{Program, Vectors};

/// The cause of execution at a place that no instruction led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// An exception; `None` if the table does not identify it.
    Exception(Option<Exception>),
    /// No handler starts there: a debugger wrote the program counter.
    ByDebugger,
}

/// The cause of execution at `place`.
pub(super) fn entered(program: &Program, place: Location) -> Entered {
    match program.vectors_to(place.address) {
        Vectors::One(exception) => Entered::Exception(Some(exception)),
        Vectors::Several | Vectors::Unknown => Entered::Exception(None),
        Vectors::None => Entered::ByDebugger,
    }
}

/// Whether an apparent return from an exception to `place` is the start of another exception, and which exception.
pub(super) fn tail_chained(program: &Program, place: Location) -> Option<Option<Exception>> {
    /// A reset is never chained. A return to its handler resumes code that was interrupted before its first
    /// instruction.
    const RESET: Exception = Exception::M(1);
    match program.vectors_to(place.address) {
        Vectors::One(RESET) | Vectors::None | Vectors::Unknown => None,
        Vectors::One(exception) => Some(Some(exception)),
        Vectors::Several => Some(None),
    }
}

//! What the table of vectors says where the trace does not say what happened.

use crate::ids::{Exception, Location};
use crate::program::{Program, Vectors};

/// What brought execution to a place that no instruction led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// An exception; `None` where the table does not say which.
    Exception(Option<Exception>),
    /// No handler starts there: a debugger wrote the program counter.
    ByDebugger,
}

/// What brought execution to `place`.
pub(super) fn entered(program: &Program, place: Location) -> Entered {
    match program.vectors_to(place.address) {
        Vectors::One(exception) => Entered::Exception(Some(exception)),
        Vectors::Several | Vectors::Unknown => Entered::Exception(None),
        Vectors::None => Entered::ByDebugger,
    }
}

/// Whether a return from an exception that leads to `place` was none, but another exception's beginning, and which.
pub(super) fn tail_chained(program: &Program, place: Location) -> Option<Option<Exception>> {
    /// Nothing is chained to a reset; code that was interrupted before its first instruction is.
    const RESET: Exception = Exception::M(1);
    match program.vectors_to(place.address) {
        Vectors::One(RESET) | Vectors::None | Vectors::Unknown => None,
        Vectors::One(exception) => Some(Some(exception)),
        Vectors::Several => Some(None),
    }
}

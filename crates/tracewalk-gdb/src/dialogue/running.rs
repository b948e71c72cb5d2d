//! Execution between two answers.

use std::collections::BTreeSet;

use tracewalk::ids::Address;

use crate::core::Access;
use crate::walk::Direction;

/// A thread that runs some steps at a time until it has a reason to stop.
#[derive(Clone, Debug)]
pub(super) struct Running {
    /// The thread.
    pub(super) thread: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// Until a breakpoint, or an access to watched memory.
    Continue(Direction, BTreeSet<Address>, Option<Access>),
    /// Until the address leaves the range, or has a breakpoint.
    Range { start: u64, end: u64 },
}

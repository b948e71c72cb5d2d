//! What runs between two answers.

use std::collections::BTreeSet;

use tracewalk::ids::Address;

use crate::core::Access;
use crate::walk::Direction;

/// What runs until it comes to something, some steps at a time.
#[derive(Clone, Debug)]
pub(super) struct Running {
    /// Of this thread.
    pub(super) thread: usize,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// Until a breakpoint, or an access of watched memory.
    Continue(Direction, BTreeSet<Address>, Option<Access>),
    /// Until the address is none of these, or has a breakpoint.
    Range { start: u64, end: u64 },
}

//! The state that lowering depends on for packets that the memo may look up.

use crate::ids::Location;
use crate::protocol::SecurityBits;
use crate::protocol::memoised::{MemoLower, MemoState, WaitCycles};
use crate::protocol::synchronisation::Tracking;
use crate::span::{Span, StreamOffset};

use super::{Cancellable, Lowering};

/// The state that P-headers, branch packets and exception exits depend on and change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HeldBack {
    held: Option<(Cancellable, Span)>,
    target: Option<(Location, Span)>,
    security: SecurityBits,
}

impl MemoState for Lowering {
    type State = HeldBack;

    fn state(&self, at: StreamOffset) -> Option<HeldBack> {
        let Self {
            profile: _,
            tracking,
            held,
            target,
            queue,
            cycles: _,
            security,
            context_id: _,
            after_a_sync: _,
        } = self;
        let repeats = *tracking == Tracking::Known && queue.is_empty();
        repeats.then(|| HeldBack {
            held: held.map(|(held, span)| (held, span.relative_to(at))),
            target: target.map(|(target, span)| (target, span.relative_to(at))),
            security: *security,
        })
    }

    fn resume(&mut self, state: &HeldBack, at: StreamOffset) {
        self.held = state.held.map(|(held, span)| (held, span.placed_after(at)));
        self.target = state.target.map(|(target, span)| (target, span.placed_after(at)));
        self.security = state.security;
    }
}

impl MemoLower for Lowering {
    fn take_wait_cycles(&mut self) -> Option<WaitCycles> {
        self.cycles.take().map(|(cycles, span)| WaitCycles { cycles, span })
    }

    fn put_wait_cycles(&mut self, waited: Option<WaitCycles>) {
        self.cycles = waited.map(|WaitCycles { cycles, span }| (cycles, span));
    }
}

//! What lowering the packets depends on that the memo may look up.

use crate::protocol::memoised::{MemoLower, MemoState};
use crate::protocol::synchronisation::Tracking;
use crate::span::StreamOffset;

use super::Lowering;
use super::emission::Settled;
use super::queue::Waiting;

/// What lowering repeatable packets depends on and changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lowered {
    settled: Settled,
    waiting: Waiting,
}

impl MemoState for Lowering {
    type State = Lowered;

    /// `None` while something waits for an address, or much for a commit.
    fn state(&self, at: StreamOffset) -> Option<Lowered> {
        let Self {
            is_m_profile: _,
            is_ete: _,
            transaction_start_is_p0: _,
            greatest_speculation: _,
            tracking,
            overflowed: _,
            incomplete,
            queue,
            emission,
        } = self;
        if *tracking != Tracking::Known || incomplete.is_some() {
            return None;
        }
        Some(Lowered { settled: emission.settled(at)?, waiting: queue.waiting(at)? })
    }

    fn resume(&mut self, state: &Lowered, at: StreamOffset) {
        self.emission.resume(&state.settled, at);
        self.queue.resume(&state.waiting, at);
    }
}

impl MemoLower for Lowering {}

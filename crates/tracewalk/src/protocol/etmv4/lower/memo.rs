//! The state that lowering depends on for packets that the memo may look up.

use crate::protocol::memoised::{MemoLower, MemoState};
use crate::protocol::synchronisation::Tracking;
use crate::span::StreamOffset;

use super::Lowering;
use super::emission::Settled;

impl MemoState for Lowering {
    type State = Settled;

    /// `None` while an element waits for an address, a commit or a cycle count.
    fn state(&self, _at: StreamOffset) -> Option<Settled> {
        let waits = self.incomplete.is_some() || !self.queue.is_empty();
        (self.tracking == Tracking::Known && !waits).then(|| self.emission.settled()).flatten()
    }

    fn resume(&mut self, state: &Settled, _at: StreamOffset) {
        self.emission.resume(*state);
    }
}

impl MemoLower for Lowering {
    /// With speculation or cycle counts, an element waits nearly always.
    fn has_states(&self) -> bool {
        self.greatest_speculation == 0 && !self.emission.holds()
    }
}

//! What lowering the packets depends on that the memo may look up.

use crate::protocol::memoised::{MemoLower, MemoState};
use crate::protocol::synchronisation::Tracking;
use crate::span::StreamOffset;

use super::Lowering;
use super::emission::Settled;

impl MemoState for Lowering {
    type State = Settled;

    /// `None` while something waits for an address, for a commit or for a cycle count.
    fn state(&self, _at: StreamOffset) -> Option<Settled> {
        let waits = self.incomplete.is_some() || !self.queue.is_empty();
        (self.tracking == Tracking::Known && !waits).then(|| self.emission.settled()).flatten()
    }

    fn resume(&mut self, state: &Settled, _at: StreamOffset) {
        self.emission.resume(*state);
    }
}

impl MemoLower for Lowering {}

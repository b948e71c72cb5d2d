//! The state that lowering depends on for packets that the memo may look up.

use crate::protocol::SecurityBits;
use crate::protocol::memoised::{MemoLower, MemoState};
use crate::protocol::synchronisation::Tracking;
use crate::span::StreamOffset;

use super::Lowering;

impl MemoState for Lowering {
    /// The security state that was last passed on.
    type State = Option<SecurityBits>;

    fn state(&self, _at: StreamOffset) -> Option<Self::State> {
        (self.tracking == Tracking::Known).then_some(self.security)
    }

    fn resume(&mut self, state: &Self::State, _at: StreamOffset) {
        self.security = *state;
    }
}

impl MemoLower for Lowering {}

//! Decides whether lookups are worth their time.

use crate::span::StreamOffset;

/// A budget for lookups, in blocks: blocks of known windows earn credit, unknown windows cost it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    credit: i32,
    /// Nothing is looked up before this byte.
    asleep_until: StreamOffset,
}

impl Patience {
    /// The budget of a new memo: enough for some thousand unknown windows.
    pub(super) const NEW: Self = Self { credit: 1 << 17, asleep_until: StreamOffset(0) };

    /// The costs of a replay and of an unknown window.
    const ENTER: i32 = 4;
    const MISS: i32 = 8;

    /// The pause after the budget is used up, in bytes, and the budget after it.
    const SLEEP: u64 = 1 << 19;
    const AWAKE: i32 = 1 << 13;

    /// The number of bytes to decode without lookups.
    #[inline]
    pub(super) fn asleep(&self, position: StreamOffset) -> usize {
        usize::try_from(self.asleep_until.0.saturating_sub(position.0)).unwrap_or(usize::MAX)
    }

    pub(super) fn found(&mut self, blocks: i32) {
        self.credit = (self.credit - Self::ENTER).saturating_add(blocks).min(Self::NEW.credit);
    }

    pub(super) fn missed(&mut self, position: StreamOffset) {
        self.credit -= Self::MISS;
        if self.credit <= 0 {
            *self = Self { credit: Self::AWAKE, asleep_until: StreamOffset(position.0 + Self::SLEEP) };
        }
    }
}

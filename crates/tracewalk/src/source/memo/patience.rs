//! Whether looking up is worth its time.

use crate::span::StreamOffset;

/// A budget for looking up, in blocks: those of windows that are known earn, windows that are not cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    credit: i32,
    /// Nothing is looked up before this byte.
    asleep_until: StreamOffset,
}

impl Patience {
    /// What a new memo may cost before it has to pay: some thousand windows that are not known.
    pub(super) const NEW: Self = Self { credit: 1 << 17, asleep_until: StreamOffset(0) };

    /// What entering costs, and a window that is not known.
    const ENTER: i32 = 4;
    const MISS: i32 = 8;

    /// How long not to try again, and what to spend then.
    const SLEEP: u64 = 1 << 19;
    const AWAKE: i32 = 1 << 13;

    /// How many bytes to decode without looking up.
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

//! How often passages came in which chains of calls, where they are known by the frames that they look at.
//!
//! What such a passage costs is known by frame: [`Relative`]. Which pieces of which chains that is, is found out once for each chain that
//! it came in, and not each time that it comes.

use std::ops::Range;

use super::NodeId;
use crate::call_stack::{Entry, FrameKind, FunctionId, Piece};
use crate::clock::Cost;
use crate::quick::mix;

/// What a passage does and costs, by frame.
#[derive(Clone, Debug)]
pub(super) struct Relative {
    /// What it does, among the deeds of all passages.
    pub(super) deeds: Range<usize>,
    /// How many frames go, and how many come.
    pub(super) left: usize,
    pub(super) entered: usize,
    pub(super) cycle_counts: u64,
}

impl Relative {
    /// What these deeds do.
    pub(super) fn of(all: &[Deed], deeds: Range<usize>, cycle_counts: u64) -> Self {
        let (mut left, mut entered) = (0, 0);
        for deed in all.get(deeds.clone()).unwrap_or_default() {
            match deed {
                Deed::Enters(..) => entered += 1,
                Deed::Leaves if entered > 0 => entered -= 1,
                Deed::Leaves => left += 1,
                Deed::Runs(..) => {}
            }
        }
        Self { deeds, left, entered, cycle_counts }
    }
}

/// A thing that a passage does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deed {
    /// A frame is entered.
    Enters(FrameKind, FunctionId, Entry),
    /// The innermost one is left.
    Leaves,
    /// A piece of code runs in it.
    Runs(Piece, Cost),
}

/// Which relative costs, and in the chain of which innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) relative: u32,
    pub(super) node: NodeId,
}

/// How often pairs came.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// A power of two long, at most half full; empty before the first.
    slots: Vec<Slot>,
    used: usize,
    /// The chains of frames that come, of all pairs.
    entered: Vec<NodeId>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    pair: Pair,
    /// The first of the chains that come.
    entered: u32,
    count: u32,
}

impl Slot {
    const FREE: Self =
        Self { pair: Pair { relative: u32::MAX, node: NodeId(u32::MAX) }, entered: 0, count: 0 };
}

/// More pairs than this are not remembered.
const MOST: usize = 1 << 18;
const FIRST_SLOTS: usize = 1 << 10;

impl Pairs {
    /// Where a pair is, if it is known.
    #[inline]
    pub(super) fn find(&self, pair: Pair) -> Option<usize> {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = slot_of(pair) & last;
        loop {
            match self.slots.get(at)?.pair {
                known if known == pair => return Some(at),
                known if known == Slot::FREE.pair => return None,
                _ => at = (at + 1) & last,
            }
        }
    }

    /// Counts it once more; answers whether it can be counted again.
    #[inline]
    pub(super) fn count(&mut self, at: usize) -> bool {
        let Some(slot) = self.slots.get_mut(at) else { return true };
        slot.count += 1;
        slot.count < u32::MAX
    }

    /// The chains of the frames that come, the innermost last.
    #[inline]
    pub(super) fn entered(&self, at: usize, frames: usize) -> &[NodeId] {
        let start = self.slots.get(at).map_or(0, |slot| slot.entered as usize);
        self.entered.get(start..start + frames).unwrap_or_default()
    }

    /// Whether no more can be remembered.
    pub(super) const fn is_full(&self) -> bool {
        self.used >= MOST || self.entered.len() >= MOST * 4
    }

    /// Remembers which chains come in a pair, that has not been counted yet.
    pub(super) fn insert(&mut self, pair: Pair, entered: &[NodeId]) {
        let Ok(start) = u32::try_from(self.entered.len()) else { return };
        self.entered.extend(entered);
        if self.used * 2 >= self.slots.len() {
            let length = (self.slots.len() * 2).max(FIRST_SLOTS);
            let old = std::mem::replace(&mut self.slots, vec![Slot::FREE; length]);
            self.used = 0;
            old.into_iter().filter(|slot| slot.pair != Slot::FREE.pair).for_each(|slot| self.place(slot));
        }
        self.place(Slot { pair, entered: start, count: 0 });
    }

    fn place(&mut self, slot: Slot) {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = slot_of(slot.pair) & last;
        while let Some(place) = self.slots.get_mut(at) {
            if place.pair == Slot::FREE.pair {
                *place = slot;
                self.used += 1;
                return;
            }
            at = (at + 1) & last;
        }
    }

    /// How often each was counted since the last time.
    pub(super) fn take_counts(&mut self, mut take: impl FnMut(Pair, u64)) {
        for slot in self.slots.iter_mut().filter(|slot| slot.count > 0) {
            take(slot.pair, std::mem::take(&mut slot.count).into());
        }
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.slots.fill(Slot::FREE);
        self.used = 0;
        self.entered.clear();
    }
}

#[inline]
const fn slot_of(pair: Pair) -> usize {
    (mix((pair.relative as u64) << 32 | pair.node.0 as u64) >> 16) as usize
}

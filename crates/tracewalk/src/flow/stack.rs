//! A stack of places that execution is to return to.

use crate::ids::{Address, Isa, Location};

/// The number of places that are remembered. A decoder's return stack may be deeper than the trace unit's (IHI 0035B, 4.13):
/// the unit's newest entry is always the decoder's newest entry. No known unit has more than four.
pub(super) const DEPTH: usize = 16;

pub(super) const NOWHERE: Location = Location::new(Address::new(0), Isa::A32);

/// A stack that drops its oldest entry when it is full.
///
/// Addresses and instruction sets are separate arrays: indexing either is one addressing mode, while indexing
/// locations of 12 bytes takes arithmetic.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct LocationStack {
    addresses: [Address; DEPTH],
    isas: [Isa; DEPTH],
    /// The place of the next entry.
    top: usize,
    /// The number of valid entries, at most `DEPTH`.
    count: usize,
}

impl LocationStack {
    pub(super) const fn new() -> Self {
        Self { addresses: [NOWHERE.address; DEPTH], isas: [NOWHERE.isa; DEPTH], top: 0, count: 0 }
    }

    #[inline(always)]
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    #[inline(always)]
    pub(super) fn push(&mut self, location: Location) {
        let place = self.top % DEPTH;
        if let (Some(address), Some(isa)) = (self.addresses.get_mut(place), self.isas.get_mut(place)) {
            (*address, *isa) = (location.address, location.isa);
        }
        self.top = (self.top + 1) % DEPTH;
        self.count = (self.count + 1).min(DEPTH);
    }

    /// Drops the newest `count` entries. The stack must hold as many.
    #[inline(always)]
    pub(super) const fn drop_newest(&mut self, count: usize) {
        self.top = (self.top + DEPTH - count) % DEPTH;
        self.count -= count;
    }

    /// Drops the oldest entries, so that at most `count` remain.
    #[inline(always)]
    pub(super) fn keep_newest(&mut self, count: usize) {
        self.count = self.count.min(count);
    }

    #[inline(always)]
    pub(super) fn newest(&self) -> Option<Location> {
        self.at_depth(0)
    }

    /// The entry below `depth` others.
    #[inline(always)]
    pub(super) fn at_depth(&self, depth: usize) -> Option<Location> {
        let place = (self.top + 2 * DEPTH - 1 - depth) % DEPTH;
        let location = Location::new(*self.addresses.get(place)?, *self.isas.get(place)?);
        (depth < self.count).then_some(location)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_full_stack_drops_the_oldest_entry() {
        let at = |address: u64| Location::new(Address::new(address), Isa::T32);
        let mut stack = LocationStack::new();
        (0..20).for_each(|address| stack.push(at(address)));
        let contents =
            |stack: &LocationStack| (0..).map_while(|depth| stack.at_depth(depth)).collect::<Vec<_>>();
        assert!(contents(&stack).into_iter().eq((4..20).rev().map(at)));
        stack.drop_newest(3);
        stack.keep_newest(2);
        assert_eq!((stack.len(), contents(&stack)), (2, std::vec![at(16), at(15)]));
    }
}

//! A stack of places that execution is to return to.

use crate::ids::Location;

/// How many places are remembered. A decoder's return stack may be deeper than the trace unit's (IHI 0035B, 4.13): the
/// unit's newest entry is always the decoder's newest entry. No known unit has more than four.
const DEPTH: usize = 16;

/// A stack that forgets its oldest entry when it is full.
#[derive(Clone, Debug)]
pub(super) struct LocationStack {
    entries: [Location; DEPTH],
    /// Where the next entry goes.
    top: usize,
    /// How many entries count, at most `DEPTH`.
    count: usize,
}

impl LocationStack {
    pub(super) const fn new() -> Self {
        Self {
            entries: [Location::new(crate::ids::Address(0), crate::ids::Isa::A32); DEPTH],
            top: 0,
            count: 0,
        }
    }

    pub(super) fn push(&mut self, location: Location) {
        if let Some(entry) = self.entries.get_mut(self.top) {
            *entry = location;
        }
        self.top = (self.top + 1) % DEPTH;
        self.count = (self.count + 1).min(DEPTH);
    }

    pub(super) fn pop(&mut self) -> Option<Location> {
        self.count = self.count.checked_sub(1)?;
        self.top = (self.top + DEPTH - 1) % DEPTH;
        self.entries.get(self.top).copied()
    }

    /// What [`LocationStack::pop`] would give.
    pub(super) fn newest(&self) -> Option<Location> {
        let top = (self.top + DEPTH - 1) % DEPTH;
        self.entries.get(top).copied().filter(|_| self.count > 0)
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Address, Isa};

    #[test]
    fn a_full_stack_forgets_the_oldest_entry() {
        let at = |index| Location::new(Address(index), Isa::T32);
        let mut stack = LocationStack::new();
        (0..20).for_each(|index| stack.push(at(index)));
        let popped = core::iter::from_fn(|| stack.pop());
        assert!(popped.eq((4..20).rev().map(at)));
        stack.push(at(1));
        stack.clear();
        assert_eq!(stack.pop(), None);
    }
}

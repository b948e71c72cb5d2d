//! Counts runs and looks up chains of calls, quickly.

use tracewalk::ids::Address;

use super::{NodeId, NodeKind, Profile};
use crate::quick::mix;

/// How often each run ran in each chain of calls. A count is one word, because the table is larger than the first caches.
#[derive(Debug, Default)]
pub(super) struct RunCounts {
    /// A power of two long, at most half full; empty before the first run.
    slots: Vec<Slot>,
    used: usize,
}

/// A chain, a run, and how often it ran: 0 in a free slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot(u64);

impl Slot {
    /// The bits of a run's number, and of the count.
    const RUN: u32 = 20;
    const TIMES: u32 = 24;
    const MOST_TIMES: u64 = (1 << Self::TIMES) - 1;

    /// A run that ran once; `None` if its numbers are too large.
    #[inline]
    fn once(node: NodeId, run: u32) -> Option<Self> {
        let node = u64::from(node.number());
        let fits = node >> (64 - Self::RUN - Self::TIMES) == 0 && run >> Self::RUN == 0;
        fits.then_some(Self((node << Self::RUN | u64::from(run)) << Self::TIMES | 1))
    }

    const fn times(self) -> u64 {
        self.0 & Self::MOST_TIMES
    }

    /// The chain and the run as one number.
    const fn key(self) -> u64 {
        self.0 >> Self::TIMES
    }

    fn node(self) -> NodeId {
        NodeId(u32::try_from(self.key() >> Self::RUN).unwrap_or(u32::MAX))
    }

    const fn run(self) -> u32 {
        (self.key() & ((1 << Self::RUN) - 1)) as u32
    }

    const fn place(self) -> usize {
        (mix(self.key()) >> 16) as usize
    }
}

const FIRST_SLOTS: usize = 1 << 10;
const MOST_SLOTS: usize = 1 << 19;

impl RunCounts {
    /// Counts a run. Returns whether there was room for the count.
    #[inline]
    pub(super) fn count(&mut self, node: NodeId, run: u32) -> bool {
        let Some(once) = Slot::once(node, run) else { return false };
        let last = self.slots.len().wrapping_sub(1);
        let mut at = once.place() & last;
        while let Some(slot) = self.slots.get_mut(at) {
            if slot.key() == once.key() && slot.0 != 0 {
                let has_room = slot.times() < Slot::MOST_TIMES;
                slot.0 += u64::from(has_room);
                return has_room;
            }
            if slot.0 == 0 {
                break;
            }
            at = (at + 1) & last;
        }
        self.add(once)
    }

    /// Hands out all counts, and starts again from zero.
    pub(super) fn take(&mut self, mut give: impl FnMut(NodeId, u32, u64)) {
        for slot in self.slots.iter_mut().filter(|slot| slot.0 != 0) {
            let slot = std::mem::take(slot);
            give(slot.node(), slot.run(), slot.times());
        }
        self.used = 0;
    }

    #[inline(never)]
    fn add(&mut self, slot: Slot) -> bool {
        if self.used * 2 >= self.slots.len() {
            if self.slots.len() >= MOST_SLOTS {
                return false;
            }
            let length = (self.slots.len() * 2).max(FIRST_SLOTS);
            let old = std::mem::replace(&mut self.slots, vec![Slot::default(); length]);
            old.into_iter().filter(|slot| slot.0 != 0).for_each(|slot| self.place(slot));
        }
        self.used += 1;
        self.place(slot);
        true
    }

    fn place(&mut self, slot: Slot) {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = slot.place() & last;
        while let Some(place) = self.slots.get_mut(at) {
            if place.0 == 0 {
                *place = slot;
                return;
            }
            at = (at + 1) & last;
        }
    }
}

/// The chains that were looked up last: one for each hash of the chain outside and the link.
#[derive(Debug, Default)]
pub(super) struct RecentLinks {
    /// A power of two long; empty before the first look-up.
    known: Box<[NodeId]>,
}

/// The number of chains that are kept.
const RECENT: usize = 1 << 14;

impl RecentLinks {
    /// The chain that adds a link to another one.
    #[inline]
    pub(super) fn node(&mut self, profile: &mut Profile, parent: NodeId, kind: NodeKind) -> NodeId {
        let site = match kind {
            NodeKind::Function { site, .. } => site.map_or(0, Address::get),
            NodeKind::Task(_) | NodeKind::Exception(_) => 0,
        };
        let at = (mix(u64::from(parent.number()) << 32 ^ site) >> 16) as usize % RECENT;
        if let Some(recent) = self.known.get(at)
            && let Some(node) = profile.nodes.get(recent.index())
            && node.parent == Some(parent)
            && node.kind == kind
        {
            return *recent;
        }
        let node = profile.node(Some(parent), kind);
        if self.known.is_empty() {
            self.known = vec![node; RECENT].into();
        }
        if let Some(known) = self.known.get_mut(at) {
            *known = node;
        }
        node
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn counts_are_those_of_a_map() {
        let (mut counts, mut expected) = (RunCounts::default(), BTreeMap::new());
        for step in 0..50_000_u32 {
            let (node, run) = (step * 7 % 97, step * 13 % 211);
            assert!(counts.count(NodeId(node), run));
            *expected.entry((node, run)).or_insert(0) += 1;
        }
        for _ in 0..2 {
            let mut found = BTreeMap::new();
            counts.take(|node, run, times| assert!(found.insert((node.number(), run), times).is_none()));
            assert_eq!(found, expected);
            expected.clear();
        }
    }

    #[test]
    fn runs_without_room_are_left_to_the_caller() {
        let mut counts = RunCounts::default();
        let taken = (0..1 << 20).take_while(|run| counts.count(NodeId(0), *run)).count();
        assert_eq!(taken, MOST_SLOTS / 2);
        assert!(counts.count(NodeId(0), 0));
        assert!(!counts.count(NodeId(1 << 20), 0));
        assert!(!counts.count(NodeId(0), 1 << 20));
    }

    #[test]
    fn a_count_ends_where_its_room_ends() {
        let mut counts = RunCounts::default();
        let counted = (0..1 << 25).take_while(|_| counts.count(NodeId(3), 5)).count();
        counts.take(|node, run, times| {
            assert_eq!((node, run, times), (NodeId(3), 5, Slot::MOST_TIMES));
        });
        assert_eq!(counted as u64, Slot::MOST_TIMES);
    }
}

//! Counts runs and looks up chains of calls, quickly.

use hashbrown::HashTable;
use tracewalk::ids::Address;

use super::{NodeId, NodeKind, Profile};
use crate::quick::{hash, mix};

/// How often each run ran in each chain of calls. A count is one word, because the table is larger than the first caches.
#[derive(Debug, Default)]
pub(super) struct RunCounts(HashTable<Slot>);

/// A chain, a run, and how often it ran.
#[derive(Clone, Copy, Debug)]
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

    fn hash(self) -> u64 {
        hash(&self.key())
    }
}

/// The most counts in a table.
const MOST: usize = 1 << 18;

impl RunCounts {
    /// Counts a run. Returns whether there was room for the count.
    #[inline]
    pub(super) fn count(&mut self, node: NodeId, run: u32) -> bool {
        let Some(once) = Slot::once(node, run) else { return false };
        let hash = once.hash();
        if let Some(slot) = self.0.find_mut(hash, |slot| slot.key() == once.key()) {
            let has_room = slot.times() < Slot::MOST_TIMES;
            slot.0 += u64::from(has_room);
            return has_room;
        }
        let has_room = self.0.len() < MOST;
        if has_room {
            self.0.insert_unique(hash, once, |slot| slot.hash());
        }
        has_room
    }

    /// Hands out all counts, and starts again from zero.
    pub(super) fn take(&mut self, mut give: impl FnMut(NodeId, u32, u64)) {
        self.0.drain().for_each(|slot| give(slot.node(), slot.run(), slot.times()));
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
        assert_eq!(taken, MOST);
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

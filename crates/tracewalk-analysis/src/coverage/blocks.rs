//! Counts blocks by their place and ending.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracewalk::directive::Granularity;
use tracewalk::flow::{Block, BranchKind, Ending};
use tracewalk::ids::{Address, Isa};
use tracewalk::source::SourceConfig;

use crate::quick::QuickMap;

/// The instructions for which a trace records whether their conditions passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum Conditions {
    /// Of every instruction.
    #[serde(rename = "every")]
    OfEvery,
    /// Of branches alone.
    #[serde(rename = "branches")]
    OfBranches,
}

/// How the last instruction of a block ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The instruction is no branch; execution continued after it or was interrupted.
    Passed,
    /// The instruction is no branch, and its condition failed.
    Failed,
    /// The instruction is a branch, and was taken.
    Taken,
    /// The instruction is a branch, and was not taken.
    NotTaken,
}

/// A block and the way it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockKey {
    /// The first instruction.
    pub start: Address,
    /// The address after the last instruction.
    pub end: Address,
    /// The instruction set.
    pub isa: Isa,
    /// How the last instruction ended it.
    pub outcome: Outcome,
    /// The instructions before the last whose conditions the trace records.
    pub conditions: Conditions,
}

/// How often each block ran.
pub type BlockCounts = BTreeMap<BlockKey, u64>;

impl Conditions {
    /// The instructions that a source of this configuration records.
    #[must_use]
    pub fn recorded_by(config: &SourceConfig) -> Self {
        match config.rules().granularity {
            Granularity::Instructions => Self::OfEvery,
            Granularity::Waypoints | Granularity::Runs => Self::OfBranches,
        }
    }

    /// A short name for line formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OfEvery => "every",
            Self::OfBranches => "branches",
        }
    }
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Passed, Self::Failed, Self::Taken, Self::NotTaken];

    /// The outcome of a block's ending.
    #[inline]
    #[must_use]
    pub const fn of(ending: Ending) -> Self {
        match ending {
            // PFT only reports that a barrier was passed (IHI 0035B, 4.4.1): it may have run with either atom.
            Ending::Interrupted | Ending::Branch { kind: BranchKind::Barrier, .. } => Self::Passed,
            Ending::ConditionFailed => Self::Failed,
            Ending::Branch { taken: true, .. } => Self::Taken,
            Ending::Branch { taken: false, .. } => Self::NotTaken,
        }
    }
}

/// Counts blocks quickly.
///
/// Programs spend their time in few blocks. A small direct-mapped table before the map holds the blocks that ran last, so
/// that counting is one comparison and one addition. An evicted block's count moves to the map.
#[derive(Clone, Debug, Default)]
pub struct BlockCounter {
    /// Empty until the first block.
    recent: Box<[Slot]>,
    rest: QuickMap<Packed, u64>,
}

/// How many blocks the table holds: 32 KiB of them, which stay in a first-level cache.
const SLOTS: usize = 1 << 10;

#[derive(Clone, Copy, Debug)]
struct Slot {
    block: Packed,
    count: u64,
}

/// A block in as few words as possible; `tag` holds instruction set and outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Packed {
    start: u64,
    end: u64,
    tag: u32,
}

/// The tag of a slot that holds no block.
const EMPTY: u32 = u32::MAX;
const ISAS: [Isa; 5] = [Isa::A32, Isa::T32, Isa::T32EE, Isa::Jazelle, Isa::A64];

impl BlockCounter {
    /// Counts a block.
    #[inline]
    pub fn count(&mut self, block: &Block) {
        self.add(Packed::of(block), 1);
    }

    /// Counts a block that ran `count` times.
    #[inline]
    pub(super) fn add(&mut self, block: Packed, count: u64) {
        if let Some(slot) = self.recent.get_mut(block.slot())
            && slot.block == block
        {
            slot.count = slot.count.saturating_add(count);
        } else {
            self.replace(block, count);
        }
    }

    #[cold]
    fn replace(&mut self, block: Packed, count: u64) {
        if self.recent.is_empty() {
            let empty = Slot { block: Packed { start: 0, end: 0, tag: EMPTY }, count: 0 };
            self.recent = vec![empty; SLOTS].into();
        }
        let slot = self.recent.get_mut(block.slot()).expect("a slot's number is below SLOTS");
        let replaced = std::mem::replace(slot, Slot { block, count });
        self.put_away(replaced);
    }

    /// Adds the counts of another counter.
    pub(super) fn join(&mut self, other: Self) {
        for Slot { block, count } in other.recent.iter().copied().filter(|slot| slot.block.tag != EMPTY) {
            self.add(block, count);
        }
        for (block, count) in other.rest {
            self.add(block, count);
        }
    }

    /// The counts of a source that records these conditions.
    #[must_use]
    pub fn finish(mut self, conditions: Conditions) -> BlockCounts {
        for slot in std::mem::take(&mut self.recent) {
            self.put_away(slot);
        }
        let counted = self.rest.iter().filter(|(_, count)| **count > 0);
        counted.map(|(packed, count)| (packed.key(conditions), *count)).collect()
    }

    fn put_away(&mut self, slot: Slot) {
        if slot.block.tag != EMPTY {
            let sum = self.rest.entry(slot.block).or_default();
            *sum = sum.saturating_add(slot.count);
        }
    }
}

impl Packed {
    #[inline]
    pub(super) const fn of(block: &Block) -> Self {
        Self {
            start: block.start.get(),
            end: block.end.get(),
            tag: tag(block.isa, Outcome::of(block.ending)),
        }
    }

    /// The block's slot in the table: a hash of start, end and outcome. Blocks that begin at the same place and end differently,
    /// as in loops, need different slots.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "as many bits as a slot's number has")]
    const fn slot(self) -> usize {
        let stirred = (self.start ^ self.tag as u64).wrapping_mul(0x9e37_79b1_85eb_ca6b)
            ^ self.end.wrapping_mul(0x85eb_ca6b_c2b2_ae35);
        (stirred >> (u64::BITS - SLOTS.trailing_zeros())) as usize
    }

    fn key(self, conditions: Conditions) -> BlockKey {
        let (outcome, isa) = (self.tag & 0b11, self.tag >> 2);
        BlockKey {
            start: Address::new(self.start),
            end: Address::new(self.end),
            isa: ISAS[isa as usize],
            outcome: Outcome::ALL[outcome as usize],
            conditions,
        }
    }
}

#[inline]
const fn tag(isa: Isa, outcome: Outcome) -> u32 {
    let isa = match isa {
        Isa::A32 => 0,
        Isa::T32 => 1,
        Isa::T32EE => 2,
        Isa::Jazelle => 3,
        Isa::A64 => 4,
    };
    let outcome = match outcome {
        Outcome::Passed => 0,
        Outcome::Failed => 1,
        Outcome::Taken => 2,
        Outcome::NotTaken => 3,
    };
    isa << 2 | outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{block, interrupted, not_taken, taken};
    use tracewalk::flow::Element;

    fn counted(blocks: &[(u32, u32, Ending)]) -> BlockCounts {
        let mut counter = BlockCounter::default();
        for &(start, end, ending) in blocks {
            let Element::Block(block) = block(start, end, ending) else {
                unreachable!("block() makes a block")
            };
            counter.count(&block);
        }
        counter.finish(Conditions::OfEvery)
    }

    #[test]
    fn blocks_are_distinguished_by_place_and_ending() {
        let counts = counted(&[
            (0x100, 0x104, taken()),
            (0x100, 0x104, not_taken()),
            (0x100, 0x104, taken()),
            (0x100, 0x106, interrupted()),
            (0x102, 0x104, Ending::ConditionFailed),
        ]);
        let found = counts.iter().map(|(key, count)| (key.start.get(), key.end.get(), key.outcome, *count));
        let expected = [
            (0x100, 0x104, Outcome::Taken, 2),
            (0x100, 0x104, Outcome::NotTaken, 1),
            (0x100, 0x106, Outcome::Passed, 1),
            (0x102, 0x104, Outcome::Failed, 1),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn many_more_blocks_than_the_table_holds_are_counted_exactly() {
        let blocks = (0..3).flat_map(|_| (0..20_000).map(|index| (index * 4, index * 4 + 4, taken())));
        let counts = counted(&blocks.collect::<Vec<_>>());
        assert_eq!(counts.len(), 20_000);
        assert!(counts.values().all(|count| *count == 3));
    }

    #[test]
    fn a_barrier_is_passed_whatever_the_atom_says() {
        let barrier = |taken| Ending::Branch { kind: BranchKind::Barrier, taken, link: false, returns: None };
        assert_eq!(Outcome::of(barrier(true)), Outcome::Passed);
        assert_eq!(Outcome::of(barrier(false)), Outcome::Passed);
    }
}

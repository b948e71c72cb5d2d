//! Counting passages: blocks that flow gives together, again and again.

use std::collections::HashMap;

use tracewalk::flow::{Element, EventKind, Passage};
use tracewalk::span::StreamOffset;

use super::blocks::{BlockCounter, Packed};
use super::once::{Once, PassageNumber, PassageOnce};

/// Counts passages, and at the end the blocks in them.
///
/// A table with a place for each passage, looked for from where its number leads on. Most of what runs is in passages, so
/// that one addition counts several blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct PassageCounter {
    /// A power of two long, at most half full; empty before the first passage.
    slots: Vec<Slot>,
    used: usize,
    /// The blocks of all passages, one passage's behind the other's.
    blocks: Vec<BlockOfPassage>,
}

/// A block in a passage.
#[derive(Clone, Copy, Debug)]
struct BlockOfPassage {
    once: Once,
    /// Where the trace that proves it begins: from where the passage begins, or, where it is negative, from as far in front
    /// of that as [`Passage::waited`] says.
    offset: i64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The passage's number, or [`NO_PASSAGE`].
    id: u64,
    count: u64,
    number: PassageNumber,
    blocks: u32,
}

/// Passages by their numbers.
pub(super) struct ByNumber<'a> {
    counter: &'a PassageCounter,
    slots: HashMap<PassageNumber, u32>,
}

/// What no passage has for a number: nobody remembers so many elements.
const NO_PASSAGE: u64 = u64::MAX;

const FREE: Slot = Slot { id: NO_PASSAGE, count: 0, number: PassageNumber(0), blocks: 0 };

/// How many slots the first table has.
const FIRST_SLOTS: usize = 1 << 8;

impl PassageCounter {
    /// Counts a passage; `None` where there is more in it than blocks and what does not matter to coverage.
    #[inline(always)]
    pub(super) fn count(&mut self, passage: &Passage<'_>) -> Option<PassageNumber> {
        // One without any elements has no number of its own.
        if passage.totals().blocks == 0 {
            return None;
        }
        let id = passage.id().number();
        let first = stirred(id) & self.slots.len().wrapping_sub(1);
        match self.slots.get_mut(first) {
            Some(slot) if slot.id == id => {
                slot.count += 1;
                Some(slot.number)
            }
            _ => self.count_behind(passage),
        }
    }

    /// The same where it is not in its first slot.
    #[inline(never)]
    fn count_behind(&mut self, passage: &Passage<'_>) -> Option<PassageNumber> {
        match self.find(passage.id().number()) {
            Some(slot) if slot.id != NO_PASSAGE => {
                slot.count += 1;
                Some(slot.number)
            }
            _ => self.insert(passage),
        }
    }

    /// The slot of a passage, or the free one where it belongs.
    fn find(&mut self, id: u64) -> Option<&mut Slot> {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = stirred(id) & last;
        // There are free slots, so that this ends.
        while ![id, NO_PASSAGE].contains(&self.slots.get(at)?.id) {
            at = (at + 1) & last;
        }
        self.slots.get_mut(at)
    }

    #[cold]
    fn insert(&mut self, passage: &Passage<'_>) -> Option<PassageNumber> {
        let is_more = |element| match element {
            Element::Block(_) => false,
            Element::Event(event) => matches!(event.kind, EventKind::TraceOn(_)),
            Element::Gap(_) | Element::Proof(_) => true,
        };
        if passage.elements().any(is_more) {
            return None;
        }
        let number = PassageNumber(u32::try_from(self.blocks.len()).ok()?);
        if self.used * 2 >= self.slots.len() {
            let length = (self.slots.len() * 2).max(FIRST_SLOTS);
            let old = std::mem::replace(&mut self.slots, vec![FREE; length]);
            for slot in old.into_iter().filter(|slot| slot.id != NO_PASSAGE) {
                if let Some(place) = self.find(slot.id) {
                    *place = slot;
                }
            }
        }
        self.blocks.extend(passage.elements().filter_map(|element| match element {
            Element::Block(block) => {
                let start = block.span.start.0;
                let at = passage.at().0;
                let waited = if start < at { passage.waited() } else { 0 };
                let once = Once { block: Packed::of(&block), instructions: block.instructions };
                Some(BlockOfPassage { once, offset: (start + waited).wrapping_sub(at).cast_signed() })
            }
            Element::Event(_) | Element::Gap(_) | Element::Proof(_) => None,
        }));
        let blocks = passage.totals().blocks;
        let id = passage.id().number();
        *self.find(id)? = Slot { id, count: 1, number, blocks };
        self.used += 1;
        Some(number)
    }

    /// Counts the blocks of all passages; answers how many instructions they have.
    pub(super) fn count_blocks(&self, counter: &mut BlockCounter) -> u64 {
        let mut instructions = 0;
        for slot in self.slots.iter().filter(|slot| slot.id != NO_PASSAGE && slot.count > 0) {
            for block in self.blocks_in(slot) {
                counter.add(block.once.block, slot.count);
                instructions += slot.count * u64::from(block.once.instructions);
            }
        }
        instructions
    }

    /// These passages were counted once too often.
    pub(super) fn take_back(&mut self, passages: &[PassageNumber]) {
        let slots = self.by_number(passages.is_empty()).slots;
        for slot in passages.iter().filter_map(|number| slots.get(number)) {
            if let Some(slot) = self.slots.get_mut(*slot as usize) {
                slot.count = slot.count.saturating_sub(1);
            }
        }
    }

    /// The passages by their numbers; none where nobody looks.
    pub(super) fn by_number(&self, nobody_looks: bool) -> ByNumber<'_> {
        let slots = if nobody_looks { &[][..] } else { &self.slots };
        let numbered = (0_u32..).zip(slots).filter(|(_, slot)| slot.id != NO_PASSAGE);
        ByNumber { counter: self, slots: numbered.map(|(index, slot)| (slot.number, index)).collect() }
    }

    fn blocks_in(&self, slot: &Slot) -> &[BlockOfPassage] {
        let first = slot.number.0 as usize;
        self.blocks.get(first..first + slot.blocks as usize).unwrap_or_default()
    }
}

impl ByNumber<'_> {
    /// The blocks of a passage that began at `at`, and where the trace that proves each begins.
    pub(super) fn blocks_of(
        &self,
        passage: PassageOnce,
        at: StreamOffset,
    ) -> impl Iterator<Item = (StreamOffset, Once)> + '_ {
        let slot = self.slots.get(&passage.number);
        let slot = slot.and_then(|slot| self.counter.slots.get(*slot as usize));
        let blocks = slot.map_or(&[][..], |slot| self.counter.blocks_in(slot));
        blocks.iter().map(move |block| {
            let waited = if block.offset < 0 { passage.waited.into() } else { 0 };
            (StreamOffset((at.0 - waited).wrapping_add_signed(block.offset)), block.once)
        })
    }
}

/// Where a passage's slot is looked for, but for the table's length.
#[inline(always)]
const fn stirred(id: u64) -> usize {
    (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

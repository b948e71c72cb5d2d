//! Counts passages: blocks that flow emits together repeatedly.
//!
//! ```text
//! a thread    the slot of a passage's count, by its number in flow           PassageCounter: from part to part
//! a part      how often each passage came                                 PassageCounts
//! the whole   the sum of the parts; at the end the blocks of each         PassageSums
//! all three   the blocks of a passage, by its number in coverage              Contents
//! ```

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracewalk::flow::{Element, EventKind, Passage};
use tracewalk::span::StreamOffset;

use super::blocks::{BlockCounter, Packed};
use super::once::{Once, PassageNumber, PassageOnce};

/// Counts passages, for one part after another.
///
/// A hash table with linear probing by the passage's number in flow. Most blocks are in passages, so that one addition counts
/// several blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct PassageCounter {
    /// A power of two long, at most half full; empty before the first passage.
    slots: Vec<Slot>,
    used: usize,
    /// The slots with a count.
    counted: Vec<u32>,
    contents: Shared,
}

/// How often each passage occurred in a part.
#[derive(Clone, Debug, Default)]
pub(super) struct PassageCounts {
    counts: Vec<(PassageNumber, u64)>,
    contents: Shared,
}

/// How often each passage occurred in all parts.
#[derive(Clone, Debug, Default)]
pub(super) struct PassageSums(Vec<Sums>);

/// The sums of the passages of one `Contents`.
#[derive(Clone, Debug, Default)]
struct Sums {
    /// By number.
    counts: Vec<u64>,
    contents: Shared,
}

/// The blocks of passages. Entries never change.
#[derive(Debug, Default)]
pub(super) struct Contents {
    passages: Vec<Content>,
    /// The blocks of all passages, in order.
    blocks: Vec<BlockOfPassage>,
}

type Shared = Arc<Mutex<Contents>>;

/// A passage.
#[derive(Clone, Copy, Debug)]
struct Content {
    first: u32,
    blocks: u32,
}

/// A block in a passage.
#[derive(Clone, Copy, Debug)]
struct BlockOfPassage {
    once: Once,
    /// The start of the trace that proves the block, from the start of the passage. If negative: from [`Passage::waited`] before
    /// that start.
    offset: i64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The passage's number in flow, or [`NO_PASSAGE`].
    id: u64,
    count: u64,
    number: PassageNumber,
}

/// No passage has this number: it exceeds the limit of elements.
const NO_PASSAGE: u64 = u64::MAX;

const FREE: Slot = Slot { id: NO_PASSAGE, count: 0, number: PassageNumber(0) };

/// The length of the first table.
const FIRST_SLOTS: usize = 1 << 8;

/// The number of blocks at which a thread starts anew: 2 MiB of them.
const MOST_BLOCKS: usize = 1 << 16;

/// The number of `Contents` whose passages are summed; passages of others become counts of blocks.
const MOST_SUMS: usize = 4;

impl PassageCounter {
    /// Counts a passage; `None` if it has elements other than blocks that matter to coverage.
    #[inline(always)]
    pub(super) fn count(&mut self, passage: &Passage<'_>) -> Option<PassageNumber> {
        // A passage without elements has no number of its own.
        if passage.totals().blocks == 0 {
            return None;
        }
        let id = passage.id().number();
        let first = stirred(id) & self.slots.len().wrapping_sub(1);
        match self.slots.get_mut(first) {
            Some(slot) if slot.id == id && slot.count > 0 => {
                slot.count += 1;
                Some(slot.number)
            }
            _ => self.count_after_first(passage),
        }
    }

    /// The same for a passage that is not in its first slot, or has no count.
    #[inline(never)]
    fn count_after_first(&mut self, passage: &Passage<'_>) -> Option<PassageNumber> {
        let id = passage.id().number();
        let at = self.find(id);
        match self.slots.get_mut(at) {
            Some(slot) if slot.id == id => {
                if slot.count == 0 {
                    self.counted.push(u32::try_from(at).ok()?);
                }
                slot.count += 1;
                Some(slot.number)
            }
            _ => self.insert(passage),
        }
    }

    /// The index of a passage's slot, or of the free slot where it belongs; out of range if there are no slots.
    fn find(&self, id: u64) -> usize {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = stirred(id) & last;
        // Ends, because there are free slots.
        while self.slots.get(at).is_some_and(|slot| ![id, NO_PASSAGE].contains(&slot.id)) {
            at = (at + 1) & last;
        }
        at
    }

    #[cold]
    fn insert(&mut self, passage: &Passage<'_>) -> Option<PassageNumber> {
        let is_more = |element| match element {
            Element::Block(_) => false,
            Element::Event(event) => matches!(event.kind, EventKind::TraceOn(_) | EventKind::Transaction(_)),
            Element::Gap(_) | Element::Proof(_) => true,
        };
        if passage.elements().any(is_more) {
            return None;
        }
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let number = lock(&self.contents).add(passage)?;
        let id = passage.id().number();
        let at = self.find(id);
        *self.slots.get_mut(at)? = Slot { id, count: 1, number };
        self.counted.push(u32::try_from(at).ok()?);
        self.used += 1;
        Some(number)
    }

    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(FIRST_SLOTS);
        let old = std::mem::replace(&mut self.slots, vec![FREE; length]);
        self.counted.clear();
        for slot in old.into_iter().filter(|slot| slot.id != NO_PASSAGE) {
            let at = self.find(slot.id);
            if let Some(place) = self.slots.get_mut(at) {
                *place = slot;
            }
            if slot.count > 0 {
                self.counted.extend(u32::try_from(at));
            }
        }
    }

    /// Removes these passages, which were counted once too often.
    pub(super) fn take_back(&mut self, passages: &[PassageNumber]) {
        if passages.is_empty() {
            return;
        }
        let mut often = vec![0; lock(&self.contents).passages.len()];
        for number in passages {
            if let Some(often) = often.get_mut(number.0 as usize) {
                *often += 1;
            }
        }
        // Slots without a count keep their place, so that probing still finds the others.
        for at in &self.counted {
            let Some(slot) = self.slots.get_mut(*at as usize) else { continue };
            if let Some(often) = often.get(slot.number.0 as usize) {
                slot.count = slot.count.saturating_sub(*often);
            }
        }
        let Self { slots, counted, .. } = self;
        counted.retain(|at| slots.get(*at as usize).is_some_and(|slot| slot.count > 0));
    }

    /// The blocks of the passages.
    pub(super) fn contents(&self) -> MutexGuard<'_, Contents> {
        lock(&self.contents)
    }

    /// The counts since the last call.
    pub(super) fn take_counts(&mut self) -> PassageCounts {
        let mut counts = Vec::with_capacity(self.counted.len());
        for at in self.counted.drain(..) {
            if let Some(slot) = self.slots.get_mut(at as usize) {
                counts.push((slot.number, std::mem::take(&mut slot.count)));
            }
        }
        PassageCounts { counts, contents: Arc::clone(&self.contents) }
    }

    /// The table without counts, for the next part; a table that is too large is forgotten.
    pub(super) fn lend(&mut self) -> Self {
        let lent = std::mem::take(self);
        let is_full = lock(&lent.contents).blocks.len() >= MOST_BLOCKS;
        if is_full { Self::default() } else { lent }
    }
}

impl PassageCounts {
    /// Adds the counts that were not taken.
    pub(super) fn or(self, left: &mut PassageCounter) -> Self {
        if left.counted.is_empty() { self } else { left.take_counts() }
    }

    /// The blocks of the passages.
    pub(super) fn contents(&self) -> MutexGuard<'_, Contents> {
        lock(&self.contents)
    }
}

impl PassageSums {
    /// Adds the counts of the next part, less one for each of `once`. Excess passages are counted as blocks; returns the number
    /// of their instructions.
    pub(super) fn add(
        &mut self,
        part: &PassageCounts,
        once: impl Iterator<Item = PassageNumber>,
        blocks: &mut BlockCounter,
    ) -> u64 {
        // Without counts there is nothing to subtract either.
        if part.counts.is_empty() {
            return 0;
        }
        let is_same = |sums: &Sums| Arc::ptr_eq(&sums.contents, &part.contents);
        let (mut sums, mut instructions) = (Sums::default(), 0);
        if let Some(at) = self.0.iter().position(is_same) {
            sums = self.0.remove(at);
        } else {
            sums.contents = Arc::clone(&part.contents);
            if self.0.len() >= MOST_SUMS {
                instructions = self.0.remove(0).count_blocks(blocks);
            }
        }
        for (number, count) in &part.counts {
            let at = number.0 as usize;
            if sums.counts.len() <= at {
                sums.counts.resize(at + 1, 0);
            }
            if let Some(sum) = sums.counts.get_mut(at) {
                *sum += count;
            }
        }
        for number in once {
            if let Some(sum) = sums.counts.get_mut(number.0 as usize) {
                *sum = sum.saturating_sub(1);
            }
        }
        // The sums that were added to last stay longest.
        self.0.push(sums);
        instructions
    }

    /// Counts the blocks of all passages; returns the number of their instructions.
    pub(super) fn count_blocks(self, blocks: &mut BlockCounter) -> u64 {
        self.0.into_iter().map(|sums| sums.count_blocks(blocks)).sum()
    }
}

impl Sums {
    fn count_blocks(self, blocks: &mut BlockCounter) -> u64 {
        let contents = lock(&self.contents);
        let mut instructions = 0;
        for (number, count) in (0..).map(PassageNumber).zip(self.counts).filter(|(_, count)| *count > 0) {
            for block in contents.blocks_in(number) {
                blocks.add(block.once.block, count);
                instructions += count * u64::from(block.once.instructions);
            }
        }
        instructions
    }
}

impl Contents {
    fn add(&mut self, passage: &Passage<'_>) -> Option<PassageNumber> {
        let number = PassageNumber(u32::try_from(self.passages.len()).ok()?);
        let first = u32::try_from(self.blocks.len()).ok()?;
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
        self.passages.push(Content { first, blocks: passage.totals().blocks });
        Some(number)
    }

    fn blocks_in(&self, passage: PassageNumber) -> &[BlockOfPassage] {
        let Some(Content { first, blocks }) = self.passages.get(passage.0 as usize) else { return &[] };
        self.blocks.get(*first as usize..(first + blocks) as usize).unwrap_or_default()
    }

    /// The blocks of a passage that began at `at`, each with the start of the trace that proves it.
    pub(super) fn blocks_of(
        &self,
        passage: PassageOnce,
        at: StreamOffset,
    ) -> impl Iterator<Item = (StreamOffset, Once)> + '_ {
        self.blocks_in(passage.number).iter().map(move |block| {
            let waited = if block.offset < 0 { passage.waited.into() } else { 0 };
            (StreamOffset((at.0 - waited).wrapping_add_signed(block.offset)), block.once)
        })
    }
}

fn lock(contents: &Shared) -> MutexGuard<'_, Contents> {
    // A panic while adding leaves the entries intact.
    contents.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A passage's hash, before reduction to the table's length.
#[inline(always)]
const fn stirred(id: u64) -> usize {
    (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::Conditions;
    use crate::samples::{block, taken};

    /// Passages of a block each, in a part of its own: the first with a count of `often`, the next with one more.
    fn part(first: u32, often: u64) -> PassageCounts {
        let mut contents = Contents::default();
        let mut counts = Vec::new();
        for index in 0..3 {
            let Element::Block(block) = block(first + index * 4, first + index * 4 + 4, taken()) else {
                unreachable!("block() makes a block")
            };
            let once = Once { block: Packed::of(&block), instructions: 2 };
            contents.blocks.push(BlockOfPassage { once, offset: 0 });
            contents.passages.push(Content { first: index, blocks: 1 });
            counts.push((PassageNumber(index), often + u64::from(index)));
        }
        PassageCounts { counts, contents: Arc::new(Mutex::new(contents)) }
    }

    #[test]
    fn sums_are_the_same_however_many_threads_began_anew() {
        let parts = (0..10_u32).map(|at| part(0x100 + at % 4 * 0x10, u64::from(at) + 1)).collect::<Vec<_>>();
        let order = [0, 1, 2, 3, 0, 4, 5, 6, 1, 7, 8, 9, 0, 2, 9];
        let (mut sums, mut blocks, mut instructions) = (PassageSums::default(), BlockCounter::default(), 0);
        let (mut expected, mut expected_instructions) = (BlockCounter::default(), 0);
        for part in order.map(|at| &parts[at]) {
            let once = std::iter::once(PassageNumber(1));
            instructions += sums.add(part, once, &mut blocks);
            assert!(sums.0.len() <= MOST_SUMS);
            for (number, count) in &part.counts {
                let count = count - u64::from(number.0 == 1);
                let known = part.contents();
                for block in known.blocks_in(*number) {
                    expected.add(block.once.block, count);
                    expected_instructions += count * 2;
                }
            }
        }
        instructions += sums.count_blocks(&mut blocks);
        assert_eq!(instructions, expected_instructions);
        assert_eq!(blocks.finish(Conditions::OfEvery), expected.finish(Conditions::OfEvery));
    }
}

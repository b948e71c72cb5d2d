//! Windows by situation, and their meanings.

use alloc::vec::Vec;
use core::hash::Hash;

use crate::flow::compact::{Compact, Elements};
use crate::flow::passage::Waited;
use crate::flow::state::StackEffects;
use crate::flow::{Element, Passage, PassageId, Totals};
use crate::span::StreamOffset;

use super::intern::Interned;

/// The number of a state, valid up to the next [`Memo::forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) struct SituationId(u32);

impl SituationId {
    /// The same state, with or without W atoms before the next instruction. The number and place of the atoms
    /// are not part of the state: see [`Passage::waited`](crate::flow::Passage).
    #[inline]
    pub(in crate::source) const fn with_wait_cycles(self, waits: bool) -> Self {
        Self(self.0 & !Self::WAIT_CYCLES | if waits { Self::WAIT_CYCLES } else { 0 })
    }

    /// Whether W atoms come before the next instruction.
    #[inline]
    pub(in crate::source) const fn waits(self) -> bool {
        self.0 & Self::WAIT_CYCLES != 0
    }

    const WAIT_CYCLES: u32 = 1 << 31;
}

/// The part of [`Entry::others`] that is a number of bits.
const WHOLE_BYTES: u8 = !0b111;

/// A state and the window after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) struct WindowKey {
    /// The window's bytes; those after it are zero.
    word: u64,
    state: SituationId,
    /// See [`Entry::others`].
    others: u8,
}

/// The meaning of a window. Two entries fill a cache line.
#[derive(Clone, Copy, Debug)]
pub(in crate::source) struct Entry {
    word: u64,
    state: SituationId,
    pub(in crate::source) next: SituationId,
    first_element: u32,
    instructions: u16,
    /// The number of the window's [`StackEffects`]; 0 for none.
    effects: u16,
    /// The entry that last followed this one: a guess at the next.
    successor: EntryId,
    elements: u8,
    pub(in crate::source) blocks: u8,
    gaps: u8,
    pub(in crate::source) packets: u8,
    /// The number of bits of the word outside the window, a multiple of 8; plus 1 if the word stands for nine
    /// bytes.
    others: u8,
    /// The offset from the window's start of the last element with bytes of its own; `NOWHERE` without one.
    /// Consumers that only count need not read the elements, which are seldom in the cache.
    last: i8,
}

/// The number of an entry, valid up to the next [`Memo::forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) struct EntryId(u16);

/// An entry that was found, and its effects on the stacks, if any.
#[derive(Clone, Copy, Debug)]
pub(in crate::source) struct Found<'a> {
    pub(in crate::source) id: EntryId,
    pub(in crate::source) entry: &'a Entry,
    pub(in crate::source) effects: Option<&'a StackEffects>,
}

/// The meaning of a decoded window.
#[derive(Clone, Debug)]
pub(in crate::source) struct Meaning<'a> {
    pub(in crate::source) next: SituationId,
    pub(in crate::source) effects: StackEffects,
    /// The elements, with spans relative to the window's start.
    pub(in crate::source) elements: &'a [Element],
    pub(in crate::source) packets: u8,
}

/// The memo of one source.
#[derive(Clone, Debug)]
pub(in crate::source) struct Memo<S> {
    states: Interned<S>,
    /// Number 0 stands for no effects.
    effects: Interned<StackEffects>,
    /// The elements of all entries.
    elements: Vec<Compact>,
    /// The elements that [`Compact::Other`] numbers.
    others: Vec<Element>,
    /// The entries in the order of learning: windows learned in a row usually recur in that order.
    entries: Vec<Entry>,
    /// The entries' numbers by hash, with [`FREE`] in unused slots. The length is a power of two, at least
    /// twice the number of entries; 0 before the first entry.
    table: Vec<u16>,
    /// The entry that was found or learned last.
    previous: EntryId,
    /// The number of calls of [`Memo::forget`].
    generation: u32,
}

/// The most entries: a compiler's windows, 26,000 with the states they are met in, and those that differ in stack
/// effects. Tests use a small memo.
const MOST_ENTRIES: usize = if cfg!(test) { 24 } else { FREE as usize };

/// The most states.
const MOST_STATES: usize = if cfg!(test) { 48 } else { 1 << 15 };

/// The most elements (10 MB), and the most that are not short blocks (1 MB).
const MOST_ELEMENTS: usize = 1 << 19;
const MOST_OTHERS: usize = 1 << 14;

/// The number of slots that an entry can be in. The bound keeps lookups fast if many entries, which differ in
/// their stack effects, share a key.
const PROBES: usize = if cfg!(test) { 2 } else { 8 };

/// No entry: a table never has this number.
const FREE: u16 = u16::MAX;

/// The number of entries that the first table has room for. The table starts small so that short captures do
/// not pay for a large one.
const FIRST_TABLE: usize = if cfg!(test) { 4 } else { 1 << 10 };

impl<S: Eq + Hash> Memo<S> {
    pub(in crate::source) fn new() -> Self {
        Self {
            states: Interned::new(),
            effects: Interned::new(),
            elements: Vec::new(),
            others: Vec::new(),
            entries: Vec::new(),
            table: Vec::new(),
            previous: EntryId(0),
            generation: 0,
        }
    }

    /// Whether the memo must [forget](Memo::forget) before it can cache more.
    pub(in crate::source) fn is_full(&self) -> bool {
        self.entries.len() >= MOST_ENTRIES
            || self.elements.len() >= MOST_ELEMENTS
            || self.others.len() >= MOST_OTHERS
            || self.states.len() >= MOST_STATES
    }

    /// Forgets everything.
    pub(in crate::source) fn forget(&mut self) {
        self.states.clear();
        self.effects.clear();
        self.elements.clear();
        self.others.clear();
        self.entries.clear();
        self.table.fill(FREE);
        self.previous = EntryId(0);
        self.generation = self.generation.wrapping_add(1);
    }

    /// The cached windows: their bytes as a word, and the number of bytes.
    #[cfg(test)]
    pub(in crate::source) fn windows(&self) -> impl Iterator<Item = (u64, usize)> {
        self.entries.iter().map(|entry| (entry.word, entry.bytes()))
    }

    /// The number of a state.
    pub(in crate::source) fn number(&mut self, state: S) -> SituationId {
        SituationId(self.states.number(state))
    }

    /// The state with this number.
    pub(in crate::source) fn state(&self, id: SituationId) -> Option<&S> {
        self.states.get(id.with_wait_cycles(false).0)
    }

    /// The entry that last followed the previous one, if it applies again: the state is the same, `word`
    /// begins with the entry's window, and the stacks allow the entry's effects. The window may be shorter
    /// than the one that `word` has; the meaning is the same.
    #[inline(always)]
    pub(in crate::source) fn successor(
        &self,
        word: u64,
        state: SituationId,
        allows: impl Fn(&StackEffects) -> bool,
    ) -> Option<Found<'_>> {
        let id = self.entries.get(usize::from(self.previous.0))?.successor;
        let entry = self.entries.get(usize::from(id.0))?;
        let comes = entry.state == state && (word ^ entry.word) << (entry.others & WHOLE_BYTES) == 0;
        if comes { self.allowed(id, entry, allows) } else { None }
    }

    /// The entry, if the stacks allow its effects.
    #[inline(always)]
    fn allowed<'a>(
        &'a self,
        id: EntryId,
        entry: &'a Entry,
        allows: impl Fn(&StackEffects) -> bool,
    ) -> Option<Found<'a>> {
        let effects = self.effects_of(entry);
        effects.is_none_or(allows).then_some(Found { id, entry, effects })
    }

    /// The entry of a window; `allows` states whether the stacks allow its effects.
    #[inline(always)]
    pub(in crate::source) fn find(
        &self,
        key: WindowKey,
        allows: impl Fn(&StackEffects) -> bool,
    ) -> Option<Found<'_>> {
        let number = *self.table.get(key.slot(self.table.len()))?;
        let first = self.entries.get(usize::from(number))?;
        let found = if first.key() == key { self.allowed(EntryId(number), first, &allows) } else { None };
        found.or_else(|| self.find_after_first(key, &allows))
    }

    /// Searches the other slots.
    #[inline(never)]
    fn find_after_first(&self, key: WindowKey, allows: &impl Fn(&StackEffects) -> bool) -> Option<Found<'_>> {
        let numbers = key.slots(self.table.len()).skip(1).map_while(|slot| self.table.get(slot));
        numbers.take_while(|&&number| number != FREE).find_map(|&number| {
            let entry = self.entries.get(usize::from(number))?;
            if entry.key() == key { self.allowed(EntryId(number), entry, allows) } else { None }
        })
    }

    /// Notes that this entry followed the previous one.
    #[inline(always)]
    pub(in crate::source) fn came(&mut self, id: EntryId) {
        if let Some(previous) = self.entries.get_mut(usize::from(self.previous.0)) {
            previous.successor = id;
        }
        self.previous = id;
    }

    /// The entry's effects on the stacks, if any.
    #[inline]
    fn effects_of(&self, entry: &Entry) -> Option<&StackEffects> {
        if entry.effects == 0 { None } else { self.effects.get(u32::from(entry.effects)) }
    }

    /// The entry's elements, for a window that starts at `origin`.
    #[inline]
    pub(in crate::source) fn passage(
        &self,
        entry: &Entry,
        origin: StreamOffset,
        waited: Option<Waited>,
    ) -> Passage<'_> {
        Passage {
            // Unique: the elements keep their place for the whole generation.
            id: PassageId(u64::from(self.generation) << 32 | u64::from(entry.first_element)),
            elements: Elements {
                compact: &self.elements,
                others: &self.others,
                first: entry.first_element,
                count: entry.elements,
            },
            origin,
            totals: entry.totals(),
            last: entry.last(origin),
            waited,
        }
    }

    /// Caches the meaning of a window, if there is room.
    pub(in crate::source) fn insert(&mut self, key: WindowKey, meaning: &Meaning<'_>) {
        if self.is_full() {
            return;
        }
        if let (Some(entry), Ok(number)) = (self.entry(key, meaning), u16::try_from(self.entries.len())) {
            let Self { elements, others, .. } = self;
            elements.extend(meaning.elements.iter().map(|element| Compact::of(element, others)));
            self.entries.push(entry);
            if self.entries.len() * 2 > self.table.len() {
                self.grow();
            } else {
                self.place(number);
            }
            self.came(EntryId(number));
        }
    }

    /// The entry; `None` if the meaning does not fit into one.
    fn entry(&mut self, key: WindowKey, meaning: &Meaning<'_>) -> Option<Entry> {
        let Totals { blocks, instructions, gaps } = Totals::of(meaning.elements);
        // Number 0 stands for no effects, as most windows have.
        if self.effects.len() == 0 {
            self.effects.number(StackEffects::default());
        }
        let nothing = meaning.effects == StackEffects::default();
        let effects = if nothing { 0 } else { self.effects.number(meaning.effects) };
        Some(Entry {
            word: key.word,
            state: key.state,
            next: meaning.next,
            first_element: u32::try_from(self.elements.len()).ok()?,
            instructions: u16::try_from(instructions).ok()?,
            effects: u16::try_from(effects).ok()?,
            successor: EntryId(FREE),
            elements: u8::try_from(meaning.elements.len()).ok()?,
            blocks: u8::try_from(blocks).ok()?,
            gaps: u8::try_from(gaps).ok()?,
            packets: meaning.packets,
            others: key.others,
            last: match meaning.elements.iter().rev().map(Element::span).find(|span| span.start != span.end) {
                Some(span) => {
                    i8::try_from(span.start.0.cast_signed()).ok().filter(|&last| last != Entry::NOWHERE)?
                }
                None => Entry::NOWHERE,
            },
        })
    }

    /// Puts an entry's number into the table: into its first free slot, or into its first slot if none is
    /// free.
    fn place(&mut self, number: u16) {
        let Some(entry) = self.entries.get(usize::from(number)) else { return };
        let mut slots = entry.key().slots(self.table.len());
        let free = slots.clone().find(|&slot| self.table.get(slot) == Some(&FREE));
        if let Some(place) = free.or(slots.next()).and_then(|slot| self.table.get_mut(slot)) {
            *place = number;
        }
    }

    fn grow(&mut self) {
        self.table = alloc::vec![FREE; (self.table.len() * 2).max(2 * FIRST_TABLE)];
        (0..).take(self.entries.len()).for_each(|number| self.place(number));
    }
}

impl Entry {
    const NOWHERE: i8 = i8::MIN;

    #[inline]
    const fn key(&self) -> WindowKey {
        WindowKey { word: self.word, state: self.state, others: self.others }
    }

    /// The number of bytes in the entry's window.
    #[inline]
    pub(in crate::source) const fn bytes(&self) -> usize {
        self.key().bytes()
    }

    /// The start of the entry's last element with bytes of its own, for a window that starts at `origin`.
    #[inline]
    fn last(&self, origin: StreamOffset) -> Option<StreamOffset> {
        (self.last != Self::NOWHERE).then(|| StreamOffset(origin.0.wrapping_add_signed(self.last.into())))
    }

    /// The totals of the entry's elements.
    #[inline]
    fn totals(&self) -> Totals {
        Totals {
            blocks: u32::from(self.blocks),
            instructions: u32::from(self.instructions),
            gaps: u32::from(self.gaps),
        }
    }
}

impl WindowKey {
    /// The key of a word's first bytes, those set in `mask`; `None` without any.
    #[inline]
    pub(in crate::source) fn new(word: u64, mask: u64, state: SituationId) -> Option<Self> {
        let others = u8::try_from(mask.leading_zeros()).ok().filter(|&others| others < 64)?;
        Some(Self { word: word & mask, state, others })
    }

    /// The same key, of a word that stands for nine bytes if `is_nine`.
    #[inline]
    pub(in crate::source) const fn nine_bytes(self, is_nine: bool) -> Self {
        Self { others: self.others | is_nine as u8, ..self }
    }

    /// The number of bytes in the window.
    #[inline]
    pub(in crate::source) const fn bytes(self) -> usize {
        8 - self.others as usize / 8 + (self.others & !WHOLE_BYTES) as usize
    }

    /// The key's first slot in a table of this length.
    ///
    /// The state is known last, so it is only XORed in. State numbers are small and distinguish states as
    /// well as a hash would.
    #[inline]
    fn slot(self, length: usize) -> usize {
        let word = self.word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (usize::try_from(word).unwrap_or(0) ^ self.state.0 as usize) & length.wrapping_sub(1)
    }

    /// All slots that the key can be in.
    fn slots(self, length: usize) -> impl Iterator<Item = usize> + Clone {
        let first = self.slot(length);
        (first..first + PROBES).map(move |slot| slot & length.wrapping_sub(1))
    }
}

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
    /// The state with W atoms before the next instruction, or without. An entry with them says nothing of how many they are
    /// and where they stood: see [`Passage::waited`](crate::flow::Passage).
    #[inline]
    pub(in crate::source) const fn with_wait_cycles(self, waits: bool) -> Self {
        Self(self.0 & !Self::WAIT_CYCLES | if waits { Self::WAIT_CYCLES } else { 0 })
    }

    /// Whether it is one with them.
    #[inline]
    pub(in crate::source) const fn waits(self) -> bool {
        self.0 & Self::WAIT_CYCLES != 0
    }

    const WAIT_CYCLES: u32 = 1 << 31;
}

/// What of [`Entry::others`] says how many bits they are.
const WHOLE_BYTES: u8 = !0b111;

/// A state and the window before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) struct WindowKey {
    /// The window's bytes; those after it are zero.
    word: u64,
    state: SituationId,
    /// See [`Entry::others`].
    others: u8,
}

/// What a window meant. Two of them fill a line of the cache.
#[derive(Clone, Copy, Debug)]
pub(in crate::source) struct Entry {
    word: u64,
    state: SituationId,
    pub(in crate::source) next: SituationId,
    first_element: u32,
    instructions: u16,
    /// The number of its [`StackEffects`]; 0 for none at all.
    effects: u16,
    /// The entry that came after it the last time. It is a guess.
    successor: EntryId,
    elements: u8,
    pub(in crate::source) blocks: u8,
    gaps: u8,
    pub(in crate::source) packets: u8,
    /// How many bits of a word are not the window's: a multiple of 8, and 1 more if the word stands for nine bytes.
    others: u8,
    /// How far after the window's start the last element with bytes of its own begins; `NOWHERE` without one. Whoever
    /// only counts need not look at the elements for it, which are seldom in the cache.
    last: i8,
}

/// The number of an entry, valid up to the next [`Memo::forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) struct EntryId(u16);

/// An entry that was found, and its changes of the stacks; `None` if it changes nothing.
#[derive(Clone, Copy, Debug)]
pub(in crate::source) struct Found<'a> {
    pub(in crate::source) id: EntryId,
    pub(in crate::source) entry: &'a Entry,
    pub(in crate::source) effects: Option<&'a StackEffects>,
}

/// What a window was found to mean.
#[derive(Clone, Debug)]
pub(in crate::source) struct Meaning<'a> {
    pub(in crate::source) next: SituationId,
    pub(in crate::source) effects: StackEffects,
    /// Their spans are relative to the window's start.
    pub(in crate::source) elements: &'a [Element],
    pub(in crate::source) packets: u8,
}

/// The memo of one source.
#[derive(Clone, Debug)]
pub(in crate::source) struct Memo<S> {
    states: Interned<S>,
    /// Number 0 is none.
    effects: Interned<StackEffects>,
    /// The elements of all entries.
    elements: Vec<Compact>,
    /// Those that [`Compact::Other`] numbers.
    others: Vec<Element>,
    /// In the order in which they were learned: windows learned in a row usually occur in that order again.
    entries: Vec<Entry>,
    /// Their numbers by hash, and [`FREE`] between them; a power of two long, at most half full, and none while empty.
    table: Vec<u16>,
    /// The entry that was found or learned last.
    previous: EntryId,
    /// How often it has forgotten.
    generation: u32,
}

/// How many entries are kept; tests fill less.
const MOST_ENTRIES: usize = if cfg!(test) { 24 } else { FREE as usize };

/// How many states are kept.
const MOST_STATES: usize = if cfg!(test) { 48 } else { 1 << 15 };

/// How many elements are kept: 10 MB, and how many that are not short blocks: 1 MB.
const MOST_ELEMENTS: usize = 1 << 19;
const MOST_OTHERS: usize = 1 << 14;

/// How many slots an entry can stand in. Keys that many entries share, each taking other places from the stacks, must not
/// make looking one up slow.
const PROBES: usize = if cfg!(test) { 2 } else { 8 };

/// No entry: a table never has this number.
const FREE: u16 = u16::MAX;

/// How many entries the first table has room for. A short capture should not pay for a long one's.
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

    /// Whether it has to [forget](Memo::forget) before it can remember more.
    pub(in crate::source) fn is_full(&self) -> bool {
        self.entries.len() >= MOST_ENTRIES
            || self.elements.len() >= MOST_ELEMENTS
            || self.others.len() >= MOST_OTHERS
            || self.states.len() >= MOST_STATES
    }

    /// Forgets all.
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

    /// The windows that are remembered: their bytes as a word, and how many they are.
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

    /// What came after the entry found last, if it comes again: in this state, with a window that these bytes begin with, and
    /// with stacks that allow what it does to them. The window may be a shorter one than the bytes have, which means the same.
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

    /// The entry, if the stacks allow what it does to them.
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

    /// What is known of a window; `allows` says whether the stacks allow what it does to them.
    #[inline(always)]
    pub(in crate::source) fn find(
        &self,
        key: WindowKey,
        allows: impl Fn(&StackEffects) -> bool,
    ) -> Option<Found<'_>> {
        let number = *self.table.get(key.slot(self.table.len()))?;
        let first = self.entries.get(usize::from(number))?;
        let found = if first.key() == key { self.allowed(EntryId(number), first, &allows) } else { None };
        found.or_else(|| self.find_behind(key, &allows))
    }

    /// The same, in the other slots.
    #[inline(never)]
    fn find_behind(&self, key: WindowKey, allows: &impl Fn(&StackEffects) -> bool) -> Option<Found<'_>> {
        let numbers = key.slots(self.table.len()).skip(1).map_while(|slot| self.table.get(slot));
        numbers.take_while(|&&number| number != FREE).find_map(|&number| {
            let entry = self.entries.get(usize::from(number))?;
            if entry.key() == key { self.allowed(EntryId(number), entry, allows) } else { None }
        })
    }

    /// Notes that this entry came after the one that came last.
    #[inline(always)]
    pub(in crate::source) fn came(&mut self, id: EntryId) {
        if let Some(previous) = self.entries.get_mut(usize::from(self.previous.0)) {
            previous.successor = id;
        }
        self.previous = id;
    }

    /// What it does to the stacks; `None` for nothing.
    #[inline]
    fn effects_of(&self, entry: &Entry) -> Option<&StackEffects> {
        if entry.effects == 0 { None } else { self.effects.get(u32::from(entry.effects)) }
    }

    /// The elements that came, for a window that starts at `origin`.
    #[inline]
    pub(in crate::source) fn passage(
        &self,
        entry: &Entry,
        origin: StreamOffset,
        waited: Option<Waited>,
    ) -> Passage<'_> {
        Passage {
            // No others are kept where they are before all is forgotten.
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

    /// Remembers what a window means. Nothing is done where there is no room.
    pub(in crate::source) fn insert(&mut self, key: WindowKey, meaning: &Meaning<'_>) {
        if self.is_full() {
            return;
        }
        if let (Some(entry), Ok(number)) = (self.entry(key, meaning), u16::try_from(self.entries.len())) {
            let Self { elements, others, .. } = self;
            elements.extend(meaning.elements.iter().map(|element| {
                Compact::of(element, |other| {
                    others.push(*other);
                    u32::try_from(others.len() - 1).unwrap_or(u32::MAX)
                })
            }));
            self.entries.push(entry);
            if self.entries.len() * 2 > self.table.len() {
                self.grow();
            } else {
                self.place(number);
            }
            self.came(EntryId(number));
        }
    }

    /// The entry; `None` if it is too much for one.
    fn entry(&mut self, key: WindowKey, meaning: &Meaning<'_>) -> Option<Entry> {
        let Totals { blocks, instructions, gaps } = Totals::of(meaning.elements);
        // Most windows have none, and number 0 is that.
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

    /// Puts an entry's number into the table: into the first free slot of its own, or else into the first one.
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

    /// How many bytes its window has.
    #[inline]
    pub(in crate::source) const fn bytes(&self) -> usize {
        self.key().bytes()
    }

    /// Where the last of its elements that has bytes of its own begins, for a window that starts at `origin`.
    #[inline]
    fn last(&self, origin: StreamOffset) -> Option<StreamOffset> {
        (self.last != Self::NOWHERE).then(|| StreamOffset(origin.0.wrapping_add_signed(self.last.into())))
    }

    /// How much there is in its elements.
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
    /// That of the first bytes of a word, those that are set in `mask`; `None` without any.
    #[inline]
    pub(in crate::source) fn new(word: u64, mask: u64, state: SituationId) -> Option<Self> {
        let others = u8::try_from(mask.leading_zeros()).ok().filter(|&others| others < 64)?;
        Some(Self { word: word & mask, state, others })
    }

    /// The same, of a word that stands for nine bytes.
    #[inline]
    pub(in crate::source) const fn nine_bytes(self, is_nine: bool) -> Self {
        Self { others: self.others | is_nine as u8, ..self }
    }

    /// How many bytes the window has.
    #[inline]
    pub(in crate::source) const fn bytes(self) -> usize {
        8 - self.others as usize / 8 + (self.others & !WHOLE_BYTES) as usize
    }

    /// Where to look for it first in a table of this length.
    ///
    /// The state is known last, so that little is done with it: states have small numbers, and one is distinguished from another
    /// as well as words are by their hash.
    #[inline]
    fn slot(self, length: usize) -> usize {
        let word = self.word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (usize::try_from(word).unwrap_or(0) ^ self.state.0 as usize) & length.wrapping_sub(1)
    }

    /// All slots that it can stand in.
    fn slots(self, length: usize) -> impl Iterator<Item = usize> + Clone {
        let first = self.slot(length);
        (first..first + PROBES).map(move |slot| slot & length.wrapping_sub(1))
    }
}

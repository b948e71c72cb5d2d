//! What bytes meant the last time.
//!
//! ```text
//! state:  what the next plain packets depend on, without what they leave alone: the decoder's base for addresses, what
//!         the lowering holds back, the place in the graph; spans in it are relative to the next byte. Numbered.
//! window: the next bytes up to and including the next address, at most eight
//! (state, window) → the elements that came, the next state, and what was done to the stacks of places to return to
//! ```
//!
//! A window whose pair is known costs one look-up, however many packets and blocks it holds. One that is not is decoded
//! packet by packet, and remembered if all of its packets were plain: then the same state and bytes always give the same
//! again, because nothing else went into it. What is done to the stacks is no part of the state, or a handler would be
//! known only for each place that it was entered from: an entry says which places it takes from the top, and counts only
//! where they lie there.
//!
//! Memory is bounded: a memo that is full starts anew.

use alloc::vec::Vec;
use core::hash::Hash;

use crate::flow::passage::Waited;
use crate::flow::state::Exchanges;
use crate::flow::{Element, Passage, PassageId, Totals};
use crate::span::StreamOffset;

use super::intern::Interned;

/// The number of a state, valid up to the next [`Memo::forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateId(u32);

impl StateId {
    /// The state with cycles that the next instruction waits for, or without. An entry with them says nothing of how many they
    /// are and where they stood: see [`Passage::waited`](crate::flow::Passage).
    #[inline]
    pub(super) const fn with_waits(self, waits: bool) -> Self {
        Self(self.0 & !Self::WAITS | if waits { Self::WAITS } else { 0 })
    }

    const WAITS: u32 = 1 << 31;
}

/// A state and the window in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// The window's bytes, of which the first one is not zero; those behind it are. That says as well how many there are:
    /// a window that ends with a zero byte is a whole packet, and goes on behind what any shorter window is.
    pub(super) word: u64,
    pub(super) state: StateId,
}

/// What a window meant. Two of them fill a line of the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Zero while the entry is [free](Entry::FREE).
    word: u64,
    state: StateId,
    pub(super) next: StateId,
    instructions: u32,
    first_element: u32,
    /// The number of its [`Exchanges`]; 0 for none at all.
    exchanges: u16,
    elements: u8,
    blocks: u8,
    gaps: u8,
    pub(super) packets: u8,
    /// How far behind the window's start the last element with bytes of its own begins; `NOWHERE` without one. Whoever
    /// only counts need not look at the elements for it, which are seldom in the cache.
    last: i16,
}

/// What a window was found to mean.
#[derive(Clone, Debug)]
pub(super) struct Meaning<'a> {
    pub(super) next: StateId,
    pub(super) exchanges: Exchanges,
    /// Their spans are relative to the window's start.
    pub(super) elements: &'a [Element],
    pub(super) packets: u8,
}

/// The memo of one source.
#[derive(Clone, Debug)]
pub(super) struct Memo<S> {
    states: Interned<S>,
    /// Number 0 is no exchange.
    exchanges: Interned<Exchanges>,
    elements: Vec<Element>,
    /// By hash; a power of two long, at most half full, and none while empty.
    table: Vec<Entry>,
    entries: usize,
    /// How often it has forgotten.
    generation: u32,
}

/// How many entries are kept. With their elements they take a few MB; tests fill less.
const MOST_ENTRIES: usize = if cfg!(test) { 24 } else { 1 << 14 };

/// How many elements are kept.
const MOST_ELEMENTS: usize = 1 << 16;

/// How many slots an entry can stand in. Keys that many entries share, each taking other places from the stacks, must not
/// make looking one up slow.
const PROBES: usize = if cfg!(test) { 2 } else { 8 };

/// How many entries the first table has room for. A short capture should not pay for a long one's.
const FIRST_TABLE: usize = if cfg!(test) { 4 } else { 1 << 10 };

impl<S: Eq + Hash> Memo<S> {
    pub(super) fn new() -> Self {
        Self {
            states: Interned::new(),
            exchanges: Interned::new(),
            elements: Vec::new(),
            table: Vec::new(),
            entries: 0,
            generation: 0,
        }
    }

    /// Whether it has to [forget](Memo::forget) before it can remember more.
    pub(super) fn is_full(&self) -> bool {
        self.entries >= MOST_ENTRIES
            || self.elements.len() >= MOST_ELEMENTS
            || self.states.len() >= 2 * MOST_ENTRIES
    }

    /// Forgets all.
    pub(super) fn forget(&mut self) {
        self.states.clear();
        self.exchanges.clear();
        self.elements.clear();
        self.table.fill(Entry::FREE);
        self.entries = 0;
        self.generation = self.generation.wrapping_add(1);
    }

    /// The number of a state.
    pub(super) fn number(&mut self, state: S) -> StateId {
        StateId(self.states.number(state))
    }

    /// The state with this number.
    pub(super) fn state(&self, id: StateId) -> Option<&S> {
        self.states.get(id.with_waits(false).0)
    }

    /// What is known of a window; `allows` says whether the stacks allow what it does to them.
    #[inline(always)]
    pub(super) fn find(&self, key: Key, allows: impl Fn(&Exchanges) -> bool) -> Option<&Entry> {
        let first = self.table.get(key.slot(self.table.len()))?;
        if first.key() == key && self.exchanges_of(first).is_none_or(&allows) {
            Some(first)
        } else {
            self.find_behind(first, key, &allows)
        }
    }

    /// The same, in the other slots.
    #[inline(never)]
    fn find_behind(&self, first: &Entry, key: Key, allows: &impl Fn(&Exchanges) -> bool) -> Option<&Entry> {
        if first.is_free() {
            return None;
        }
        let fits = |entry: &&Entry| entry.key() == key && self.exchanges_of(entry).is_none_or(allows);
        let others = key.slots(self.table.len()).skip(1).map_while(|slot| self.table.get(slot));
        { others }.take_while(|entry| !entry.is_free()).find(fits)
    }

    /// What it does to the stacks; `None` for nothing.
    #[inline]
    pub(super) fn exchanges_of(&self, entry: &Entry) -> Option<&Exchanges> {
        if entry.exchanges == 0 { None } else { self.exchanges.get(u32::from(entry.exchanges)) }
    }

    /// The elements that came, for a window that starts at `origin`.
    #[inline]
    pub(super) fn passage(&self, entry: &Entry, origin: StreamOffset, waited: Option<Waited>) -> Passage<'_> {
        Passage {
            // No others are kept where they are before all is forgotten.
            id: PassageId(u64::from(self.generation) << 32 | u64::from(entry.first_element)),
            all: &self.elements,
            first: entry.first_element,
            count: entry.elements,
            origin,
            totals: entry.totals(),
            last: entry.last(origin),
            waited,
        }
    }

    /// Remembers what a window means. Nothing is done where there is no room.
    pub(super) fn insert(&mut self, key: Key, meaning: &Meaning<'_>) {
        if self.is_full() {
            return;
        }
        if let Some(entry) = self.entry(key, meaning) {
            self.elements.extend_from_slice(meaning.elements);
            if self.entries * 2 >= self.table.len() {
                self.grow();
            }
            self.place(entry);
            self.entries += 1;
        }
    }

    /// The entry; `None` where it is too much for one.
    fn entry(&mut self, key: Key, meaning: &Meaning<'_>) -> Option<Entry> {
        let Totals { blocks, instructions, gaps } = Totals::of(meaning.elements);
        // Most windows exchange nothing, and number 0 is that.
        if self.exchanges.len() == 0 {
            self.exchanges.number(Exchanges::default());
        }
        let nothing = meaning.exchanges == Exchanges::default();
        let exchanges = if nothing { 0 } else { self.exchanges.number(meaning.exchanges) };
        Some(Entry {
            word: key.word,
            state: key.state,
            next: meaning.next,
            instructions,
            first_element: u32::try_from(self.elements.len()).ok()?,
            exchanges: u16::try_from(exchanges).ok()?,
            elements: u8::try_from(meaning.elements.len()).ok()?,
            blocks: u8::try_from(blocks).ok()?,
            gaps: u8::try_from(gaps).ok()?,
            packets: meaning.packets,
            last: match meaning.elements.iter().rev().map(Element::span).find(|span| span.start != span.end) {
                Some(span) => {
                    i16::try_from(span.start.0.cast_signed()).ok().filter(|&last| last != Entry::NOWHERE)?
                }
                None => Entry::NOWHERE,
            },
        })
    }

    /// Puts an entry into the table: into the first free slot of its own, or else into the first one.
    fn place(&mut self, entry: Entry) {
        let mut slots = entry.key().slots(self.table.len());
        let free = slots.clone().find(|&slot| self.table.get(slot).is_some_and(Entry::is_free));
        if let Some(place) = free.or(slots.next()).and_then(|slot| self.table.get_mut(slot)) {
            *place = entry;
        }
    }

    fn grow(&mut self) {
        let length = (self.table.len() * 2).max(2 * FIRST_TABLE);
        let old = core::mem::replace(&mut self.table, alloc::vec![Entry::FREE; length]);
        old.into_iter().filter(|entry| !entry.is_free()).for_each(|entry| self.place(entry));
    }
}

impl Entry {
    const FREE: Self = Self {
        word: 0,
        state: StateId(0),
        next: StateId(0),
        instructions: 0,
        first_element: 0,
        exchanges: 0,
        elements: 0,
        blocks: 0,
        gaps: 0,
        packets: 0,
        last: Self::NOWHERE,
    };

    const NOWHERE: i16 = i16::MIN;

    #[inline]
    const fn is_free(&self) -> bool {
        self.word == 0
    }

    #[inline]
    const fn key(&self) -> Key {
        Key { word: self.word, state: self.state }
    }

    /// Where the last of its elements that has bytes of its own begins, for a window that starts at `origin`.
    #[inline]
    fn last(&self, origin: StreamOffset) -> Option<StreamOffset> {
        (self.last != Self::NOWHERE).then(|| StreamOffset(origin.0.wrapping_add_signed(self.last.into())))
    }

    /// How much there is in its elements.
    #[inline]
    fn totals(&self) -> Totals {
        Totals { blocks: u32::from(self.blocks), instructions: self.instructions, gaps: u32::from(self.gaps) }
    }
}

impl Key {
    /// Where to look for it first in a table of this length.
    ///
    /// The state is known last, so that little is done with it: states have small numbers, and one is told from another
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

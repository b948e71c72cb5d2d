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

use crate::flow::state::Exchanges;
use crate::flow::{Element, Totals};

use super::intern::{Interned, mix};

/// The number of a state, valid up to the next [`Memo::forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateId(u32);

/// A state and the window in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// The window's bytes; those behind it are zero.
    pub(super) word: u64,
    pub(super) state: StateId,
    /// How many bytes the window has.
    pub(super) bytes: u32,
}

/// What a window meant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    key: Key,
    pub(super) next: StateId,
    /// The number of its [`Exchanges`]; 0 for none at all.
    exchanges: u32,
    first_element: u32,
    elements: u16,
    pub(super) packets: u16,
    pub(super) totals: Totals,
}

/// What a window was found to mean.
#[derive(Clone, Debug)]
pub(super) struct Meaning<'a> {
    pub(super) next: StateId,
    pub(super) exchanges: Exchanges,
    /// Their spans are relative to the window's start.
    pub(super) elements: &'a [Element],
    pub(super) packets: u16,
}

/// The memo of one source.
#[derive(Clone, Debug)]
pub(super) struct Memo<S> {
    states: Interned<S>,
    /// Number 0 is no exchange.
    exchanges: Interned<Exchanges>,
    elements: Vec<Element>,
    /// By hash; a power of two long, at most half full, and none while empty.
    table: Vec<Option<Entry>>,
    entries: usize,
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
        self.table.fill(None);
        self.entries = 0;
    }

    /// The number of a state.
    pub(super) fn number(&mut self, state: S) -> StateId {
        StateId(self.states.number(state))
    }

    /// The state with this number.
    pub(super) fn state(&self, id: StateId) -> Option<&S> {
        self.states.get(id.0)
    }

    /// What is known of a window; `allows` says whether the stacks allow what it does to them.
    #[inline(always)]
    pub(super) fn find(&self, key: Key, allows: impl Fn(&Exchanges) -> bool) -> Option<&Entry> {
        for slot in key.slots(self.table.len()) {
            let entry = self.table.get(slot)?.as_ref()?;
            if entry.key == key && self.exchanges_of(entry).is_none_or(&allows) {
                return Some(entry);
            }
        }
        None
    }

    /// What it does to the stacks; `None` for nothing.
    #[inline]
    pub(super) fn exchanges_of(&self, entry: &Entry) -> Option<&Exchanges> {
        if entry.exchanges == 0 { None } else { self.exchanges.get(entry.exchanges) }
    }

    /// The elements that came.
    #[inline]
    pub(super) fn elements_of(&self, entry: &Entry) -> &[Element] {
        let first = entry.first_element as usize;
        self.elements.get(first..first + usize::from(entry.elements)).unwrap_or_default()
    }

    /// Remembers what a window means. Nothing is done where there is no room.
    pub(super) fn insert(&mut self, key: Key, meaning: &Meaning<'_>) {
        let (Ok(first_element), Ok(elements)) =
            (u32::try_from(self.elements.len()), u16::try_from(meaning.elements.len()))
        else {
            return;
        };
        if self.is_full() {
            return;
        }
        if self.entries * 2 >= self.table.len() {
            self.grow();
        }
        self.exchanges.number(Exchanges::default());
        let exchanges = self.exchanges.number(meaning.exchanges);
        self.elements.extend_from_slice(meaning.elements);
        self.place(Entry {
            key,
            next: meaning.next,
            exchanges,
            first_element,
            elements,
            packets: meaning.packets,
            totals: Totals::of(meaning.elements),
        });
        self.entries += 1;
    }

    /// Puts an entry into the table: into the first free slot of its own, or else into the first one.
    fn place(&mut self, entry: Entry) {
        let mut slots = entry.key.slots(self.table.len());
        let free = slots.clone().find(|&slot| self.table.get(slot).is_some_and(Option::is_none));
        if let Some(place) = free.or(slots.next()).and_then(|slot| self.table.get_mut(slot)) {
            *place = Some(entry);
        }
    }

    fn grow(&mut self) {
        let length = (self.table.len() * 2).max(2 * FIRST_TABLE);
        let old = core::mem::replace(&mut self.table, alloc::vec![None; length]);
        old.into_iter().flatten().for_each(|entry| self.place(entry));
    }
}

impl Key {
    /// Where to look for it in a table of this length.
    #[inline]
    fn slots(self, length: usize) -> impl Iterator<Item = usize> + Clone {
        let last = length.wrapping_sub(1);
        let state = u64::from(self.state.0) << 4 | u64::from(self.bytes);
        let hash = mix(self.word ^ state.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let first = usize::try_from(hash & u64::from(u32::MAX)).unwrap_or(0);
        (first..first + PROBES).map(move |slot| slot & last)
    }
}

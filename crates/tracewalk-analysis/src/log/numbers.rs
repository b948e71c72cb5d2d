//! Numbers for passages and blocks, the same for all threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracewalk::flow::KeptPassage;

use super::named::Named;

use crate::quick::{QuickMap, mix};

/// Gives out sets of numbers: a new set when the old one is used up.
#[derive(Debug, Default)]
pub struct Numbering {
    current: Mutex<Arc<Numbers>>,
}

/// Numbers for passages, up to a limit.
#[derive(Debug, Default)]
pub(super) struct Numbers(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    passages: QuickMap<Arc<KeptPassage>, u32>,
    /// The contents of the numbers.
    named: Vec<Named>,
    elements: usize,
    is_full: bool,
}

/// The most passages with numbers, and the limit of the elements in them.
const MOST_PASSAGES: usize = 1 << 16;
const MOST_ELEMENTS: usize = 1 << 17;

impl Numbering {
    /// The current set.
    pub(super) fn current(&self) -> Arc<Numbers> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_full() {
            *current = Arc::default();
        }
        Arc::clone(&current)
    }
}

impl Numbers {
    /// The number of a passage; `None` if there are no more.
    pub(super) fn number(&self, passage: KeptPassage) -> Option<u32> {
        let mut table = self.lock();
        if let Some(known) = table.passages.get(&passage) {
            return Some(*known);
        }
        if table.passages.len() >= MOST_PASSAGES || table.elements + passage.len() > MOST_ELEMENTS {
            table.is_full = true;
            return None;
        }
        table.elements += passage.len();
        let passage = Arc::new(passage);
        let number = table.name(Named::of(Arc::clone(&passage)))?;
        table.passages.insert(passage, number);
        Some(number)
    }

    /// Adds the contents that `known` lacks.
    pub(super) fn update(&self, known: &mut Vec<Named>) {
        let table = self.lock();
        known.extend(table.named.iter().skip(known.len()).cloned());
    }

    fn is_full(&self) -> bool {
        self.lock().is_full
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn name(&mut self, named: Named) -> Option<u32> {
        let number = u32::try_from(self.named.len()).ok()?;
        self.named.push(named);
        Some(number)
    }
}

/// The numbers of one stream's passages, by the stream's own IDs.
#[derive(Debug, Default)]
pub(super) struct ById {
    /// A power of two long, at most half full; empty before the first passage.
    slots: Vec<(u64, u32)>,
    used: usize,
}

/// No stream uses this ID.
const FREE: u64 = u64::MAX;

/// The length of the first table, and of the last. The table keeps IDs that streams have forgotten.
const FIRST_SLOTS: usize = 1 << 8;
const MOST_SLOTS: usize = 1 << 17;

impl ById {
    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<u32> {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = slot_of(id) & last;
        loop {
            match *self.slots.get(at)? {
                (known, number) if known == id => return Some(number),
                (FREE, _) => return None,
                _ => at = (at + 1) & last,
            }
        }
    }

    #[cold]
    pub(super) fn insert(&mut self, id: u64, number: u32) {
        if self.used * 2 >= self.slots.len() {
            let is_large = self.slots.len() >= MOST_SLOTS;
            let length = if is_large { FIRST_SLOTS } else { (self.slots.len() * 2).max(FIRST_SLOTS) };
            let old = std::mem::replace(&mut self.slots, vec![(FREE, 0); length]);
            self.used = 0;
            for (id, number) in old.into_iter().filter(|(id, _)| *id != FREE && !is_large) {
                self.place(id, number);
            }
        }
        self.place(id, number);
    }

    fn place(&mut self, id: u64, number: u32) {
        let last = self.slots.len().wrapping_sub(1);
        let mut at = slot_of(id) & last;
        while let Some(slot) = self.slots.get_mut(at) {
            if slot.0 == FREE {
                *slot = (id, number);
                self.used += 1;
                return;
            }
            at = (at + 1) & last;
        }
    }
}

#[inline]
const fn slot_of(id: u64) -> usize {
    (mix(id) >> 20) as usize
}

//! Numbers for passages and blocks, the same for all threads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracewalk::flow::KeptPassage;

use super::named::Named;
use crate::quick::QuickMap;

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
pub(super) struct ById(QuickMap<u64, u32>);

/// The most IDs that are kept: some of them streams have forgotten.
const MOST_IDS: usize = 1 << 16;

impl ById {
    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<u32> {
        self.0.get(&id).copied()
    }

    #[cold]
    pub(super) fn insert(&mut self, id: u64, number: u32) {
        if self.0.len() >= MOST_IDS {
            self.0.clear();
        }
        self.0.insert(id, number);
    }
}

//! The ways in which frames were entered while effects were learned, each by its number.

use crate::call_stack::{Entry, FrameKind, FunctionId, Interruption};
use crate::quick::QuickIndex;

/// How a frame is entered, as far as a timeline shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entrance {
    pub(super) by: EnteredBy,
    pub(super) function: FunctionId,
    pub(super) entry: Entry,
}

/// What makes a function run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum EnteredBy {
    /// Nothing known: the function was running already.
    Unknown,
    Call,
    Exception(Interruption),
}

/// The number of an entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntranceId(u32);

/// Entrances by number. Many deeds have the same one, which is several times as large as another deed.
#[derive(Debug, Default)]
pub(super) struct Entrances {
    list: Vec<Entrance>,
    index: QuickIndex,
}

/// The most entrances that are kept.
const MOST: usize = 1 << 16;

impl Entrance {
    pub(super) const fn of(kind: FrameKind, function: FunctionId, entry: Entry) -> Self {
        let by = match kind {
            FrameKind::Root => EnteredBy::Unknown,
            FrameKind::Call { .. } => EnteredBy::Call,
            FrameKind::Exception(interruption) => EnteredBy::Exception(interruption),
        };
        Self { by, function, entry }
    }
}

impl Entrances {
    /// The number of an entrance.
    pub(super) fn number(&mut self, entrance: Entrance) -> EntranceId {
        EntranceId(self.index.number(&mut self.list, entrance))
    }

    /// The entrance with a number.
    #[inline]
    pub(super) fn get(&self, id: EntranceId) -> Option<&Entrance> {
        self.list.get(id.0 as usize)
    }

    /// Whether [`Entrances::forget`] is due.
    pub(super) fn is_full(&self) -> bool {
        self.list.len() >= MOST
    }

    /// Forgets all numbers.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

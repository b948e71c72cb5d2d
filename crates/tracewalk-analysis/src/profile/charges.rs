//! What a passage costs, kept so that it is charged again each time that the passage comes.

use std::ops::Range;

use tracewalk::flow::{Element, EventKind};

use super::{EntryId, NodeId};
use crate::clock::Cost;

/// What a passage costs.
#[derive(Debug, Default)]
pub(super) struct Charges {
    /// What each piece of code costs, in the lists of all passages.
    pub(super) pieces: Range<usize>,
    /// The chains that are called, each time that they are.
    pub(super) calls: Range<usize>,
    /// The piece that is charged with cycles that were counted before the passage, and the one with those that were waited
    /// for there; `None` if there is not one piece for them.
    pub(super) pending: Option<usize>,
    pub(super) waited: Option<usize>,
    pub(super) cycle_counts: u64,
    /// The cycles that are counted after the last block.
    pub(super) waiting: u64,
    /// Whether it is a group's: its members are charged beside, with what each cost in no other place.
    pub(super) is_group: bool,
}

/// Cycles that the passage does not tell, and that its blocks take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Before {
    /// They were counted, and no block has taken them.
    pub(super) pending: u64,
    /// They were waited for by the first block that the passage counts cycles for.
    pub(super) waited: u64,
}

impl Before {
    pub(super) const NOTHING: Self = Self { pending: 0, waited: 0 };
}

impl Charges {
    /// Whether it is known what takes the cycles before.
    pub(super) fn take(&self, before: Before) -> bool {
        (before.pending == 0 || self.pending.is_some()) && (before.waited == 0 || self.waited.is_some())
    }

    /// What is charged to a piece of the cycles before.
    pub(super) fn extra(&self, piece: usize, before: Before) -> u64 {
        let of = |taker: Option<usize>, cycles: u64| if taker == Some(piece) { cycles } else { 0 };
        of(self.pending, before.pending) + of(self.waited, before.waited)
    }

    /// Leaves the cycles before out of the pieces. Whether that can be.
    pub(super) fn leave_out(&self, before: Before, lists: &mut Lists) -> bool {
        let pieces = lists.pieces.get_mut(self.pieces.clone()).unwrap_or_default();
        for (index, (_, cost)) in pieces.iter_mut().enumerate() {
            cost.cycles -= self.extra(index, before).min(cost.cycles);
        }
        self.take(before)
    }
}

/// Finds what takes the cycles before: a piece, or what is not one piece.
#[derive(Debug, Default)]
pub(super) struct Takers {
    pub(super) pending: Option<Option<usize>>,
    pub(super) waited: Option<Option<usize>>,
    pub(super) counts: bool,
}

impl Takers {
    /// The next element, which is these pieces.
    pub(super) fn element(&mut self, element: &Element, pieces: Range<usize>) {
        let piece = match element {
            Element::Block(_) => Some(pieces.start).filter(|_| pieces.len() == 1),
            Element::Event(event) => match event.kind {
                EventKind::Exception { .. } => None,
                EventKind::Cycles(_) => {
                    self.counts = true;
                    return;
                }
                _ => return,
            },
            Element::Gap(_) | Element::Proof(_) => return,
        };
        self.pending.get_or_insert(piece);
        if self.counts {
            self.waited.get_or_insert(piece);
        }
    }
}

/// What passages cost, one after the other: the lists are cleared as a whole, and no passage has an allocation of its own.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) pieces: Vec<(EntryId, Cost)>,
    pub(super) calls: Vec<NodeId>,
    /// Whether a passage is learned, so that what it costs is noted.
    pub(super) notes: bool,
}

impl Lists {
    /// How long they are.
    pub(super) const fn ends(&self) -> (usize, usize) {
        (self.pieces.len(), self.calls.len())
    }

    /// Forgets what came since they were so long.
    pub(super) fn truncate(&mut self, (pieces, calls): (usize, usize)) {
        self.pieces.truncate(pieces);
        self.calls.truncate(calls);
    }
}

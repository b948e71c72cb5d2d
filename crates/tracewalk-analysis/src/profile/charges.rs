//! Costs of passages, cached to be charged again for each repetition.

use std::ops::Range;

use tracewalk::flow::{Element, EventKind};

use super::{EntryId, NodeId};
use crate::clock::Cost;

/// The cost of a passage.
#[derive(Debug, Default)]
pub(super) struct Charges {
    /// The costs of its pieces of code: a range of the common list.
    pub(super) pieces: Range<usize>,
    /// The called chains, once for each call: a range of the common list.
    pub(super) calls: Range<usize>,
    /// The piece that takes cycles counted before the passage, and the piece that takes the cycles that waited there; `None` if
    /// no single piece takes them.
    pub(super) pending: Option<usize>,
    pub(super) waited: Option<usize>,
    pub(super) cycle_counts: u64,
    /// The cycles that are pending after the last block.
    pub(super) waiting: u64,
    /// Whether the meter has lost its place after the passage.
    pub(super) lost: bool,
    /// Whether these are a group's charges. A group's members are charged separately.
    pub(super) is_group: bool,
}

/// Cycles that were counted before the passage, and that its blocks take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Before {
    /// Cycles that were counted, and that no block has taken.
    pub(super) pending: u64,
    /// Cycles that waited for the first block for which the passage counts cycles.
    pub(super) waited: u64,
}

impl Before {
    pub(super) const NOTHING: Self = Self { pending: 0, waited: 0 };
}

impl Charges {
    /// Whether the piece that takes the cycles before is known.
    pub(super) fn take(&self, before: Before) -> bool {
        (before.pending == 0 || self.pending.is_some()) && (before.waited == 0 || self.waited.is_some())
    }

    /// The share of a piece in the cycles before.
    pub(super) fn extra(&self, piece: usize, before: Before) -> u64 {
        let of = |taker: Option<usize>, cycles: u64| if taker == Some(piece) { cycles } else { 0 };
        of(self.pending, before.pending) + of(self.waited, before.waited)
    }

    /// Subtracts the cycles before from the pieces. Returns whether that is possible.
    pub(super) fn leave_out(&self, before: Before, lists: &mut Lists) -> bool {
        let pieces = lists.pieces.get_mut(self.pieces.clone()).unwrap_or_default();
        for (index, (_, cost)) in pieces.iter_mut().enumerate() {
            cost.cycles -= self.extra(index, before).min(cost.cycles);
        }
        self.take(before)
    }
}

/// Finds the piece that takes the cycles before, if it is a single one.
#[derive(Debug, Default)]
pub(super) struct Takers {
    pub(super) pending: Option<Option<usize>>,
    pub(super) waited: Option<Option<usize>>,
    pub(super) counts: bool,
}

impl Takers {
    /// Takes the next element, with its pieces.
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

/// The costs of all passages in two lists, which are cleared as a whole: no passage has an allocation of its own.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) pieces: Vec<(EntryId, Cost)>,
    pub(super) calls: Vec<NodeId>,
    /// Whether a passage is being learned, so that its costs are noted.
    pub(super) notes: bool,
}

impl Lists {
    /// The lengths of the lists.
    pub(super) const fn ends(&self) -> (usize, usize) {
        (self.pieces.len(), self.calls.len())
    }

    /// Cuts the lists to earlier lengths.
    pub(super) fn truncate(&mut self, (pieces, calls): (usize, usize)) {
        self.pieces.truncate(pieces);
        self.calls.truncate(calls);
    }
}

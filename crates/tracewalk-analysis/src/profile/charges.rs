//! Costs of passages, cached to be charged again for each repetition.

use std::ops::Range;

use tracewalk::flow::{Element, EventKind};

use super::{EntryId, NodeId};
use crate::clock::Cost;
use crate::quick::within;

/// The cost of a passage.
#[derive(Debug, Default)]
pub(super) struct Charges {
    /// The costs of its pieces of code: a range of the common list.
    pub(super) pieces: Range<u32>,
    /// The called chains, once for each call: a range of the common list.
    pub(super) calls: Range<u32>,
    /// The piece that takes cycles counted before the passage, and the piece that takes the cycles that waited there; `None` if
    /// no single piece takes them.
    pub(super) pending: Option<u16>,
    pub(super) waited: Option<u16>,
    pub(super) cycle_counts: u32,
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
        let of =
            |taker: Option<u16>, cycles: u64| if taker.map(usize::from) == Some(piece) { cycles } else { 0 };
        of(self.pending, before.pending) + of(self.waited, before.waited)
    }

    /// Subtracts the cycles before from the pieces. Returns whether that is possible.
    pub(super) fn leave_out(&self, before: Before, lists: &mut Lists) -> bool {
        let pieces = lists.pieces.get_mut(within(&self.pieces)).unwrap_or_default();
        for (index, charge) in pieces.iter_mut().enumerate() {
            let extra = u32::try_from(self.extra(index, before)).unwrap_or(u32::MAX);
            charge.cycles = charge.cycles.saturating_sub(extra);
        }
        self.take(before)
    }
}

/// Finds the piece that takes the cycles before, if it is a single one.
#[derive(Debug, Default)]
pub(super) struct Takers {
    pub(super) pending: Option<Option<u16>>,
    pub(super) waited: Option<Option<u16>>,
    pub(super) counts: bool,
}

impl Takers {
    /// Takes the next element, with its pieces.
    pub(super) fn element(&mut self, element: &Element, pieces: Range<u32>) {
        let piece = match element {
            Element::Block(_) => u16::try_from(pieces.start).ok().filter(|_| pieces.len() == 1),
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

/// The cost of a piece of code, once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    pub(super) entry: EntryId,
    instructions: u32,
    cycles: u32,
}

impl Charge {
    pub(super) fn cost(self) -> Cost {
        Cost { instructions: self.instructions.into(), cycles: self.cycles.into(), time: 0 }
    }
}

/// The costs of all passages in two lists, which are cleared as a whole: no passage has an allocation of its own.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pieces: Vec<Charge>,
    calls: Vec<NodeId>,
    /// Whether a passage is being learned, so that its costs are noted.
    pub(super) notes: bool,
    /// Whether some cost did not fit into the lists, so that the passage cannot be cached.
    pub(super) overflows: bool,
}

/// The lengths of the lists.
pub(super) type Ends = (u32, u32);

impl Lists {
    /// The lengths of the lists.
    pub(super) fn ends(&self) -> Ends {
        // The lists are limited by the number of effects.
        let [pieces, calls] = [self.pieces.len(), self.calls.len()];
        (u32::try_from(pieces).unwrap_or(u32::MAX), u32::try_from(calls).unwrap_or(u32::MAX))
    }

    /// Cuts the lists to earlier lengths.
    pub(super) fn truncate(&mut self, (pieces, calls): Ends) {
        self.pieces.truncate(pieces as usize);
        self.calls.truncate(calls as usize);
    }

    /// Notes the cost of a piece, which has no time of its own.
    pub(super) fn spend(&mut self, entry: EntryId, Cost { instructions, cycles, .. }: Cost) {
        match (u32::try_from(instructions), u32::try_from(cycles)) {
            (Ok(instructions), Ok(cycles)) => self.pieces.push(Charge { entry, instructions, cycles }),
            _ => self.overflows = true,
        }
    }

    /// Notes a call.
    pub(super) fn call(&mut self, node: NodeId) {
        self.calls.push(node);
    }

    pub(super) fn pieces(&self, range: &Range<u32>) -> &[Charge] {
        self.pieces.get(within(range)).unwrap_or_default()
    }

    pub(super) fn calls(&self, range: &Range<u32>) -> &[NodeId] {
        self.calls.get(within(range)).unwrap_or_default()
    }
}

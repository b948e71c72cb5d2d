//! The effects of elements on a timeline, as a list of deeds.

use tracewalk::flow::{Element, EventKind};

use super::entrances::EntranceId;
use super::item::SpanId;
use super::tracks::RowId;
use crate::call_stack::Left;

/// An effect on a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Blocks of one piece each run, one after the other.
    Ran(Count),
    /// A block of several pieces begins, with this number of instructions.
    Begins(Count, u32),
    /// A piece of the block runs, with this number of instructions.
    Piece(u32),
    /// The block ends.
    Ends,
    /// Cycles pass in which nothing ran.
    Passes(Count),
    /// A frame is entered.
    Enters(EntranceId),
    /// The innermost frame is left.
    Leaves(Left),
}

/// A count, and whether it takes the cycles that were counted before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) count: u64,
    pub(super) takes: Takes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Takes {
    pending: bool,
    waited: bool,
}

/// Cycles that were counted before a passage, and that its elements take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Before {
    /// Cycles that were counted, and that no element has taken.
    pub(super) pending: u64,
    /// Cycles that waited for the first element for which the passage counts cycles.
    pub(super) waited: u64,
}

/// Finds the elements that take the cycles before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Takers {
    pub(super) pending: bool,
    pub(super) waited: bool,
    counts: bool,
}

impl Before {
    pub(super) const NOTHING: Self = Self { pending: 0, waited: 0 };

    /// The number of cycles that are taken.
    pub(super) const fn taken(self, takes: Takes) -> u64 {
        let pending = if takes.pending { self.pending } else { 0 };
        let waited = if takes.waited { self.waited } else { 0 };
        pending + waited
    }
}

impl Takers {
    /// The cycles that the next element takes.
    pub(super) fn element(&mut self, element: &Element) -> Takes {
        match element {
            Element::Block(_) => {}
            Element::Event(event) => match event.kind {
                EventKind::Exception { .. } => {}
                EventKind::Cycles(_) => {
                    self.counts = true;
                    return Takes::default();
                }
                _ => return Takes::default(),
            },
            Element::Gap(_) | Element::Proof(_) => return Takes::default(),
        }
        let waited = self.counts && !std::mem::replace(&mut self.waited, self.counts);
        Takes { pending: !std::mem::replace(&mut self.pending, true), waited }
    }
}

impl Deed {
    /// The count with these cycles before it.
    pub(super) const fn placed(self, before: Before) -> Self {
        const fn all(count: Count, before: Before) -> Count {
            Count { count: count.count + before.taken(count.takes), takes: Takes::NOTHING }
        }
        match self {
            Self::Ran(count) => Self::Ran(all(count, before)),
            Self::Begins(count, instructions) => Self::Begins(all(count, before), instructions),
            Self::Passes(count) => Self::Passes(all(count, before)),
            Self::Piece(_) | Self::Ends | Self::Enters(..) | Self::Leaves(_) => self,
        }
    }
}

impl Takes {
    pub(super) const NOTHING: Self = Self { pending: false, waited: false };
    pub(super) const PENDING: Self = Self { pending: true, waited: false };
}

/// Makes a shorter list: one deed for a block of one piece, one for consecutive such blocks, and no deed without effect.
pub(super) fn shorten(noted: &[Deed], list: &mut Vec<Deed>) {
    list.clear();
    let mut rest = noted;
    while let Some((first, following)) = rest.split_first() {
        rest = following;
        let Deed::Begins(count, _) = *first else {
            push(list, *first);
            continue;
        };
        let end = following.iter().position(|deed| *deed == Deed::Ends).unwrap_or(following.len());
        let (block, after) = following.split_at(end);
        if block.iter().filter(|deed| matches!(deed, Deed::Piece(_))).count() != 1 {
            list.push(*first);
            continue;
        }
        let as_one = |deed: &Deed| if matches!(deed, Deed::Piece(_)) { Deed::Ran(count) } else { *deed };
        block.iter().for_each(|deed| push(list, as_one(deed)));
        rest = after.get(1..).unwrap_or_default();
    }
}

/// Adds another deed.
pub(super) fn push(list: &mut Vec<Deed>, deed: Deed) {
    match (deed, list.last_mut()) {
        (Deed::Ran(count), Some(Deed::Ran(before))) => {
            before.count += count.count;
            before.takes.pending |= count.takes.pending;
            before.takes.waited |= count.takes.waited;
        }
        (Deed::Passes(count), _) if count == Count::default() => {}
        _ => list.push(deed),
    }
}

/// The observer's mark of a running function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    pub(super) row: RowId,
    pub(super) function: SpanId,
    /// The exception that its frame handles.
    pub(super) exception: Option<(SpanId, RowId)>,
}

impl Marks {
    /// The marks of a frame without a span.
    pub(super) const NONE: Self = Self { row: RowId::RUNNING, function: SpanId(0), exception: None };
}

/// The marks of frames while deeds are applied.
#[derive(Debug, Default)]
pub(super) struct Marking {
    pub(super) marks: Vec<Marks>,
    pub(super) under: Option<Marks>,
}

impl Marking {
    /// The marks of the innermost frame.
    pub(super) fn top(&self) -> Option<Marks> {
        self.marks.last().copied().or(self.under)
    }
}

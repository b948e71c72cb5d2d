//! Who takes the items of a timeline: one by one, or those that come again as often as the trace repeats them at once.

use super::item::{Item, Moment};
use super::prepared::Prepared;
use super::{SpanId, Track};

/// Takes items in the order of the axis. Closures do.
pub trait TakeItems {
    /// Takes the next item.
    fn item(&mut self, item: Item);

    /// Takes items that come again and again. They begin and end what they begin, and nothing else.
    fn again(&mut self, again: &Again<'_>) {
        again.items().for_each(|item| self.item(item));
    }
}

impl<F: FnMut(Item)> TakeItems for F {
    fn item(&mut self, item: Item) {
        self(item);
    }
}

/// Items that come again: spans that begin, and end.
#[derive(Clone, Copy, Debug)]
pub struct Again<'a> {
    prepared: &'a Prepared,
    /// The name of the span before theirs.
    last: SpanId,
    /// Where the axis is before them, and where their places count from.
    least: u64,
    from: u64,
    outer: Track,
}

impl<'a> Again<'a> {
    #[inline]
    pub(super) const fn new(
        prepared: &'a Prepared,
        (last, outer): (SpanId, Track),
        (least, from): (u64, u64),
    ) -> Self {
        Self { prepared, last, least, from, outer }
    }

    /// What is equal for items that are the same, apart from their places and the names of their spans, on the same
    /// [track](Again::outer). No other items of this timeline ever have it.
    #[inline]
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.prepared.number
    }

    /// The track of spans of functions that run in what ran before.
    #[inline]
    #[must_use]
    pub const fn outer(&self) -> Track {
        self.outer
    }

    /// Where on the axis the first of them is, if what the trace said before does not move them.
    #[inline]
    #[must_use]
    pub fn begins_at(&self) -> Option<u64> {
        let first = self.from.checked_add(self.prepared.first()?)?;
        (first >= self.least).then_some(first)
    }

    /// The items.
    pub fn items(&self) -> impl Iterator<Item = Item> + use<'a> {
        let Self { prepared, last, least, from, outer } = *self;
        prepared.items(last, outer).map(move |(place, change)| {
            let ticks = from.saturating_add(place.count).max(least);
            Item { at: Moment { ticks, certainty: place.certainty }, change }
        })
    }

    /// The place of the last one.
    #[inline]
    pub(super) fn ends_at(&self) -> u64 {
        self.from.saturating_add(self.prepared.last()).max(self.least)
    }
}

//! Consumers of a timeline's items: one by one, or repeated items at once.

use super::item::{Item, Moment};
use super::prepared::Prepared;
use super::{SpanId, Track};

/// Takes items in the order of the axis. Implemented for closures.
pub trait TakeItems {
    /// Takes the next item.
    fn item(&mut self, item: Item);

    /// Takes repeated items, which end every span that they begin, and no other.
    fn again(&mut self, again: &Again<'_>) {
        again.items().for_each(|item| self.item(item));
    }
}

impl<F: FnMut(Item)> TakeItems for F {
    fn item(&mut self, item: Item) {
        self(item);
    }
}

/// Repeated items: spans that begin and end.
#[derive(Clone, Copy, Debug)]
pub struct Again<'a> {
    prepared: &'a Prepared,
    /// The name of the previous span.
    last: SpanId,
    /// The position of the axis before them, and the base of their places.
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

    /// A number that is equal for equal items, apart from their places and the names of their spans, on the same
    /// [track](Again::outer), and unique among all other items of this timeline.
    #[inline]
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.prepared.number
    }

    /// The track for spans of functions that the current frame calls.
    #[inline]
    #[must_use]
    pub const fn outer(&self) -> Track {
        self.outer
    }

    /// The place of the first item, unless earlier places on the axis move it.
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

    /// The place of the last item.
    #[inline]
    pub(super) fn ends_at(&self) -> u64 {
        self.from.saturating_add(self.prepared.last()).max(self.least)
    }
}

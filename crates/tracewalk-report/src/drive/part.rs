//! What a worker makes of a part of a source's flow, so that parts can be put together in order.

use tracewalk::flow::{Element, Passage, TakeElements};
use tracewalk::source::PacketCounts;
use tracewalk::span::{CaptureOffset, StreamOffset};

use super::segment::Whereabouts;
use crate::analysis::{ContextsPart, Gaps, Statistics};

/// What becomes of the elements of a part.
///
/// Parts are made by any thread, and joined in the order of the trace: where the cuts are must not show in the whole.
pub trait Part: Default + Send {
    /// Takes the part's next element.
    fn element(&mut self, element: &Element);

    /// Takes the part's next elements.
    fn passage(&mut self, passage: &Passage<'_>) {
        passage.elements().for_each(|element| self.element(&element));
    }
}

/// Nothing is made of them.
impl Part for () {
    #[inline]
    fn element(&mut self, _: &Element) {}

    #[inline]
    fn passage(&mut self, _: &Passage<'_>) {}
}

/// A part of a source's flow.
#[derive(Clone, Debug, Default)]
pub struct Gathered<P> {
    /// How much there was.
    pub statistics: Statistics,
    /// What could not be followed.
    pub gaps: Gaps,
    /// In which contexts it ran.
    pub contexts: ContextsPart,
    /// What was made of the elements.
    pub part: P,
}

/// Gathers a part.
pub(super) struct Gathering<'a, P> {
    pub(super) gathered: &'a mut Gathered<P>,
    pub(super) places: &'a mut Whereabouts,
    pub(super) last: &'a mut Last,
}

/// The last place that was known, for elements without bytes of their own at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Last {
    /// Where the last element with bytes of its own is in the stream.
    stream: Option<StreamOffset>,
    /// The same in the capture, if it was found out.
    capture: CaptureOffset,
}

impl<P> Gathered<P> {
    /// Adds the packets that came in this part.
    pub(super) const fn count(&mut self, before: PacketCounts, now: PacketCounts) {
        self.statistics.packets += now.packets - before.packets;
        self.statistics.malformed += now.malformed - before.malformed;
    }
}

impl Last {
    /// Finds out the place as long as the bytes there are remembered.
    pub(super) fn settle(&mut self, places: &mut Whereabouts) {
        if let Some(place) = self.stream.and_then(|at| places.locate(at)) {
            self.capture = place;
        }
    }
}

impl<P: Part> TakeElements for Gathering<'_, P> {
    #[inline]
    fn element(&mut self, element: Element) {
        self.gathered.statistics.element(&element);
        let span = element.span();
        if matches!(element, Element::Gap(_)) {
            let at = self.places.locate(span.start).unwrap_or_else(|| {
                self.last.settle(self.places);
                self.last.capture
            });
            self.gathered.gaps.element(&element, at);
        }
        self.gathered.contexts.element(&element);
        if span.end > span.start {
            self.last.stream = Some(span.start);
        }
        self.gathered.part.element(&element);
    }

    #[inline]
    fn passage(&mut self, passage: Passage<'_>) {
        let totals = passage.totals();
        if totals.gaps > 0 {
            passage.elements().for_each(|element| self.element(element));
            return;
        }
        self.gathered.statistics.ranges += u64::from(totals.blocks);
        self.gathered.statistics.instructions += u64::from(totals.instructions);
        // Packets that name a context are not plain, so that none is in a passage.
        self.gathered.contexts.instructions(totals.instructions.into());
        if let Some(span) = passage.last_span() {
            self.last.stream = Some(span.start);
        }
        self.gathered.part.passage(&passage);
    }
}

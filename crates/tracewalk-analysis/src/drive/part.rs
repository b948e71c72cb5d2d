//! A worker's result for a part of a source's flow, to be joined in order.

use serde::{Deserialize, Serialize};
use tracewalk::flow::{Element, Passage, TakeElements};
use tracewalk::source::PacketCounts;
use tracewalk::span::{CaptureOffset, Span, StreamOffset};

use super::segment::Whereabouts;
use crate::sink::Part;
use crate::{ContextsPart, Doubt, DoubtChange, Doubts, Gaps, Statistics};

/// A part of a source's flow.
#[derive(Clone, Debug)]
pub struct Gathered<P> {
    /// The totals.
    pub statistics: Statistics,
    /// The gaps.
    pub gaps: Gaps,
    /// The stretches in doubt whose end is known.
    pub doubts: Doubts,
    /// The doubt at the end of the part.
    pub doubt: Doubt,
    /// The contexts in which code ran.
    pub contexts: ContextsPart,
    /// The consumer's part.
    pub part: P,
}

/// Gathers a part.
pub(super) struct Gathering<'a, P> {
    pub(super) gathered: &'a mut Gathered<P>,
    pub(super) places: &'a mut Whereabouts,
    pub(super) last: &'a mut Last,
}

/// The last known place, for elements without bytes of their own at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Last {
    /// The place of the last element with bytes of its own in the stream.
    stream: Option<StreamOffset>,
    /// The same in the capture, if it is known.
    capture: CaptureOffset,
}

impl<P: Part> Gathered<P> {
    /// An empty part, after parts that ended with this doubt.
    pub(super) fn after(doubt: Doubt, mut part: P) -> Self {
        part.begin(doubt);
        Self {
            statistics: Statistics::default(),
            gaps: Gaps::default(),
            doubts: Doubts::default(),
            doubt,
            contexts: ContextsPart::default(),
            part,
        }
    }

    /// Adds the packets that came in this part.
    pub(super) const fn count(&mut self, before: PacketCounts, now: PacketCounts) {
        self.statistics.packets += now.packets - before.packets;
        self.statistics.malformed += now.malformed - before.malformed;
    }
}

impl Last {
    /// The capture offset of an element's first byte; for an element without bytes, that of the last element with bytes.
    pub(super) fn place(&mut self, span: Span, places: &mut Whereabouts) -> CaptureOffset {
        let place = if span.end > span.start { places.locate(span.start) } else { None };
        place.unwrap_or_else(|| {
            self.settle(places);
            self.capture
        })
    }

    /// Remembers an element's place, after [`Last::place`].
    #[inline]
    pub(super) fn element(&mut self, element: &Element) {
        let span = element.span();
        if span.end > span.start && !matches!(element, Element::Proof(_)) {
            self.stream = Some(span.start);
        }
    }

    /// Looks up the place while the places of its bytes are still kept.
    pub(super) fn settle(&mut self, places: &mut Whereabouts) {
        if let Some(place) = self.stream.and_then(|at| places.locate(at)) {
            self.capture = place;
        }
    }
}

impl<P: Part> Gathering<'_, P> {
    /// Passages with gaps are rare: this is out of line, so that the values of others stay in registers.
    #[cold]
    #[inline(never)]
    fn with_gaps(&mut self, passage: Passage<'_>) {
        passage.elements().for_each(|element| self.element(element));
    }
}

impl<P: Part> TakeElements for Gathering<'_, P> {
    #[inline]
    fn element(&mut self, element: Element) {
        self.gathered.statistics.element(&element);
        let span = element.span();
        let Self { gathered, places, last } = self;
        let mut at = || last.place(span, places);
        if matches!(element, Element::Gap(_)) {
            gathered.gaps.element(&element, at());
        }
        if let Some(DoubtChange::Ends(stretch)) = gathered.doubt.element(&element, &mut at) {
            gathered.doubts.add(stretch);
        }
        gathered.contexts.element(&element);
        gathered.part.element(&element, at);
        self.last.element(&element);
    }

    #[inline(always)]
    fn passage(&mut self, passage: Passage<'_>) {
        let totals = passage.totals();
        if totals.gaps > 0 {
            return self.with_gaps(passage);
        }
        self.gathered.statistics.ranges += u64::from(totals.blocks);
        self.gathered.statistics.instructions += u64::from(totals.instructions);
        // Packets that report a context are not plain, so that no passage has one.
        self.gathered.contexts.instructions(totals.instructions.into());
        let Self { gathered, places, last } = self;
        gathered.part.passage(&passage, |start| last.place(Span::new(start, 1), places));
        if let Some(start) = passage.last_start() {
            self.last.stream = Some(start);
        }
    }
}

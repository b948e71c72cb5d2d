//! Elements that are passed several at once.

use crate::span::{Span, StreamOffset};

use super::compact::Elements;
use super::element::{Block, Element, Event, EventKind, Gap, Proof};

/// Receives the elements of program flow.
///
/// Implemented for closures that take an [`Element`]. Consumers that only count can count a whole [`Passage`]
/// at once.
pub trait TakeElements {
    /// Takes the next element.
    fn element(&mut self, element: Element);

    /// Takes the next elements.
    #[inline]
    fn passage(&mut self, passage: Passage<'_>) {
        passage.elements().for_each(|element| self.element(element));
    }
}

impl<F: FnMut(Element)> TakeElements for F {
    #[inline(always)]
    fn element(&mut self, element: Element) {
        self(element);
    }
}

/// The streams decode into a reference, so that each decoder is compiled once and not for every consumer.
impl TakeElements for &mut dyn TakeElements {
    #[inline(always)]
    fn element(&mut self, element: Element) {
        (**self).element(element);
    }

    #[inline(always)]
    fn passage(&mut self, passage: Passage<'_>) {
        (**self).passage(passage);
    }
}

/// Elements that came together before and are repeated.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    pub(crate) id: PassageId,
    /// Spans in them are relative to `origin`. Consumers that only count never read them.
    pub(crate) elements: Elements<'a>,
    pub(crate) origin: StreamOffset,
    pub(crate) totals: Totals,
    /// The start of the last element with bytes of its own, if no cycles waited before the passage.
    pub(crate) last: Option<StreamOffset>,
    /// The cycles that waited before the passage. The passage's first event of cycles includes them, and has
    /// no span if it includes no others. Spans before the passage are relative to the start of these packets.
    pub(crate) waited: Option<Waited>,
}

/// Cycles that the first instruction of a passage waited for, in packets directly before the passage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited {
    pub(crate) cycles: u64,
    /// The span of the last packet.
    pub(crate) span: Span,
    /// The number of bytes of the packets.
    pub(crate) bytes: u64,
}

/// Identifies the elements of a passage. Passages of one stream with the same number have the same elements,
/// if they have any, apart from the start of their spans and the cycles of the first event of cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PassageId(pub(crate) u64);

/// The number of blocks, instructions and gaps among some elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Totals {
    /// Blocks.
    pub blocks: u32,
    /// The instructions of all blocks.
    pub instructions: u32,
    /// Gaps.
    pub gaps: u32,
}

impl PassageId {
    /// The number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl<'a> Passage<'a> {
    /// Identifies the elements, for consumers that count passages.
    #[inline]
    #[must_use]
    pub const fn id(&self) -> PassageId {
        self.id
    }

    /// The start of the bytes that report the passage. Its elements may include some that earlier trace left
    /// open.
    #[inline]
    #[must_use]
    pub const fn at(&self) -> StreamOffset {
        self.origin
    }

    /// The elements, in order.
    #[inline]
    pub fn elements(&self) -> impl Iterator<Item = Element> + use<'a> {
        let (origin, mut untold) = (self.origin, self.waited);
        let before = self.before();
        self.relative().map(move |element| {
            let placed = element.placed_after(if is_in_front(&element) { before } else { origin });
            match (untold, placed) {
                (Some(waited), Element::Event(Event { kind: EventKind::Cycles(cycles), span })) => {
                    untold = None;
                    let kind = EventKind::Cycles(cycles + waited.cycles);
                    Element::Event(Event { kind, span: if has_span(&element) { span } else { waited.span } })
                }
                _ => placed,
            }
        })
    }

    /// The origin of spans before the passage.
    #[inline]
    fn before(&self) -> StreamOffset {
        StreamOffset(self.origin.0 - self.waited())
    }

    /// The number of bytes directly before [`Passage::at`] that report only the cycles that the first
    /// instruction waited for. In passages with the same number, earlier elements have the same distance to
    /// these bytes.
    #[inline]
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.waited.map_or(0, |waited| waited.bytes)
    }

    /// The elements, with spans relative to the origin.
    #[inline]
    pub(crate) fn relative(&self) -> impl DoubleEndedIterator<Item = Element> + use<'a> {
        self.elements.iter()
    }

    /// The start of the last element that has bytes of its own.
    #[inline]
    #[must_use]
    pub fn last_start(&self) -> Option<StreamOffset> {
        match self.waited {
            None => self.last,
            Some(waited) => self.last_start_after(waited),
        }
    }

    /// As `last_start`, if cycles waited before the passage. A separate function that takes a copy, so that
    /// passages are inlined and stay in registers: a passage that goes through memory is read before its
    /// writes have completed.
    #[cold]
    #[inline(never)]
    fn last_start_after(self, waited: Waited) -> Option<StreamOffset> {
        let tells =
            |element: &Element| matches!(element, Element::Event(Event { kind: EventKind::Cycles(_), .. }));
        self.relative().rev().find_map(|element| {
            if has_span(&element) {
                let from = if is_in_front(&element) { self.before() } else { self.origin };
                Some(element.span().placed_after(from).start)
            } else {
                tells(&element).then_some(waited.span.start)
            }
        })
    }

    /// The number of blocks, instructions and gaps.
    #[inline]
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }
}

/// Whether an element has a span of its own in the passage.
#[inline]
const fn has_span(element: &Element) -> bool {
    let Span { start, end } = element.span();
    start.0 != end.0
}

/// Whether an element lies before its passage: its offset is negative.
#[inline]
const fn is_in_front(element: &Element) -> bool {
    element.span().start.0.cast_signed() < 0
}

impl Totals {
    /// The totals of these elements.
    pub(crate) fn of(elements: &[Element]) -> Self {
        elements.iter().fold(Self::default(), |totals, element| match element {
            Element::Block(block) => Self {
                blocks: totals.blocks + 1,
                instructions: totals.instructions.saturating_add(block.instructions),
                ..totals
            },
            Element::Gap(_) => Self { gaps: totals.gaps + 1, ..totals },
            Element::Event(_) | Element::Proof(_) => totals,
        })
    }
}

impl Element {
    /// The element with its span relative to `origin`.
    pub(crate) fn relative_to(self, origin: StreamOffset) -> Self {
        match self {
            Self::Block(block) => Self::Block(Block { span: block.span.relative_to(origin), ..block }),
            Self::Event(event) => Self::Event(Event { span: event.span.relative_to(origin), ..event }),
            Self::Gap(gap) => Self::Gap(Gap { span: gap.span.relative_to(origin), ..gap }),
            Self::Proof(proof) => Self::Proof(Proof { span: proof.span.relative_to(origin), ..proof }),
        }
    }

    /// The inverse of [`Element::relative_to`].
    #[inline]
    fn placed_after(&self, origin: StreamOffset) -> Self {
        match *self {
            Self::Block(block) => Self::Block(Block { span: block.span.placed_after(origin), ..block }),
            Self::Event(event) => Self::Event(Event { span: event.span.placed_after(origin), ..event }),
            Self::Gap(gap) => Self::Gap(Gap { span: gap.span.placed_after(origin), ..gap }),
            Self::Proof(proof) => Self::Proof(Proof { span: proof.span.placed_after(origin), ..proof }),
        }
    }
}

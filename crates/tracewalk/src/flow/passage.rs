//! Elements given several at once.

use crate::span::{Span, StreamOffset};

use super::compact::Elements;
use super::element::{Block, Element, Event, EventKind, Gap, Proof};

/// Takes the elements of program flow.
///
/// Closures that take an [`Element`] do. Who only counts can count a whole [`Passage`] at once.
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

/// Elements that came together before, and come again.
#[derive(Clone, Copy, Debug)]
pub struct Passage<'a> {
    pub(crate) id: PassageId,
    /// Spans in them count from `origin`.
    pub(crate) elements: Elements<'a>,
    pub(crate) origin: StreamOffset,
    pub(crate) totals: Totals,
    /// Where the last one with bytes of its own begins, where nothing was waited for.
    pub(crate) last: Option<StreamOffset>,
    /// What was waited for before it. The passage's first event of cycles tells these as well, and has no span where all that
    /// it tells was waited for; spans in front of the passage count from in front of these packets.
    pub(crate) waited: Option<Waited>,
}

/// Cycles that the first instruction of a passage waited for, in packets directly in front of the passage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waited {
    pub(crate) cycles: u64,
    /// Where the last of the packets stands.
    pub(crate) span: Span,
    /// How many bytes the packets take.
    pub(crate) bytes: u64,
}

/// Which elements a passage has. Passages of one stream with the same number and any elements have the same elements, apart
/// from where their spans begin and from how many cycles the first event of cycles tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PassageId(pub(crate) u64);

/// How much there is in some elements.
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
    /// Which elements it has, for one who counts passages.
    #[inline]
    #[must_use]
    pub const fn id(&self) -> PassageId {
        self.id
    }

    /// Where the bytes that say it begin. What trace in front of them left open may be among its elements.
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
            let placed = element.placed_behind(if is_in_front(&element) { before } else { origin });
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

    /// Where spans count from that lie in front of the passage.
    #[inline]
    fn before(&self) -> StreamOffset {
        StreamOffset(self.origin.0 - self.waited())
    }

    /// How many bytes directly in front of [`Passage::at`] say nothing but what its first instruction waited for. In passages
    /// with the same number what stands in front of these stands as far in front of them.
    #[inline]
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.waited.map_or(0, |waited| waited.bytes)
    }

    /// The same, with spans counted from the origin on.
    #[inline]
    pub(crate) fn relative(&self) -> impl DoubleEndedIterator<Item = Element> + use<'a> {
        self.elements.iter()
    }

    /// Where the last one that has bytes of its own begins.
    #[inline]
    #[must_use]
    pub fn last_start(&self) -> Option<StreamOffset> {
        match self.waited {
            None => self.last,
            Some(waited) => self.last_start_behind(waited),
        }
    }

    /// The same where something was waited for. It is apart, and takes a copy, so that passages are taken in line and stay in
    /// registers: one that goes through memory is read before it has arrived there.
    #[cold]
    #[inline(never)]
    fn last_start_behind(self, waited: Waited) -> Option<StreamOffset> {
        let tells =
            |element: &Element| matches!(element, Element::Event(Event { kind: EventKind::Cycles(_), .. }));
        self.relative().rev().find_map(|element| {
            if has_span(&element) {
                let from = if is_in_front(&element) { self.before() } else { self.origin };
                Some(element.span().placed_behind(from).start)
            } else {
                tells(&element).then_some(waited.span.start)
            }
        })
    }

    /// How much there is in them.
    #[inline]
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }
}

/// Whether the passage itself says where an element stands.
#[inline]
const fn has_span(element: &Element) -> bool {
    let Span { start, end } = element.span();
    start.0 != end.0
}

/// Whether an element of a passage stands in front of it: there offsets from it are negative.
#[inline]
const fn is_in_front(element: &Element) -> bool {
    element.span().start.0.cast_signed() < 0
}

impl Totals {
    /// What these elements sum up to.
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
    /// The element with its span counted from `origin` on.
    pub(crate) fn relative_to(self, origin: StreamOffset) -> Self {
        match self {
            Self::Block(block) => Self::Block(Block { span: block.span.relative_to(origin), ..block }),
            Self::Event(event) => Self::Event(Event { span: event.span.relative_to(origin), ..event }),
            Self::Gap(gap) => Self::Gap(Gap { span: gap.span.relative_to(origin), ..gap }),
            Self::Proof(proof) => Self::Proof(Proof { span: proof.span.relative_to(origin), ..proof }),
        }
    }

    /// The way back.
    #[inline]
    fn placed_behind(&self, origin: StreamOffset) -> Self {
        match *self {
            Self::Block(block) => Self::Block(Block { span: block.span.placed_behind(origin), ..block }),
            Self::Event(event) => Self::Event(Event { span: event.span.placed_behind(origin), ..event }),
            Self::Gap(gap) => Self::Gap(Gap { span: gap.span.placed_behind(origin), ..gap }),
            Self::Proof(proof) => Self::Proof(Proof { span: proof.span.placed_behind(origin), ..proof }),
        }
    }
}

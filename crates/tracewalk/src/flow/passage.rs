//! Elements given several at once.

use crate::span::{Span, StreamOffset};

use super::element::{Block, Element, Event, Gap};

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
    /// Their spans count from `origin`.
    pub(crate) elements: &'a [Element],
    pub(crate) origin: StreamOffset,
    pub(crate) totals: Totals,
}

/// Which elements a passage has. Passages of one stream with the same number and any elements have the same elements, apart
/// from where their spans begin.
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

    /// The elements, in order.
    #[inline]
    pub fn elements(&self) -> impl Iterator<Item = Element> + 'a {
        let origin = self.origin;
        self.elements.iter().map(move |element| element.placed_behind(origin))
    }

    /// The span of the last one that has bytes of its own.
    #[inline]
    #[must_use]
    pub fn last_span(&self) -> Option<Span> {
        let spans = self.elements.iter().rev().map(Element::span);
        spans.map(|span| span.placed_behind(self.origin)).find(|span| span.end > span.start)
    }

    /// How much there is in them.
    #[inline]
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }
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
            Element::Event(_) => totals,
        })
    }
}

impl Element {
    /// The element with its span told from `origin` on.
    pub(crate) fn relative_to(self, origin: StreamOffset) -> Self {
        match self {
            Self::Block(block) => Self::Block(Block { span: block.span.relative_to(origin), ..block }),
            Self::Event(event) => Self::Event(Event { span: event.span.relative_to(origin), ..event }),
            Self::Gap(gap) => Self::Gap(Gap { span: gap.span.relative_to(origin), ..gap }),
        }
    }

    /// The way back.
    #[inline]
    fn placed_behind(&self, origin: StreamOffset) -> Self {
        match *self {
            Self::Block(block) => Self::Block(Block { span: block.span.placed_behind(origin), ..block }),
            Self::Event(event) => Self::Event(Event { span: event.span.placed_behind(origin), ..event }),
            Self::Gap(gap) => Self::Gap(Gap { span: gap.span.placed_behind(origin), ..gap }),
        }
    }
}

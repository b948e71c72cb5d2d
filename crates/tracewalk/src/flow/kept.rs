//! A passage's elements, kept apart from their stream, to be emitted again.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::span::{Span, StreamOffset};

use super::compact::{Compact, Elements};
use super::element::{Block, Element, EventKind};
use super::passage::{Passage, PassageId, Totals, Waited};

/// The elements of a passage. Equal passages differ only in their places in the trace and in the cycles that waited before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPassage {
    /// Spans in them are relative to the start of the passage.
    compact: Box<[Compact]>,
    /// The elements that [`Compact::Other`] numbers.
    others: Box<[Element]>,
    totals: Totals,
}

/// The place of a passage, and the cycles that waited before it.
#[derive(Clone, Copy, Debug)]
pub struct Placing {
    origin: StreamOffset,
    waited: Option<Waited>,
}

impl Passage<'_> {
    /// The elements, independent of their place.
    #[must_use]
    pub fn keep(&self) -> KeptPassage {
        KeptPassage::of(self.relative(), self.totals())
    }

    /// Whether the cycles of the passage's first block begin before the passage.
    #[inline]
    #[must_use]
    pub const fn waits(&self) -> bool {
        self.waited.is_some()
    }

    /// The number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.elements.count.into()
    }

    /// Whether it has no elements.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.elements.count == 0
    }

    /// The place of the elements.
    #[inline]
    #[must_use]
    pub const fn placing(&self) -> Placing {
        Placing { origin: self.origin, waited: self.waited }
    }
}

impl KeptPassage {
    fn of(elements: impl Iterator<Item = Element>, totals: Totals) -> Self {
        let mut others = Vec::new();
        let compact = elements.map(|element| Compact::of(&element, &mut others)).collect();
        Self { compact, others: others.into(), totals }
    }

    /// A block by itself.
    #[must_use]
    pub fn of_block(block: &Block) -> Self {
        let element = Element::Block(*block).relative_to(block.span.start);
        Self::of([element].into_iter(), Totals::of(&[element]))
    }

    /// The passage at a place.
    #[must_use]
    pub fn placed(&self, placing: Placing) -> Passage<'_> {
        let Placing { origin, waited } = placing;
        Passage {
            id: PassageId(u64::MAX),
            elements: self.elements(),
            origin,
            totals: self.totals,
            last: self.last().map(|span| span.placed_after(origin).start),
            waited,
        }
    }

    /// The number of blocks, instructions and gaps.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.compact.len()
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.compact.is_empty()
    }

    /// Whether the passage holds only blocks, exceptions, returns from exceptions, cycles, and contexts without a context ID and a
    /// VMID: changes of the exception level or of the security state.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.elements().iter().all(|element| match element {
            Element::Block(_) => true,
            Element::Event(event) => matches!(
                event.kind,
                EventKind::Cycles(_)
                    | EventKind::Exception { .. }
                    | EventKind::ExceptionReturn
                    | EventKind::Context { context_id: None, vmid: None, .. }
            ),
            Element::Gap(_) | Element::Proof(_) => false,
        })
    }

    /// Whether the passage states a context.
    #[must_use]
    pub fn states_context(&self) -> bool {
        let is_context = |element: &Element| matches!(element, Element::Event(event) if matches!(event.kind, EventKind::Context { .. }));
        self.others.iter().any(is_context)
    }

    /// The span of the last element with bytes of its own.
    fn last(&self) -> Option<Span> {
        self.elements().iter().rev().map(|element| element.span()).find(|span| span.start != span.end)
    }

    fn elements(&self) -> Elements<'_> {
        let count = u8::try_from(self.compact.len()).unwrap_or(u8::MAX);
        Elements { compact: &self.compact, others: &self.others, first: 0, count }
    }
}

/// A few words tell nearly all passages apart.
impl Hash for KeptPassage {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Totals { blocks, instructions, .. } = self.totals;
        (blocks, instructions, self.compact.len()).hash(state);
        (self.compact.first(), self.compact.last()).hash(state);
        self.others.iter().map(Element::span).for_each(|span| span.hash(state));
    }
}

impl Placing {
    /// The place of a passage without cycles that waited before it.
    #[inline]
    #[must_use]
    pub const fn at(origin: StreamOffset) -> Self {
        Self { origin, waited: None }
    }

    /// The start of the passage.
    #[inline]
    #[must_use]
    pub const fn origin(&self) -> StreamOffset {
        self.origin
    }

    /// Whether the cycles of the passage's first block begin before the passage.
    #[inline]
    #[must_use]
    pub const fn waits(&self) -> bool {
        self.waited.is_some()
    }

    /// The cycles of the passage's first block that were stated before the passage.
    #[inline]
    #[must_use]
    pub fn waited_cycles(&self) -> u64 {
        self.waited.map_or(0, |waited| waited.cycles)
    }
}

//! The elements of passages, in little memory.
//!
//! A compiler's trace of 1 MB has a quarter of a million elements in its windows, nearly all of them blocks. A block is short,
//! and its trace is near: 20 bytes hold what takes 72 in an [`Element`].

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use crate::ids::{Address, Isa};
use crate::span::{Span, StreamOffset};

use super::element::{Block, Element, Ending};

/// An element of a passage. Spans count from the passage's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compact {
    /// A short block that is proven by few bytes near the start.
    Block(ShortBlock),
    /// The number of any other element.
    Other(u32),
}

/// A block of few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShortBlock {
    start: Address,
    ending: Ending,
    bytes: u16,
    instructions: u16,
    isa: Isa,
    /// The size of the last instruction.
    last_bytes: u8,
    /// The start of its trace; negative before the passage.
    trace_start: i8,
    trace_bytes: u8,
}

/// The elements of a passage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements<'a> {
    /// The elements of all passages.
    pub(crate) compact: &'a [Compact],
    /// The elements that [`Compact::Other`] numbers.
    pub(crate) others: &'a [Element],
    /// The first element of this passage in `compact`, and the number of its elements. Consumers that only count never
    /// read them.
    pub(crate) first: u32,
    pub(crate) count: u8,
}

impl Compact {
    /// An element, whose span counts from the passage's start. An element that is not a short block is added to `others`.
    #[inline]
    pub(crate) fn of(element: &Element, others: &mut Vec<Element>) -> Self {
        let short = match element {
            Element::Block(block) => ShortBlock::of(block),
            _ => None,
        };
        short.map_or_else(
            || {
                others.push(*element);
                Self::Other(u32::try_from(others.len() - 1).unwrap_or(u32::MAX))
            },
            Self::Block,
        )
    }
}

impl ShortBlock {
    /// The block in short; `None` if the block or its trace is too long.
    #[inline]
    fn of(block: &Block) -> Option<Self> {
        let Block { start, end, isa, instructions, last, ending, span } = *block;
        let distance = |from: Address, to: Address| to.get().wrapping_sub(from.get());
        let short = Self {
            start,
            ending,
            bytes: u16::try_from(distance(start, end)).ok()?,
            instructions: u16::try_from(instructions).ok()?,
            isa,
            last_bytes: u8::try_from(distance(last, end)).ok()?,
            trace_start: i8::try_from(span.start.0.cast_signed()).ok()?,
            trace_bytes: u8::try_from(span.end.0.wrapping_sub(span.start.0)).ok()?,
        };
        Some(short)
    }

    /// The block, whose trace counts from the passage's start.
    #[inline]
    fn block(&self) -> Block {
        let end = Address::new(self.start.get().wrapping_add(self.bytes.into()));
        let trace_start = i64::from(self.trace_start).cast_unsigned();
        Block {
            start: self.start,
            end,
            isa: self.isa,
            instructions: self.instructions.into(),
            last: Address::new(end.get().wrapping_sub(self.last_bytes.into())),
            ending: self.ending,
            span: Span {
                start: StreamOffset(trace_start),
                end: StreamOffset(trace_start.wrapping_add(self.trace_bytes.into())),
            },
        }
    }
}

impl<'a> Elements<'a> {
    /// The elements; their spans count from the passage's start.
    #[inline]
    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = Element> + use<'a> {
        let first = self.first as usize;
        let compact = self.compact.get(first..first + usize::from(self.count)).unwrap_or_default();
        compact.iter().filter_map(move |compact| match compact {
            Compact::Block(short) => Some(Element::Block(short.block())),
            Compact::Other(number) => self.others.get(*number as usize).copied(),
        })
    }
}

impl Hash for Compact {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Block(ShortBlock { start, instructions, trace_start, .. }) => {
                (start, instructions, trace_start).hash(state);
            }
            Self::Other(number) => number.hash(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::BranchKind;

    #[test]
    fn blocks_come_back_as_they_were_short_or_not() {
        let ending = Ending::Branch { kind: BranchKind::Direct, taken: true, link: false, returns: None };
        let block = |start: u64, bytes: u64, trace: i64, trace_bytes: u64| {
            let trace = StreamOffset(trace.cast_unsigned());
            Element::Block(Block {
                start: Address::new(start),
                end: Address::new(start.wrapping_add(bytes)),
                isa: Isa::A64,
                instructions: 3,
                last: Address::new(start.wrapping_add(bytes).wrapping_sub(4)),
                ending,
                span: Span { start: trace, end: StreamOffset(trace.0.wrapping_add(trace_bytes)) },
            })
        };
        let short = [block(0x40_0000, 12, 3, 1), block(u64::MAX - 11, 12, -128, 255)];
        let long =
            [block(8, 1 << 16, 0, 1), block(8, 12, 128, 1), block(8, 12, -129, 1), block(8, 12, 0, 256)];
        for (element, is_short) in short.map(|it| (it, true)).into_iter().chain(long.map(|it| (it, false))) {
            let mut others = Vec::new();
            let compact = [Compact::of(&element, &mut others)];
            assert_eq!((matches!(compact, [Compact::Block(_)]), others.is_empty()), (is_short, is_short));
            let elements = Elements { compact: &compact, others: &others, first: 0, count: 1 };
            assert!(elements.iter().eq([element]));
        }
        assert_eq!(size_of::<Compact>(), 20);
    }
}

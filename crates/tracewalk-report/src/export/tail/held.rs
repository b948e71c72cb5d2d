//! Records that are held back, in a compact form: they are most of the memory for the end of a flow.

use tracewalk::flow::{Block, Element, Ending, Gap, GapReason};
use tracewalk::ids::{Address, Isa, Location};
use tracewalk::span::{CaptureOffset, Span};
use tracewalk_analysis::analysis::Kept;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};

/// A record that is held back.
#[derive(Debug)]
pub(super) enum Held {
    /// Nearly all records are blocks.
    Block(HeldBlock),
    Other(Box<FlowRecord>),
    Itm(Box<ItmRecord>),
    /// Several blocks, and the elements between them.
    Passage(Kept),
}

/// A block with addresses as distances from the first.
#[derive(Debug)]
pub(super) struct HeldBlock {
    span: Span,
    at: CaptureOffset,
    start: Address,
    bytes: u32,
    instructions: u32,
    ending: Ending,
    isa: Isa,
    /// How long the last instruction is.
    last_bytes: u8,
}

impl Held {
    /// The number of instructions that were executed in it; at least one if code is missing.
    pub(super) fn instructions(&self) -> u64 {
        match self {
            Self::Block(block) => u64::from(block.instructions),
            Self::Other(record) => match record.element {
                Element::Block(block) => u64::from(block.instructions),
                Element::Gap(Gap { reason: GapReason::NoCode(_) | GapReason::Undecodable(..), .. }) => 1,
                _ => 0,
            },
            Self::Itm(_) => 0,
            Self::Passage(passage) => u64::from(passage.totals().instructions),
        }
    }

    /// The record; `None` for a passage, which is several.
    pub(super) fn into_flow(self) -> Option<FlowRecord> {
        match self {
            Self::Block(block) => Some(block.into()),
            Self::Other(record) => Some(*record),
            Self::Itm(_) | Self::Passage(_) => None,
        }
    }
}

impl From<FlowRecord> for Held {
    fn from(record: FlowRecord) -> Self {
        let Element::Block(block) = record.element else { return Self::Other(Box::new(record)) };
        HeldBlock::of(block, record.at).map_or_else(|| Self::Other(Box::new(record)), Self::Block)
    }
}

impl HeldBlock {
    /// `None` if it is too long for this form.
    fn of(block: Block, at: CaptureOffset) -> Option<Self> {
        let Block { start, end, isa, instructions, last, ending, span } = block;
        let end = Location::new(end, isa);
        let bytes = u32::try_from(end.bytes_since(start)).ok()?;
        let last_bytes = u8::try_from(end.bytes_since(last)).ok()?;
        Some(Self { span, at, start, bytes, instructions, ending, isa, last_bytes })
    }
}

impl From<HeldBlock> for FlowRecord {
    fn from(held: HeldBlock) -> Self {
        let HeldBlock { span, at, start, bytes, instructions, ending, isa, last_bytes } = held;
        let end = Location::new(start, isa).after(bytes.into());
        let last = end.moved(-i64::from(last_bytes)).address;
        Self {
            element: Element::Block(Block { start, end: end.address, isa, instructions, last, ending, span }),
            at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::flow::EventKind;
    use tracewalk_analysis::samples::{block, event, taken};

    fn record(element: Element) -> FlowRecord {
        FlowRecord { element, at: CaptureOffset(7) }
    }

    #[test]
    fn what_is_held_comes_out_as_it_went_in() {
        let across_the_end = {
            let Element::Block(block) = block(0xffff_fff0, 0xffff_fff4, taken()) else {
                unreachable!("a block")
            };
            Element::Block(Block {
                end: Address::new(0),
                last: Address::new(0xffff_fffe),
                instructions: 8,
                ..block
            })
        };
        let elements = [block(0x100, 0x108, taken()), across_the_end, event(EventKind::ExceptionReturn)];
        for element in elements {
            let held = Held::from(record(element));
            assert!(matches!(held, Held::Block(_)) == matches!(element, Element::Block(_)), "{held:?}");
            assert_eq!(
                held.into_flow().map(|record| (record.element, record.at)),
                Some((element, CaptureOffset(7)))
            );
        }
    }

    #[test]
    fn a_block_takes_less_memory_than_its_record() {
        assert!(size_of::<Held>() <= 48 && size_of::<FlowRecord>() > 48, "{}", size_of::<Held>());
    }
}

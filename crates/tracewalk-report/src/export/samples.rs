//! Hand-made records for the exporters' tests.

use std::rc::Rc;

use tracewalk::flow::{Block, BranchKind, Element, Ending, Event, EventKind, Gap, GapReason};
use tracewalk::ids::{Address, Isa, TraceId};
use tracewalk::protocol::{Describe, Field};
use tracewalk::source::PacketItem;
use tracewalk::span::{CaptureOffset, Span, StreamOffset};

use super::{Export, FlowRecord, PacketRecord};
use crate::{Code, Section};

/// Where all elements of these samples are proven.
pub(crate) const SPAN: Span = Span { start: StreamOffset(3), end: StreamOffset(5) };

pub(crate) fn export(exporter: &mut impl Export<FlowRecord>, id: Option<TraceId>, elements: &[Element]) {
    exporter.begin().unwrap();
    exporter.section(&Section { id, protocol: "etmv3", code: Rc::new(Code::unknown()) }).unwrap();
    for &element in elements {
        exporter.record(FlowRecord { element, at: CaptureOffset(7) }).unwrap();
    }
    exporter.end_section().unwrap();
}

/// A block of 16-bit Thumb instructions.
pub(crate) fn block(start: u32, end: u32, ending: Ending) -> Element {
    Element::Block(Block {
        start: Address(start),
        end: Address(end),
        isa: Isa::T32,
        instructions: (end - start) / 2,
        last: Address(end - 2),
        ending,
        span: SPAN,
    })
}

pub(crate) fn taken() -> Ending {
    Ending::Branch { kind: BranchKind::Direct, taken: true, link: false, returns: None }
}

pub(crate) fn not_taken() -> Ending {
    Ending::Branch { kind: BranchKind::Direct, taken: false, link: false, returns: None }
}

pub(crate) fn interrupted() -> Ending {
    Ending::Interrupted
}

pub(crate) fn event(kind: EventKind) -> Element {
    Element::Event(Event { kind, span: SPAN })
}

pub(crate) fn gap(reason: GapReason) -> Element {
    Element::Gap(Gap { reason, span: SPAN })
}

/// A packet with a field of each kind.
pub(crate) struct ISync;

impl Describe for ISync {
    fn name(&self) -> &'static str {
        "i_sync"
    }

    fn fields(&self, visit: &mut dyn FnMut(&'static str, Field<'_>)) {
        visit("reason", Field::Number(1));
        visit("addr", Field::Address(Address(0x0800_0306)));
        visit("isa", Field::Text("T32"));
    }
}

/// Exports packets that stand one behind the other, of a source without ID.
pub(crate) fn packets<E>(exporter: &mut E, contents: &[(PacketItem<'_>, &[u8])])
where
    E: for<'a> Export<PacketRecord<'a>>,
{
    exporter.begin().unwrap();
    exporter.section(&Section { id: None, protocol: "etmv3", code: Rc::new(Code::unknown()) }).unwrap();
    let mut at = CaptureOffset(0);
    for &(content, bytes) in contents {
        exporter.record(PacketRecord { content, at, bytes }).unwrap();
        at.0 += bytes.len() as u64;
    }
    exporter.end_section().unwrap();
}

//! The records that decoding a source gives: program flow, packets, and what an ITM reported, each with its offset in the capture.

use tracewalk::flow::Element;
use tracewalk::ids::TraceId;
use tracewalk::source::PacketItem;
use tracewalk::span::CaptureOffset;

use crate::itm::ItmEvent;

/// A piece of program flow and where the trace says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The piece.
    pub element: Element,
    /// The capture's byte with which the trace that proves it begins.
    pub at: CaptureOffset,
}

/// A piece of a source's bytes.
#[derive(Clone, Copy)]
pub struct PacketRecord<'a> {
    /// What the bytes are.
    pub content: PacketItem<'a>,
    /// Where their first one stands in the capture.
    pub at: CaptureOffset,
    /// The bytes, never none.
    pub bytes: &'a [u8],
}

/// Something that an ITM reported, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItmRecord {
    /// The ITM; `None` if its bytes are the whole capture.
    pub id: Option<TraceId>,
    /// The capture's byte with which it begins.
    pub at: CaptureOffset,
    /// What it reported.
    pub event: ItmEvent,
}

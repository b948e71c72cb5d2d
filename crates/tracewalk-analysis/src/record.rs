//! The records that decoding a source gives: program flow, packets, and what an ITM reported, each with its offset in the capture.

use tracewalk::flow::Element;
use tracewalk::ids::TraceId;
use tracewalk::source::PacketItem;
use tracewalk::span::CaptureOffset;

use crate::itm::ItmEvent;

/// An element of program flow, with its place in the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRecord {
    /// The element.
    pub element: Element,
    /// The capture's byte with which the trace that proves it begins.
    pub at: CaptureOffset,
}

/// A packet, or other bytes of a source.
#[derive(Clone, Copy)]
pub struct PacketRecord<'a> {
    /// The packet, or the reason why the bytes are none.
    pub content: PacketItem<'a>,
    /// The offset of their first byte in the capture.
    pub at: CaptureOffset,
    /// The bytes, never none.
    pub bytes: &'a [u8],
}

/// A report of an ITM, with its place in the capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItmRecord {
    /// The ITM; `None` if its bytes are the whole capture.
    pub id: Option<TraceId>,
    /// The capture's byte with which it begins.
    pub at: CaptureOffset,
    /// What it reported.
    pub event: ItmEvent,
}

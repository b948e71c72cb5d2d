//! The records that decoding a source gives: program flow, packets, and reports of an ITM, each with its offset in the capture.
//!
//! ```
//! use tracewalk::flow::Element;
//!
//! # use tracewalk::{ids::Address, program::Program, protocol::etmv3, source::SourceConfig};
//! # use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Stretch};
//! # let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x00, 0xbf, 0x00, 0xbf])?;
//! # let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
//! # let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
//! # let input = Input { capture: &trace, carrier, rest: None, progress: &NoProgress };
//! // `config`, `program` and `input` are made as in the example of `drive`.
//! // A trace of two instructions: 12 bytes of synchronisation, then an atom for each. The second one completes the block.
//! let mut blocks = Vec::new();
//! Follower::new(&config, &program).flow(&input, |record| {
//!     if let Element::Block(block) = record.element {
//!         blocks.push((record.at.0, block.instructions));
//!     }
//!     Ok(())
//! })?;
//! assert_eq!(blocks, [(13, 2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use tracewalk::flow::Element;
use tracewalk::ids::TraceId;
use tracewalk::source::{Instrumentation, PacketItem};
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
    /// The packet, or the reason why the bytes are not a packet.
    pub content: PacketItem<'a>,
    /// The offset of the first byte in the capture.
    pub at: CaptureOffset,
    /// The bytes, at least one.
    pub bytes: &'a [u8],
}

/// A report of an ITM, with its place in the capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItmRecord {
    /// The ITM; `None` if its bytes are the whole capture.
    pub id: Option<TraceId>,
    /// The protocol.
    pub protocol: Instrumentation,
    /// The capture's byte with which it begins.
    pub at: CaptureOffset,
    /// The ITM's report.
    pub event: ItmEvent,
}

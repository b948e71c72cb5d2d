//! Decodes one source's bytes, of any protocol, to packets or to program flow.
//!
//! [`PacketStream`] runs a protocol's decoder; [`FlowStream`] runs its decoder, its lowering and the flow
//! after them. Both take bytes in pieces of any size, and give the same items however the input was cut.
//!
//! ```
//! use tracewalk::flow::Element;
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::source::{FlowStream, SourceConfig};
//!
//! let mut program = Program::new();
//! program.add(Address::new(0x100), &[0x01, 0x20, 0x70, 0x47])?; // movs r0, #1; bx lr
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! let mut flow = FlowStream::new(&config);
//! let mut instructions = 0;
//! let mut count = |element: Element| {
//!     if let Element::Block(block) = element {
//!         instructions += block.instructions;
//!     }
//! };
//! // A-sync, I-sync at 0x100 in Thumb, two executed instructions.
//! flow.push(&[0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x88], &program, &mut count);
//! flow.finish(&program, &mut count);
//! assert_eq!(instructions, 2);
//! # Ok::<(), tracewalk::program::AddRegionError>(())
//! ```

mod chain;
mod checkpoint;
mod dispatch;
mod flow_stream;
mod memo;
mod packet_stream;
#[cfg(test)]
mod tests;

pub use chain::PacketCounts;
pub use checkpoint::Checkpoint;
pub use dispatch::{Instrumentation, SourceConfig};
pub use flow_stream::FlowStream;
pub use packet_stream::{PacketItem, PacketStream};

//! MTB: the Micro Trace Buffer of Cortex-M0+, M23 and M33.
//!
//! The MTB writes a packet of two words into a part of the chip's SRAM whenever the program counter changes non-sequentially, and
//! wraps when the buffer is full. A memory dump is the whole interface; no trace port is needed. [`order`] finds the packets in a
//! dump by the registers, [`Decoder`] reads them, [`Lowering`] turns them into directives.
//!
//! The packets do not show whether a change of the program counter was an exception, and which; flow works
//! this out from the program (CoreSight MTB-M0+ Technical Reference Manual, DDI 0486B, 2.3.1).
//!
//! ```
//! use tracewalk::protocol::{Item, Packets, mtb};
//!
//! // A buffer of 32 bytes that has wrapped: its oldest packet stands at offset 16.
//! let dump = [0x0000_0300_u32, 0x302, 0x304, 0x306, 0x100, 0x102, 0x200, 0x202].map(u32::to_le_bytes).concat();
//! let registers = mtb::Registers { position: 0x14, master: 0x8000_0001, flow: None, base: None };
//! let config = mtb::Config::from_registers(registers);
//! let dump = mtb::order::Dump::new(&dump, None);
//! let layout = mtb::order::by_registers(dump, &config).expect("the dump holds the buffer");
//!
//! let mut sources = Vec::new();
//! let mut packets = Packets::new(mtb::Decoder);
//! for piece in layout.pieces {
//!     packets.push(&dump.data[piece.bytes], &mut |item, _span, _bytes: &[u8]| {
//!         if let Item::Packet(packet) = item {
//!             sources.push(mtb::Packet::source(packet).get());
//!         }
//!     });
//! }
//! assert_eq!(sources, [0x100, 0x200, 0x300, 0x304]);
//! ```

mod config;
mod decode;
mod encode;
mod lower;
pub mod order;
mod packet;
#[cfg(test)]
mod tests;

use crate::directive::Rules;
use crate::ids::{Address, TraceId};
use crate::protocol::Protocol;
pub use config::{BufferSize, Config, Registers, Watermark};
pub use decode::Decoder;
pub use lower::{Lowering, RULES};
pub use packet::{ExceptionReturn, Magic, PACKET_BYTES, Packet};

/// A source of ordered packets, as [`order`] finds them. The rest of the buffer's configuration does not
/// matter for decoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The address at which the processor was found halted, if tracing continued up to there.
    pub halted_at: Option<Address>,
}

impl Protocol for Source {
    const NAME: &'static str = "mtb";

    type Decoder = Decoder;
    type Lowering = Lowering;

    fn decoder(&self) -> Decoder {
        Decoder
    }

    fn lowering(&self) -> Lowering {
        Lowering::new().halted_at(self.halted_at)
    }

    fn rules(&self) -> Rules {
        RULES
    }

    fn trace_id(&self) -> Option<TraceId> {
        None
    }
}

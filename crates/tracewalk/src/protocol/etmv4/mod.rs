//! ETMv4 and ETE: the output of trace units of Cortex-M7, ARMv8 and ARMv9 processors.
//!
//! ETMv4.0 to 4.6 (IHI 0064) and the Embedded Trace Extension 1.0 to 1.3 of ARMv9 (DDI 0487, "The Embedded
//! Trace Extension") are one protocol with additions; the [version](Version) determines which additions
//! exist.
//!
//! One E or N atom passes everything up to and including the next P0 instruction: a branch or an instruction
//! barrier. Addresses come in packets of their own, after the atom. A unit may trace speculatively: atoms and
//! all other P0 elements wait in a queue until they are committed.
//!
//! ```
//! use tracewalk::protocol::{Describe, Item, Packets, etmv4};
//!
//! // A Cortex-A53.
//! let registers = etmv4::Registers {
//!     trcconfigr: Some(0x1),
//!     trcidr0: Some(0x2800_0ea1),
//!     trcidr1: Some(0x4100_f403),
//!     trcidr2: Some(0x488),
//!     ..etmv4::Registers::default()
//! };
//! let config = etmv4::Config::from_registers(registers, Some(etmv4::Profile::Ar))?;
//! let mut packets = Packets::new(etmv4::Decoder::new(&config));
//! let mut names = Vec::new();
//! let mut note = |item: Item<etmv4::Packet>, _span, _bytes: &[u8]| {
//!     if let Item::Packet(packet) = item {
//!         names.push(packet.name());
//!     }
//! };
//! packets.push(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x01, 0x00, 0x04], &mut note);
//! packets.push(&[0x9d, 0x20, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0xf7], &mut note);
//! packets.finish(&mut note);
//! assert_eq!(names, ["a_sync", "trace_info", "trace_on", "address", "atom"]);
//! # Ok::<(), etmv4::ConfigError>(())
//! ```

mod address;
mod atoms;
mod conditional;
mod config;
mod cores;
mod decode;
mod describe;
mod encode;
mod fields;
mod lower;
mod packet;
mod registers;
#[cfg(test)]
mod tests;

use crate::directive::Rules;
pub use crate::ids::Profile;
use crate::ids::TraceId;
use crate::protocol::Protocol;
pub use address::{AddressForm, AddressUnit, SentAddress};
pub use atoms::Atoms;
pub use config::{ConditionalResults, Config, ConfigError, Version};
pub use cores::{Certainty, Core};
pub use decode::Decoder;
pub use encode::{EncodeError, Encoder};
pub use lower::Lowering;
pub use packet::{
    AddressInterpretation, AddressPacket, Cancel, ConditionalInstruction, ConditionalResult, Context,
    CycleCount, DataSynchronisation, Exception, Instrumentation, KeyedResult, Packet, Q, Timestamp,
    TraceInfo,
};
pub use registers::Registers;

impl Protocol for Config {
    const NAME: &'static str = "etmv4";

    type Decoder = Decoder;
    type Lowering = Lowering;

    fn decoder(&self) -> Decoder {
        Decoder::new(self)
    }

    fn lowering(&self) -> Lowering {
        Lowering::new(self)
    }

    fn rules(&self) -> Rules {
        Self::rules(self)
    }

    fn trace_id(&self) -> Option<TraceId> {
        self.trace_id
    }
}

//! PFT: Program Flow Trace, the output of a Program Trace Macrocell (PTM). Architecture versions 1.0 and 1.1.
//!
//! Cortex-A9 (1.0), A12, A15 and A17 (1.1). The source is the PFT architecture specification, IHI 0035B;
//! citations like "4.3" are sections of it.
//!
//! One E or N atom passes everything up to and including the next waypoint: a branch or an instruction
//! barrier. Branch packets name the targets of indirect branches; waypoint updates state how far execution
//! came before an exception.
//!
//! ```
//! use tracewalk::protocol::{Describe, Item, Packets, pft};
//!
//! let config = pft::Config::for_core("cortex-a15").expect("a known core");
//! let mut packets = Packets::new(pft::Decoder::new(&config));
//! let mut names = Vec::new();
//! let mut note = |item: Item<pft::Packet>, _span, _bytes: &[u8]| {
//!     if let Item::Packet(packet) = item {
//!         names.push(packet.name());
//!     }
//! };
//! packets.push(&[0, 0, 0, 0, 0, 0x80, 0x08, 0x00, 0x80], &mut note);
//! packets.push(&[0x00, 0xc0, 0x21, 0x84, 0x15], &mut note);
//! packets.finish(&mut note);
//! assert_eq!(names, ["a_sync", "i_sync", "atom", "branch"]);
//! ```

mod config;
mod cycle_count;
mod decode;
mod encode;
mod lower;
mod packet;
#[cfg(test)]
mod tests;

use crate::directive::Rules;
use crate::ids::TraceId;
use crate::protocol::Protocol;
pub use crate::protocol::{ContextIdSize, ISyncReason, Registers};
pub use config::{Config, ConfigError, Core, Version};
pub use decode::Decoder;
pub use encode::{EncodeError, Encoder};
pub use lower::Lowering;
pub use packet::{Atom, Atoms, Branch, ExceptionInformation, ISync, Packet, Timestamp, WaypointUpdate};

impl Protocol for Config {
    const NAME: &'static str = "pft";

    type Decoder = Decoder;
    type Lowering = Lowering;

    fn decoder(&self) -> Decoder {
        Decoder::new(self)
    }

    fn lowering(&self) -> Lowering {
        Lowering::new()
    }

    fn rules(&self) -> Rules {
        Self::rules(self)
    }

    fn trace_id(&self) -> Option<TraceId> {
        self.trace_id
    }
}

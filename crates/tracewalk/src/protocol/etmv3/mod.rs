//! ETMv3: the Embedded Trace Macrocell, architecture versions 3.0 to 3.5.
//!
//! Cortex-M3, M4, A5, A7, A8, R4, R5, ARM11 and ARM9. The source is the ETM architecture specification, IHI
//! 0014Q; tables cited by number are from it.
//!
//! One E or N atom passes one instruction; branch packets name the targets of indirect branches.
//!
//! ```
//! use tracewalk::protocol::{Describe, Item, Packets, etmv3};
//!
//! let config = etmv3::Config::for_core("cortex-m3").expect("a known core");
//! let mut packets = Packets::new(etmv3::Decoder::new(&config));
//! let mut names = Vec::new();
//! let mut note = |item: Item<etmv3::Packet>, _span, _bytes: &[u8]| {
//!     if let Item::Packet(packet) = item {
//!         names.push(packet.name());
//!     }
//! };
//! packets.push(&[0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84], &mut note);
//! packets.finish(&mut note);
//! assert_eq!(names, ["a_sync", "i_sync", "p_header"]);
//! ```

mod compression;
mod config;
mod decode;
mod encode;
mod exception;
mod lower;
mod packet;
#[cfg(test)]
mod tests;

use crate::directive::Rules;
use crate::ids::TraceId;
use crate::protocol::Protocol;
pub use crate::protocol::{ContextIdSize, ISyncReason, Registers};
pub use config::{Config, ConfigError, Core, DataTrace};
pub use decode::Decoder;
pub use encode::{EncodeError, Encoder};
pub use exception::{BranchException, ExceptionInformation};
pub use lower::Lowering;
pub use packet::{Atom, Branch, DataAddress, ISync, PHeader, Packet, Tag};

impl Protocol for Config {
    const NAME: &'static str = "etmv3";

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

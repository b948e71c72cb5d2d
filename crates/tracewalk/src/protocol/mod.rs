//! The trace protocols: bytes → packets (what the trace unit reports) → directives (what the packets mean).
//!
//! Each protocol is a folder with the same files: `config` (registers → named fields), `packet` (the packet
//! table), `decode`, `encode`, `lower`, `tests`; `itm` and `stm` have no `config` and no `lower`. This module holds the protocols' common parts: the shape of
//! a decoder, the reasons why bytes are malformed, fields that several protocols lay out alike, and
//! [`Packets`], which feeds a decoder piece by piece and accounts for every byte. To decode without knowing
//! the protocol, use [`PacketStream`](crate::PacketStream).
//!
//! ```
//! use tracewalk::protocol::{Describe, Item, Packets, etmv3};
//!
//! let config = etmv3::Config::for_core("cortex-m3").expect("a known core");
//! let mut packets = Packets::new(etmv3::Decoder::new(&config));
//! let mut names = Vec::new();
//! // A-sync, I-sync at 0x100 in Thumb, and a P-header of two executed instructions.
//! let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x88];
//! packets.push(&trace, &mut |item: Item<etmv3::Packet>, span: tracewalk::span::Span, _: &[u8]| {
//!     if let Item::Packet(packet) = item {
//!         names.push((packet.name(), span.bytes()));
//!     }
//! });
//! assert_eq!(names, [("a_sync", 6), ("i_sync", 6), ("p_header", 1)]);
//! ```

mod a_sync;
pub mod branch_address;
mod compression;
mod contract;
mod decode;
mod describe;
pub mod etmv3;
pub mod etmv4;
mod i_sync_reason;
mod item;
pub mod itm;
mod known_core;
mod lower;
mod malformation;
pub(crate) mod memoised;
pub mod mtb;
mod packets;
pub mod pft;
mod registers;
mod security_bits;
mod step;
pub mod stm;
mod synchronisation;
pub mod timestamp;
mod unknown_core;

pub use a_sync::ASync;
pub use contract::Protocol;
pub use decode::Decode;
pub use describe::{Describe, Field};
pub use i_sync_reason::ISyncReason;
pub use item::{Item, TakeItem};
pub use known_core::KnownCore;
pub use lower::{Emit, Loss, Lower};
pub use malformation::{Fault, Malformation};
pub use packets::Packets;
pub use registers::{ContextIdSize, Registers};
pub use security_bits::SecurityBits;
pub use step::Step;
pub use unknown_core::UnknownCore;

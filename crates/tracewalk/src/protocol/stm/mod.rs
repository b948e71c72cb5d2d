//! STM: data that software and hardware write to the channels of a system trace macrocell, with times.
//!
//! MIPI's System Trace Protocol 2 as Arm's STMs write it (STM-101: DDI 0444B; STM-500: DDI 0528B). Its unit is the half byte; the low half of a
//! byte comes first, packets begin at any half byte, and values have their highest half byte first. An item's span begins at the
//! byte in which the item begins; the byte that two items share belongs to the second, or to the bytes that are no packet. The
//! span of a null packet in the low half of a byte is thus empty.
//!
//! An STM does not trace execution, so there is no lowering.
//!
//! ```
//! use tracewalk::protocol::{Item, Packets, stm};
//!
//! // 21 half bytes of ones and a zero (ASYNC), version 3, master 0x41, a byte of data.
//! let trace = [&[0xff; 10][..], &[0x0f, 0x0f, 0x30, 0x41, 0x41, 0x14]].concat();
//! let mut sender = stm::Sender::default();
//! let mut written = Vec::new();
//! let mut packets = Packets::new(stm::Decoder::new());
//! let mut note = |item, _span, _bytes: &[u8]| {
//!     if let Item::Packet(packet) = item {
//!         sender = sender.after(&packet);
//!         if let stm::Packet::Data { value, .. } = packet {
//!             written.push((sender.master, value));
//!         }
//!     }
//! };
//! packets.push(&trace, &mut note);
//! packets.finish(&mut note);
//! assert_eq!(written, [(0x41, 0x41)]);
//! ```

mod decode;
mod encode;
mod nibbles;
mod packet;
#[cfg(test)]
mod tests;

pub use decode::Decoder;
pub use encode::Encoder;
pub use packet::{Packet, Sender, Size};

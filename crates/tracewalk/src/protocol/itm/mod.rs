//! ITM: writes of software to stimulus ports, events that the DWT watched, and timestamps.
//!
//! ARMv7-M Architecture Reference Manual, DDI 0403E, appendix D4, "Debug ITM and DWT Packet Protocol". An ITM
//! sends beside a core's trace unit, under a trace ID of its own, or alone over SWO. An ITM does not trace
//! execution, so there is no lowering: tracewalk reports the packets as they are.
//!
//! ```
//! use tracewalk::protocol::{Item, Packets, itm};
//!
//! let mut text = String::new();
//! let mut packets = Packets::new(itm::Decoder::new());
//! packets.push(&[0x01, b'h', 0x01, b'i', 0x70], &mut |item, _span, _bytes: &[u8]| {
//!     if let Item::Packet(itm::Packet::Stimulus { port: 0, value, .. }) = item {
//!         text.extend(char::from_u32(value));
//!     }
//! });
//! assert_eq!(text, "hi");
//! ```

mod decode;
mod encode;
mod packet;
#[cfg(test)]
mod tests;

pub use decode::Decoder;
pub use encode::encode;
pub use packet::{Counters, ExceptionAction, Packet, Size, TimestampDelay};

//! Bytes → packets.

use super::packet::{PACKET_BYTES, Packet};
use crate::protocol::{Decode, Malformation, Step};

/// Reads packets from the buffer's bytes, oldest first.
///
/// The decoder has no state: packets have a fixed size and need no synchronisation. The input must start at a
/// packet, as [`order`](super::order) ensures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Decoder;

impl Decode for Decoder {
    type Packet = Packet;

    fn decode(&mut self, input: &[u8]) -> Step<Packet> {
        let Some(&[a, b, c, d, e, f, g, h]) = input.first_chunk::<PACKET_BYTES>() else {
            return Step::NeedInput;
        };
        let packet = Packet::from_words(u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        Step::Packet { packet, bytes: PACKET_BYTES }
    }

    fn truncated(&self, _input: &[u8]) -> Malformation {
        Malformation::Truncated { packet: "mtb" }
    }

    fn desynchronise(&mut self) {}
}

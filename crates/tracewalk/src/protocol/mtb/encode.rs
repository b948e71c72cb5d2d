//! Packets → bytes.

use super::packet::{PACKET_BYTES, Packet};

impl Packet {
    /// The packet as in memory.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; PACKET_BYTES] {
        let [first, second] = self.words();
        let [a, b, c, d] = first.to_le_bytes();
        let [e, f, g, h] = second.to_le_bytes();
        [a, b, c, d, e, f, g, h]
    }
}

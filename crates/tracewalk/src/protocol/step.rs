//! A decoder's result.

use super::malformation::Malformation;

/// The result of decoding the start of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<P> {
    /// A packet of `bytes` bytes, at least one unless it ends in the byte in which it begins.
    Packet {
        /// The packet.
        packet: P,
        /// The packet's length in bytes.
        bytes: usize,
    },
    /// `bytes` bytes, at least one, that are no packet. The decoder searches for synchronisation after them.
    Malformed {
        /// Why the bytes are no packet.
        reason: Malformation,
        /// The number of bytes that are certainly malformed.
        bytes: usize,
    },
    /// `bytes` bytes, at least one, passed over in the search for synchronisation.
    Searched {
        /// How many.
        bytes: usize,
    },
    /// The input ends inside a packet.
    NeedInput,
}

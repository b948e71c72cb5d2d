//! The answer of a decoder.

use super::malformation::Malformation;

/// What a decoder found at the start of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<P> {
    /// A packet of `bytes` bytes, at least one.
    Packet {
        /// The packet.
        packet: P,
        /// How many bytes it takes.
        bytes: usize,
    },
    /// `bytes` bytes, at least one, that are no packet. The decoder searches for synchronisation after them.
    Malformed {
        /// What is wrong with them.
        reason: Malformation,
        /// How many bytes are certain to belong to it.
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

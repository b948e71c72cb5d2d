//! The contents of a dump's entries, and how neighbours fit together.

use tracewalk::ids::Address;
use tracewalk::protocol::mtb::{Magic, PACKET_BYTES, Packet};

/// How far code runs without a taken branch, if there is no image. Long stretches are rare, and the shorter the limit,
/// the fewer pairs fit by chance.
pub(super) const USUAL_REACH: u64 = 2048;

/// Whether straight code may lead from `from` to `to`, judged by the distance alone.
#[must_use]
pub fn within_reach(from: Address, to: Address) -> bool {
    to.offset_from(from).is_some_and(|bytes| bytes <= USUAL_REACH)
}

/// The content of an entry of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// Never written: zeros, or the same word twice that cannot be an address of code.
    Empty,
    /// Both addresses may hold code.
    Packet(Packet),
    /// Only one of the two may hold code: the way to a crash, or its consequence.
    Stray(Packet),
    /// Neither may hold code.
    Other,
    /// The dump does not hold the entry.
    Missing,
}

/// How two neighbours fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pair {
    Fits,
    /// Tracing started at the second packet.
    Restarts,
    Breaks,
    /// One of them is not a packet.
    None,
}

pub(super) const PACKET_SCORE: i64 = 1;
pub(super) const PACKET: u64 = PACKET_BYTES as u64;

impl Pair {
    pub(super) const fn score(self) -> i64 {
        match self {
            Self::Fits => 2,
            Self::Restarts | Self::None => 0,
            // One break among packets that fit must not end a stretch; one among packets that do not should.
            Self::Breaks => -3,
        }
    }
}

impl Entry {
    pub(super) fn at(bytes: [u8; PACKET_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        let [first, second] = [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])];
        let packet = Packet::from_words(first, second);
        let commanded = |address, allowed| allowed && Magic::at(address).is_some();
        let source = may_hold_code(packet.source()) || commanded(packet.source(), packet.atomic());
        let destination =
            may_hold_code(packet.destination()) || commanded(packet.destination(), !packet.atomic());
        // A branch may go anywhere but starts in code; an exception may occur anywhere but goes to code.
        let possible = if packet.atomic() { destination } else { source };
        match (first == second, source && destination) {
            (true, _) if first == 0 => Self::Empty,
            (_, true) => Self::Packet(packet),
            (false, false) if possible => Self::Stray(packet),
            (true, false) => Self::Empty,
            (false, false) => Self::Other,
        }
    }

    pub(super) const fn packet(self) -> Option<Packet> {
        match self {
            Self::Packet(packet) | Self::Stray(packet) => Some(packet),
            Self::Empty | Self::Other | Self::Missing => None,
        }
    }
}

/// Whether the M profile's memory map allows execution at an address. Peripherals, devices and the system are excluded
/// (ARMv6-M Architecture Reference Manual, DDI 0419E, B3.1).
pub(super) fn may_hold_code(address: Address) -> bool {
    matches!(address.get(), 0x0000_0000..=0x3fff_ffff | 0x6000_0000..=0x9fff_ffff)
}

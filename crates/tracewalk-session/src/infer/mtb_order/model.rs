//! The result of a search, and the knowledge that may narrow it.

use tracewalk::protocol::mtb::order::Layout;

use super::entry::PACKET;
use super::evidence::Evidence;

/// The result of a search without registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// The best reading.
    pub best: Reading,
    /// The second best; `None` if there is only one. If it is nearly as good, the registers are needed.
    pub runner_up: Option<Reading>,
}

/// One way to read a dump, and its evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The places of the packets.
    pub layout: Layout,
    /// The evidence for and against the reading.
    pub evidence: Evidence,
}

/// The information in one of the registers alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Narrowing {
    /// The buffer's size in bytes, a power of two (MASTER.MASK).
    pub(crate) size: Option<u64>,
    /// The place of the next packet: the low bits of its address (POSITION.POINTER), and whether the buffer has wrapped
    /// (POSITION.WRAP).
    pub(crate) next: Option<(u32, bool)>,
}

impl Narrowing {
    /// The largest trace buffer of a chip; a register with a larger size is ignored.
    const LARGEST_BUFFER: u64 = 4 << 20;

    /// The buffer's size in packets.
    pub(super) fn packets(self) -> Option<usize> {
        let size = self.size.filter(|size| *size <= Self::LARGEST_BUFFER)?;
        usize::try_from(size / PACKET).ok()
    }
}

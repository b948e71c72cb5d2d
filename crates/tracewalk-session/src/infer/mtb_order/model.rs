//! What a search finds, and what may be known before.

use tracewalk::protocol::mtb::order::Layout;

use super::entry::PACKET;
use super::evidence::Evidence;

/// What a search without registers found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guess {
    /// The best reading.
    pub best: Reading,
    /// The second best; `None` where there is only one. Where it is nearly as good, the registers are needed.
    pub runner_up: Option<Reading>,
}

/// One way to read a dump, and what speaks for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Where the packets stand.
    pub layout: Layout,
    /// What speaks for it and against it.
    pub evidence: Evidence,
}

/// The information in one of the registers alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Narrowing {
    /// How many bytes the buffer has, a power of two (MASTER.MASK).
    pub(crate) size: Option<u64>,
    /// Where the next packet would be written: the low bits of its address (POSITION.POINTER), and whether the buffer has
    /// wrapped (POSITION.WRAP).
    pub(crate) next: Option<(u32, bool)>,
}

impl Narrowing {
    /// No chip has a larger trace buffer; a register with a larger size is ignored.
    const LARGEST_BUFFER: u64 = 4 << 20;

    /// How many packets the buffer has.
    pub(super) fn packets(self) -> Option<usize> {
        let size = self.size.filter(|size| *size <= Self::LARGEST_BUFFER)?;
        usize::try_from(size / PACKET).ok()
    }
}

//! What speaks for a reading and against it.

use std::fmt;
use std::ops::Range;

use super::entry::{PACKET_SCORE, Pair};

/// What speaks for a reading and against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The bytes of the dump taken for packets, or for the buffer where it has wrapped.
    pub bytes: Range<usize>,
    /// Whether the buffer has wrapped.
    pub wrapped: bool,
    /// How many packets.
    pub packets: usize,
    /// Neighbours of which the second begins where the first went.
    pub fits: usize,
    /// Neighbours of which the second says that tracing started there (S).
    pub restarts: usize,
    /// Neighbours that do not fit together, without a reason in the packets.
    pub breaks: usize,
    /// Whether the place where oldest and newest packet meet is such a break, as it is where a buffer has wrapped
    /// unless it is by chance.
    pub breaks_at_wrap: bool,
    /// Entries outside these bytes that were never written: zeros, or a pattern that is no packet.
    pub unwritten: usize,
    /// What shows that the newest packet is the newest one.
    pub end: Ending,
}

/// What stands after the newest packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Something that shows that it is the newest one.
    Shown,
    /// Memory that the dump does not hold: newer packets may stand there. If the buffer is larger than what is held, the
    /// next larger one has these bytes as well: addresses, or places in a dump whose address nobody said.
    Unheld(Range<u64>),
    /// A packet that goes on from it, as in a loop.
    GoesOn,
}

impl Evidence {
    /// A number to compare readings by.
    #[must_use]
    pub fn score(&self) -> i64 {
        let count = |pairs: usize| i64::try_from(pairs).unwrap_or(i64::MAX);
        let entries = count(self.packets).saturating_mul(PACKET_SCORE);
        let fits = count(self.fits).saturating_mul(Pair::Fits.score());
        let breaks = count(self.breaks).saturating_mul(Pair::Breaks.score());
        entries.saturating_add(fits).saturating_add(breaks)
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, packets, fits, restarts, breaks, .. } = self;
        write!(f, "{packets} packets in bytes 0x{:x}..0x{:x}", bytes.start, bytes.end)?;
        f.write_str(match (self.wrapped, self.breaks_at_wrap) {
            (false, _) => ", not wrapped",
            (true, true) => ", wrapped, with a break where the newest meets the oldest",
            (true, false) => ", wrapped, without a break that shows where",
        })?;
        write!(f, "; {fits} continue the one before, {restarts} start anew, {breaks} do neither")
    }
}

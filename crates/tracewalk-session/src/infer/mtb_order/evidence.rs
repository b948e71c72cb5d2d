//! The evidence for and against a reading.

use std::fmt;
use std::ops::Range;

use super::entry::{PACKET_SCORE, Pair};

/// The evidence for and against a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// The bytes of the dump read as packets, or as the buffer if it has wrapped.
    pub bytes: Range<usize>,
    /// Whether the buffer has wrapped.
    pub wrapped: bool,
    /// The number of packets.
    pub packets: usize,
    /// The number of pairs whose second packet begins at the destination of the first.
    pub fits: usize,
    /// The number of pairs whose second packet states that tracing started there (S).
    pub restarts: usize,
    /// The number of pairs that do not fit together, without a reason in the packets.
    pub breaks: usize,
    /// Whether the pair of newest and oldest packet is such a break. In a buffer that has wrapped it is, unless the two
    /// fit by chance.
    pub breaks_at_wrap: bool,
    /// Entries outside these bytes that were never written: zeros, or a pattern that is not a packet.
    pub unwritten: usize,
    /// The evidence in memory that the newest packet is the newest one.
    pub end: Ending,
}

/// The memory after the newest packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its content proves that the packet is the newest.
    Shown,
    /// The dump does not hold it, so that newer packets may be there. If the buffer is larger than the dump's part, the
    /// next larger one includes these bytes: addresses, or places in a dump of unknown address.
    Unheld(Range<u64>),
    /// A packet that continues the newest one, as in a loop.
    GoesOn,
}

impl Evidence {
    /// The score by which readings are compared.
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
        write!(f, "; {fits} continue the previous packet, {restarts} restart, {breaks} are unexplained")
    }
}

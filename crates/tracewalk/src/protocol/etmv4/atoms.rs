//! Atoms, and the headers that stand for strings of them.

use crate::directive::Waypoints;

/// One to 24 E and N atoms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Atoms {
    /// Invariant: 1 to 24.
    count: u8,
    /// Bit 0 is the oldest atom; set for E. Invariant: no bit from `count` on.
    executed: u32,
}

impl Atoms {
    /// The most atoms in a packet.
    pub const MOST: u8 = 24;

    /// One atom: E if the instruction was `executed`, else N.
    #[must_use]
    pub const fn one(executed: bool) -> Self {
        Self { count: 1, executed: executed as u32 }
    }

    /// The same atoms and one more; `None` if there are 24 already.
    #[must_use]
    pub const fn and(self, executed: bool) -> Option<Self> {
        if self.count == Self::MOST {
            return None;
        }
        Some(Self { count: self.count + 1, executed: self.executed | (executed as u32) << self.count })
    }

    /// The number of atoms.
    #[must_use]
    pub const fn count(self) -> u8 {
        self.count
    }

    /// For each atom, oldest first, whether it is E.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = bool> + ExactSizeIterator {
        (0..self.count).map(move |bit| self.executed >> bit & 1 != 0)
    }

    /// The waypoints that these atoms report.
    #[inline]
    #[must_use]
    pub(super) const fn waypoints(self) -> Waypoints {
        // 24 atoms are few enough.
        match Waypoints::new(self.count as u32, self.executed) {
            Some(waypoints) => waypoints,
            None => Waypoints::NONE,
        }
    }

    /// The packet's format, 1 to 6; `None` if no header stands for these atoms.
    #[must_use]
    pub fn format(self) -> Option<u8> {
        let header = self.header()?;
        Some(match header {
            0b1111_0110 | 0b1111_0111 => 1,
            0b1101_1000..=0b1101_1011 => 2,
            0b1111_1000..=0b1111_1111 => 3,
            0b1101_1100..=0b1101_1111 => 4,
            0b1101_0101..=0b1101_0111 | 0b1111_0101 => 5,
            _ => 6,
        })
    }

    /// The atoms of an atom header; `None` for every other header.
    #[inline]
    #[must_use]
    pub(super) const fn from_header(header: u8) -> Option<Self> {
        /// Bit 5 makes the last atom of format 6 an N.
        const LAST_IS_N: u8 = 0b0010_0000;
        const LEAST: u8 = 3;
        let (count, executed) = match header {
            // Format 6: E atoms, and one more.
            0b1100_0000..=0b1101_0100 | 0b1110_0000..=0b1111_0100 => {
                let before = (header & 0b1_1111) + LEAST;
                let last = if header & LAST_IS_N == 0 { 1 << before } else { 0 };
                (before + 1, ((1 << before) - 1) | last)
            }
            // Format 5, oldest atom on the right.
            0b1101_0101 => (5, 0b00000),
            0b1101_0110 => (5, 0b01010),
            0b1101_0111 => (5, 0b10101),
            0b1111_0101 => (5, 0b11110),
            // Format 2.
            0b1101_1000..=0b1101_1011 => (2, (header & 0b11) as u32),
            // Format 4.
            0b1101_1100 => (4, 0b1110),
            0b1101_1101 => (4, 0b0000),
            0b1101_1110 => (4, 0b1010),
            0b1101_1111 => (4, 0b0101),
            // Format 1.
            0b1111_0110 | 0b1111_0111 => (1, (header & 0b1) as u32),
            // Format 3.
            0b1111_1000..=0b1111_1111 => (3, (header & 0b111) as u32),
            0b0000_0000..=0b1011_1111 => return None,
        };
        Some(Self { count, executed })
    }

    /// The header; `None` if these atoms take several packets.
    #[must_use]
    pub(super) fn header(self) -> Option<u8> {
        (0b1100_0000..=0b1111_1111).find(|&header| Self::from_header(header) == Some(self))
    }

    /// The atoms as letters.
    pub(super) fn letters(self, letters: &mut [u8; Self::MOST as usize]) -> &str {
        for (letter, executed) in letters.iter_mut().zip(self.iter()) {
            *letter = if executed { b'E' } else { b'N' };
        }
        let letters = letters.get(..usize::from(self.count)).unwrap_or_default();
        core::str::from_utf8(letters).unwrap_or_default()
    }
}

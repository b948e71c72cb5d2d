//! Putting a decoder's or a lowering's state aside, and taking it up again where the same comes back.
//!
//! Programs loop, and so do their traces: the same bytes come in the same state again and again. What they meant the
//! first time they mean the next time. `source` remembers it; here is what it has to ask for that.

use core::hash::Hash;

use crate::span::{Span, StreamOffset};

/// Something whose state can be put aside.
pub(crate) trait Resume {
    /// What plain packets depend on and change. Spans in it are [`relative`](Span::relative_to).
    type State: Clone + core::fmt::Debug + Eq + Hash;

    /// The state in front of the byte at `at`; `None` while it is one that few packets leave behind.
    fn state(&self, at: StreamOffset) -> Option<Self::State>;

    /// Goes on in this state in front of the byte at `at`. What is no part of it is as plain packets left it: unchanged.
    fn resume(&mut self, state: &Self::State, at: StreamOffset);
}

/// A decoder of a protocol that has plain packets: short, frequent, and without a meaning that differs from one time to
/// the next, as that of a timestamp does.
pub(crate) trait Windows: Resume + super::Decode {
    /// How many of the next bytes to look up together: packets that seem to be plain. 0 where the next one does not. In
    /// step only; a guess, and the decoder itself says what they are.
    fn window(&self, bytes: [u8; 8]) -> usize;

    /// Whether the packet is plain.
    fn is_plain(packet: &Self::Packet) -> bool;
}

impl Span {
    /// The span, told from `origin` on; it may lie in front of it.
    #[inline]
    #[must_use]
    pub(crate) const fn relative_to(self, origin: StreamOffset) -> Self {
        Self {
            start: StreamOffset(self.start.0.wrapping_sub(origin.0)),
            end: StreamOffset(self.end.0.wrapping_sub(origin.0)),
        }
    }

    /// The way back.
    #[inline]
    #[must_use]
    pub(crate) const fn placed_behind(self, origin: StreamOffset) -> Self {
        Self {
            start: StreamOffset(self.start.0.wrapping_add(origin.0)),
            end: StreamOffset(self.end.0.wrapping_add(origin.0)),
        }
    }
}

/// The window of plain packets at the start of `bytes`: one-byte packets that are even and have bit 7 set or are in
/// `singles`, and a branch address with its exception information, which ends the window because what comes behind it
/// depends on it. `information` are the lengths of addresses whose last byte's bit 6 says that information follows, as a
/// set of bits.
#[inline]
pub(super) fn window(bytes: [u8; 8], singles: &[u8], information: u32) -> usize {
    const LOW_BITS: u64 = 0x0101_0101_0101_0101;
    const HIGH_BITS: u64 = LOW_BITS << 7;
    const EXCEPTION: u64 = 0b0100_0000;
    let word = u64::from_le_bytes(bytes);
    // Headers of branches are odd, and every byte in front of the first one is a packet.
    let branch = (word & LOW_BITS).trailing_zeros() & !7;
    let in_front = below(branch);
    let mut unusual = !word & HIGH_BITS & in_front;
    if unusual != 0 {
        for &single in singles {
            let differs = word ^ (LOW_BITS * u64::from(single));
            // Bit 7 where the byte is zero. Behind such a byte a 1 is taken for one as well: an odd byte, not in front.
            unusual &= !(differs.wrapping_sub(LOW_BITS) & !differs);
        }
        if unusual != 0 {
            return (unusual.trailing_zeros() / 8) as usize;
        }
    }
    let without_branch = (branch / 8) as usize;
    let ends = !word & HIGH_BITS & !in_front;
    // The bit number of the last byte's bit 7, 64 where it is not among these bytes.
    let end = ends.trailing_zeros();
    let length = (end / 8 + 1).wrapping_sub(branch / 8);
    if end == 64 || length > 5 {
        return without_branch;
    }
    if information >> length & 1 == 1 && word >> (end & !7) & EXCEPTION != 0 {
        let ends_of_information = ends & (ends - 1);
        let end_of_information = ends_of_information.trailing_zeros();
        if end_of_information == 64 {
            return without_branch;
        }
        return (end_of_information / 8 + 1) as usize;
    }
    (end / 8 + 1) as usize
}

/// A mask of so many low bits.
#[inline]
pub(crate) const fn below(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_with_a_branch_or_in_front_of_what_is_not_plain() {
        let alternative = |bytes| window(bytes, &[0x76], 0b11_1100);
        let original = |bytes| window(bytes, &[0x76], 0b10_0000);
        // P-headers, then a branch of two bytes.
        assert_eq!(alternative([0x84, 0x88, 0xad, 0x02, 0x84, 0x84, 0x84, 0x84]), 4);
        // An exception return, and a branch with one byte of information; in the original encoding it has none.
        assert_eq!(alternative([0x76, 0xf5, 0x47, 0x1e, 0x84, 0x84, 0x84, 0x84]), 4);
        assert_eq!(original([0x76, 0xf5, 0x47, 0x1e, 0x84, 0x84, 0x84, 0x84]), 3);
        // Two bytes of information, the second of them the ninth byte.
        assert_eq!(alternative([0x84, 0x84, 0xf5, 0xf5, 0xf5, 0xf5, 0x47, 0x80]), 2);
        // An I-sync behind a P-header, and one at once.
        assert_eq!(alternative([0x84, 0x08, 0x21, 0, 0, 0, 0, 0]), 1);
        assert_eq!(alternative([0x08, 0x21, 0, 0, 0, 0, 0, 0]), 0);
        // Nothing but P-headers.
        assert_eq!(alternative([0x84; 8]), 8);
        // Branches of one byte, of five, and one that does not end.
        assert_eq!(alternative([0x03, 0x84, 0, 0, 0, 0, 0, 0]), 1);
        assert_eq!(alternative([0x81, 0x80, 0x80, 0x80, 0x08, 0, 0, 0]), 5);
        assert_eq!(alternative([0x84, 0x84, 0x84, 0x84, 0x84, 0x81, 0x80, 0x80]), 5);
        assert_eq!(alternative([0x81; 8]), 0);
    }
}

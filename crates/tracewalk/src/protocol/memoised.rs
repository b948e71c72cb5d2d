//! Saving a decoder's or a lowering's state, and restoring it when the same situation recurs.
//!
//! Programs loop, and so do their traces: the same bytes occur in the same state repeatedly, and mean the same each time.
//! `source` caches the meaning; these are the traits that it needs.

use core::fmt::Debug;
use core::hash::Hash;

use crate::span::{Span, StreamOffset};

use super::decode::Decode;
use super::lower::Lower;

/// Something whose state can be saved and restored.
pub(crate) trait MemoState {
    /// The state that repeatable packets depend on and change. Its spans are [`relative`](Span::relative_to).
    type State: Clone + Debug + Eq + Hash;

    /// The state before the byte at `at`; `None` for a state that few packets lead to.
    fn state(&self, at: StreamOffset) -> Option<Self::State>;

    /// Continues in this state before the byte at `at`. Repeatable packets leave all other state unchanged.
    fn resume(&mut self, state: &Self::State, at: StreamOffset);
}

/// A decoder of a protocol that has repeatable packets: short, frequent, and with the same meaning each time,
/// unlike a timestamp.
pub(crate) trait MemoDecode: Decode + MemoState {
    /// The next bytes as one word, to look up together; `None` if there are too few. In step only.
    fn word(&self, input: &[u8]) -> Option<u64> {
        input.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// Whether the word stands for a packet of nine bytes. The word's eight bytes determine the ninth.
    fn is_nine_bytes(word: u64) -> bool {
        let _ = word;
        false
    }

    /// The next bytes to look up together: a mask of the first few, of packets that seem to be repeatable; 0
    /// if the next packet does not. In step only. The mask is a guess; [`MemoDecode::is_repeatable`] decides.
    fn window(&self, word: u64) -> u64;

    /// Whether the packet is repeatable.
    fn is_repeatable(packet: &Self::Packet) -> bool;

    /// The number of next packets, of one byte each, that are W atoms alone, and the cycles they count. In
    /// step only.
    fn wait_cycles(&self, input: &[u8]) -> (usize, u64) {
        let _ = input;
        (0, 0)
    }

    /// Whether the next packet leaves the cycles of W atoms before it waiting. In step only.
    fn waits_on(&self, input: &[u8]) -> bool {
        let _ = input;
        false
    }
}

/// A lowering of a protocol that has repeatable packets.
pub(crate) trait MemoLower: Lower + MemoState {
    /// Whether there may be a state to save. If not, no packet is looked up.
    fn has_states(&self) -> bool {
        true
    }

    /// Takes the cycles of W atoms that the next instruction will report. The cycles are not part of the
    /// state, because they differ each time.
    fn take_wait_cycles(&mut self) -> Option<WaitCycles> {
        None
    }

    /// Restores the cycles taken by [`MemoLower::take_wait_cycles`].
    fn put_wait_cycles(&mut self, waited: Option<WaitCycles>) {
        let _ = waited;
    }
}

/// Cycles of W atoms before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitCycles {
    /// How many.
    pub(crate) cycles: u64,
    /// The span of the last W atom.
    pub(crate) span: Span,
}

/// Which last bytes of a branch address announce exception information in bit 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announces {
    /// Any but the first byte.
    AfterTheFirst,
    /// Only the fifth byte.
    AsTheFifth,
}

/// The window of repeatable packets in the next eight bytes: one-byte packets, which are even and have bit 7 set or are in
/// `singles`, and a branch address with its exception information, which ends the window because what comes after it
/// depends on it.
#[inline(always)]
pub(super) fn window<const N: usize>(word: u64, singles: [u8; N], announces: Announces) -> u64 {
    const LOW_BITS: u64 = 0x0101_0101_0101_0101;
    const HIGH_BITS: u64 = LOW_BITS << 7;
    let first_of = |bits: u64| bits & bits.wrapping_neg();
    // Headers of branches are odd, and every byte before the first one is a packet.
    let branch = first_of(word & LOW_BITS);
    let in_front = branch.wrapping_sub(1);
    let mut unusual = !word & HIGH_BITS & in_front;
    for single in singles {
        let differs = word ^ LOW_BITS.wrapping_mul(u64::from(single));
        // The parenthesis has bit 7 set in each zero byte. A 1 after a zero byte is taken for zero as well,
        // but stands for an odd byte, which is not before the branch.
        unusual &= !(differs.wrapping_sub(LOW_BITS) & !differs);
    }
    if unusual != 0 {
        return (first_of(unusual) >> 7).wrapping_sub(1);
    }
    // Bit 7 of the bytes that can be a packet's last one.
    let ends = !word & HIGH_BITS & !in_front;
    let end = first_of(ends);
    let announced = match announces {
        Announces::AfterTheFirst => end != branch << 7,
        Announces::AsTheFifth => end == branch << 39,
    };
    let last = if announced && word & end >> 1 != 0 { first_of(ends & ends.wrapping_sub(1)) } else { end };
    // Without an end, the branch packet continues after these bytes, or there is none.
    if last == 0 { in_front } else { (last << 1).wrapping_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_with_a_branch_or_before_what_is_not_repeatable() {
        let bytes = |mask: u64| mask.trailing_ones() / 8;
        let read_as = |announces, word| bytes(window(u64::from_le_bytes(word), [0x76], announces));
        let alternative = |word| read_as(Announces::AfterTheFirst, word);
        let original = |word| read_as(Announces::AsTheFifth, word);
        // P-headers, then a branch of two bytes.
        assert_eq!(alternative([0x84, 0x88, 0xad, 0x02, 0x84, 0x84, 0x84, 0x84]), 4);
        // An exception return, and a branch with one byte of information; in the original encoding the branch
        // has none.
        assert_eq!(alternative([0x76, 0xf5, 0x47, 0x1e, 0x84, 0x84, 0x84, 0x84]), 4);
        assert_eq!(original([0x76, 0xf5, 0x47, 0x1e, 0x84, 0x84, 0x84, 0x84]), 3);
        // Two bytes of information, the second of them the ninth byte.
        assert_eq!(alternative([0x84, 0x84, 0xf5, 0xf5, 0xf5, 0xf5, 0x47, 0x80]), 2);
        // An I-sync after a P-header, and one at once.
        assert_eq!(alternative([0x84, 0x08, 0x21, 0, 0, 0, 0, 0]), 1);
        assert_eq!(alternative([0x08, 0x21, 0, 0, 0, 0, 0, 0]), 0);
        // Nothing but P-headers.
        assert_eq!(alternative([0x84; 8]), 8);
        // Branches of one byte, of five, and one that does not end.
        assert_eq!(alternative([0x03, 0x84, 0, 0, 0, 0, 0, 0]), 1);
        assert_eq!(alternative([0x81, 0x80, 0x80, 0x80, 0x08, 0, 0, 0]), 5);
        assert_eq!(original([0x81, 0x80, 0x80, 0x80, 0x48, 0, 0, 0]), 6);
        assert_eq!(alternative([0x84, 0x84, 0x84, 0x84, 0x84, 0x81, 0x80, 0x80]), 5);
        assert_eq!(alternative([0x84, 0x84, 0x84, 0x84, 0x84, 0x81, 0x80, 0x40]), 5);
        assert_eq!(alternative([0x84, 0x84, 0x84, 0x84, 0x84, 0x81, 0x80, 0x00]), 8);
        assert_eq!(alternative([0x81; 8]), 0);
    }
}

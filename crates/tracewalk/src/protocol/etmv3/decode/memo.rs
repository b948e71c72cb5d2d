//! The packets that the memo may look up together, and the state that decoding them depends on.

use crate::protocol::branch_address::AddressEncoding;
use crate::protocol::compression::BranchCompression;
use crate::protocol::memoised::{self, Announces, MemoDecode, MemoState};
use crate::protocol::synchronisation::Synchronisation;
use crate::span::StreamOffset;

use super::super::packet::{PHeader, Packet, header};
use super::Decoder;

impl MemoState for Decoder {
    type State = BranchCompression;

    fn state(&self, _at: StreamOffset) -> Option<BranchCompression> {
        (self.synchronisation == Synchronisation::InStep).then(|| self.compression.branches())
    }

    fn resume(&mut self, state: &BranchCompression, _at: StreamOffset) {
        self.synchronisation = Synchronisation::InStep;
        self.compression.resume_branches(*state);
    }
}

impl Decoder {
    /// The address bytes that announce exception information.
    #[inline]
    const fn announces(&self) -> Announces {
        match self.config.address_encoding {
            AddressEncoding::Original => Announces::AsTheFifth,
            AddressEncoding::Alternative => Announces::AfterTheFirst,
        }
    }
}

impl MemoDecode for Decoder {
    #[inline]
    fn window(&self, word: u64) -> u64 {
        let window = memoised::window(word, [header::EXCEPTION_EXIT], self.announces());
        if self.config.cycle_accurate { without_long_waits(window, word) } else { window }
    }

    #[inline]
    fn wait_cycles(&self, input: &[u8]) -> (usize, u64) {
        if !self.config.cycle_accurate || self.synchronisation != Synchronisation::InStep {
            return (0, 0);
        }
        let mut cycles = 0;
        let mut packets = 0;
        for &byte in input {
            match PHeader::new(byte, true).and_then(PHeader::wait) {
                Some((more, false)) => cycles += u64::from(more),
                _ => break,
            }
            packets += 1;
        }
        (packets, cycles)
    }

    #[inline]
    fn waits_on(&self, input: &[u8]) -> bool {
        self.config.cycle_accurate && input.first().is_some_and(|byte| byte & header::BRANCH != 0)
    }

    #[inline]
    fn is_repeatable(packet: &Packet) -> bool {
        matches!(packet, Packet::PHeader(_) | Packet::Branch(_) | Packet::ExceptionExit)
    }
}

/// Removes waits, which differ each time, from a window: the window ends before a long wait, which begins
/// with a P-header of eight cycles, and never ends with cycles that no instruction follows. A branch packet
/// after such cycles is a window of its own: the cycles stay pending.
#[inline]
const fn without_long_waits(window: u64, word: u64) -> u64 {
    const LOW_BITS: u64 = 0x0101_0101_0101_0101;
    const HIGH_BITS: u64 = LOW_BITS << 7;
    /// Bit 7 of each byte that is `byte` where `mask` is set.
    const fn equal(word: u64, mask: u64, byte: u64) -> u64 {
        let differs = word & (LOW_BITS * mask) ^ (LOW_BITS * byte);
        !(((differs & !HIGH_BITS) + !HIGH_BITS) | differs) & HIGH_BITS
    }
    // From the first odd byte on, bytes belong to an address.
    let branch = word & LOW_BITS & (word & LOW_BITS).wrapping_neg();
    let headers = branch.wrapping_sub(1);
    let long = equal(word, 0b1111_1111, 0b1011_1100) & headers;
    let waits = equal(word, 0b1110_0011, 0b1010_0000) & headers;
    let first = long & long.wrapping_neg();
    let in_front = if first == 0 { u64::MAX } else { (first >> 7).wrapping_sub(1) };
    // Bit 7 of the bytes that the window can end with. The window keeps all bytes up to the last of these.
    let waits_for_branch = waits & branch >> 1 != 0;
    let window = if waits_for_branch { window & headers } else { window };
    let ends = window & in_front & HIGH_BITS & !waits;
    if ends == 0 { 0 } else { u64::MAX >> ends.leading_zeros() }
}

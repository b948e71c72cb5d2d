//! The layout of one frame: its 16 bytes as two words, and what can be asked of them without looking at each byte.

use super::{FRAME_BYTES, FRAME_DATA_BYTES, Owner};

/// Bit 0 of each mixed byte in a half frame: the even bytes of a little-endian word.
const MIXED_BIT_0: u64 = 0x0001_0001_0001_0001;

/// A frame of 16 bytes, as the formatter made it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    low: u64,
    high: u64,
}

/// What stands at one place of a frame, front to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) owner: Owner,
    /// Place of the first byte in the frame, 0 to 14.
    pub(super) start: usize,
    /// The place behind the last byte.
    pub(super) end: usize,
}

impl Frame {
    #[inline]
    pub(super) fn new(bytes: &[u8; FRAME_BYTES]) -> Self {
        let [low @ .., _, _, _, _, _, _, _, _] = bytes;
        let [_, _, _, _, _, _, _, _, high @ ..] = bytes;
        Self { low: u64::from_le_bytes(*low), high: u64::from_le_bytes(*high) }
    }

    /// No mixed byte is an ID: the frame is 15 bytes of data.
    #[inline]
    pub(super) fn is_all_data(self) -> bool {
        (self.low | self.high) & MIXED_BIT_0 == 0
    }

    /// Bit n is set where mixed byte 2n is an ID byte.
    #[inline]
    pub(super) fn id_places(self) -> u8 {
        gather(self.low) | gather(self.high) << 4
    }

    /// A mixed byte is `0xff`: synchronisation, or an ID that does not exist.
    #[inline]
    pub(super) fn has_sync_byte(self) -> bool {
        let is_sync_byte = |word: u64| word.to_le_bytes().iter().step_by(2).any(|&byte| byte == 0xff);
        is_sync_byte(self.low) || is_sync_byte(self.high)
    }

    /// The frame is four FSYNCs.
    #[inline]
    pub(super) fn is_barrier(self) -> bool {
        const TWO: u64 = 0x7fff_ffff_7fff_ffff;
        self.low == TWO && self.high == TWO
    }

    /// The frame's bytes with bit 0 of the mixed data bytes restored; ID bytes and the last byte mean nothing.
    #[inline]
    pub(super) fn restored(self) -> [u8; FRAME_BYTES] {
        let auxiliary = self.auxiliary();
        let low = self.low | spread(auxiliary & 0b1111);
        let high = self.high | spread(auxiliary >> 4);
        (u128::from(low) | u128::from(high) << 64).to_le_bytes()
    }

    /// The auxiliary byte.
    #[inline]
    pub(super) fn auxiliary(self) -> u8 {
        let [.., auxiliary] = self.high.to_le_bytes();
        auxiliary
    }

    /// Calls `visit` with each stretch of data, in order, and returns the owner of what comes behind the frame.
    #[inline]
    pub(super) fn segments(self, owner: Owner, mut visit: impl FnMut(Segment)) -> Owner {
        let auxiliary = self.auxiliary();
        let bytes = (u128::from(self.low) | u128::from(self.high) << 64).to_le_bytes();
        let mut owner = owner;
        let mut start = 0;
        let mut ids = self.id_places();
        while ids != 0 {
            let pair = ids.trailing_zeros() as usize;
            ids &= ids - 1;
            let place = 2 * pair;
            if start < place {
                visit(Segment { owner, start, end: place });
            }
            start = place + 1;
            let delayed = auxiliary >> pair & 1 == 1 && start < FRAME_DATA_BYTES;
            if delayed {
                visit(Segment { owner, start, end: start + 1 });
                start += 1;
            }
            owner = Owner::from_id_byte(bytes[place & (FRAME_BYTES - 1)]);
        }
        if start < FRAME_DATA_BYTES {
            visit(Segment { owner, start, end: FRAME_DATA_BYTES });
        }
        owner
    }
}

/// Moves bit n of a 4-bit number to bit 16n: one multiplication puts copies at every 15th place, the mask keeps one of
/// each.
#[inline]
const fn spread(bits: u8) -> u64 {
    (bits as u64).wrapping_mul(1 | 1 << 15 | 1 << 30 | 1 << 45) & MIXED_BIT_0
}

/// The way back from [`spread`]: bit 16n becomes bit n.
#[inline]
const fn gather(word: u64) -> u8 {
    ((word & MIXED_BIT_0).wrapping_mul(1 << 48 | 1 << 33 | 1 << 18 | 1 << 3) >> 48 & 0b1111) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_and_gather_are_inverse_for_every_half_of_an_auxiliary_byte() {
        for bits in 0..16u8 {
            let spread = spread(bits);
            for n in 0..4 {
                assert_eq!(spread >> (16 * n) & 0xffff, u64::from(bits >> n & 1), "bit {n} of {bits:04b}");
            }
            assert_eq!(gather(spread | !MIXED_BIT_0), bits);
        }
    }
}

//! The layout of one frame: its 16 bytes as two words, and what can be asked of them without looking at each byte.

use super::{FRAME_BYTES, FRAME_DATA_BYTES, Owner};

/// Bit 0 of each mixed byte in a half frame: the even bytes of a little-endian word.
const MIXED_BIT_0: u64 = 0x0001_0001_0001_0001;

/// A frame of 16 bytes, as the formatter made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    low: u64,
    high: u64,
}

/// Data bytes of one owner in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) owner: Owner,
    /// Place of the first byte in the frame, 0 to 14.
    pub(super) start: usize,
    /// The place behind the last byte.
    pub(super) end: usize,
}

/// The ID bytes of eight frames: bit 8m + n is set where mixed byte 2n of frame m is one. Frames that are missing have none.
#[inline]
pub(super) fn id_pairs(frames: &[[u8; FRAME_BYTES]]) -> u64 {
    let all = frames.iter().fold(0, |all, bytes| all | Frame::new(bytes).mixed_bits());
    if all == 0 {
        return 0;
    }
    let pairs = |number, bytes| Frame::new(bytes).id_pairs() << (8 * number);
    (0..8).zip(frames).fold(0, |all, (number, bytes)| all | pairs(number, bytes))
}

impl Frame {
    #[inline]
    pub(super) fn new(bytes: &[u8; FRAME_BYTES]) -> Self {
        let [low @ .., _, _, _, _, _, _, _, _] = bytes;
        let [_, _, _, _, _, _, _, _, high @ ..] = bytes;
        Self { low: u64::from_le_bytes(*low), high: u64::from_le_bytes(*high) }
    }

    /// Not 0 where a mixed byte is an ID.
    #[inline]
    const fn mixed_bits(self) -> u64 {
        (self.low | self.high) & MIXED_BIT_0
    }

    /// Bit n is set where mixed byte 2n is an ID byte.
    #[inline]
    pub(super) const fn id_pairs(self) -> u64 {
        gather(self.low & MIXED_BIT_0 | (self.high & MIXED_BIT_0) << 4)
    }

    /// The frame's ID bytes, front to back: place and byte.
    #[inline]
    pub(super) fn id_bytes(self) -> impl Iterator<Item = (usize, u8)> {
        let mut pairs = self.id_pairs();
        core::iter::from_fn(move || {
            let pair = pairs.trailing_zeros();
            pairs &= pairs.checked_sub(1)?;
            let half = if pair < 4 { self.low } else { self.high };
            let [byte, ..] = (half >> (16 * (pair % 4))).to_le_bytes();
            Some((2 * pair as usize, byte))
        })
    }

    /// A mixed byte is `0xff`: synchronisation, or an ID that does not exist.
    #[inline]
    pub(super) const fn has_sync_byte(self) -> bool {
        has_mixed_ff(self.low) || has_mixed_ff(self.high)
    }

    /// The frame is four FSYNCs.
    #[inline]
    pub(super) const fn is_barrier(self) -> bool {
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

    /// The auxiliary byte: bit n goes with mixed byte 2n.
    #[inline]
    const fn auxiliary(self) -> u64 {
        self.high >> 56
    }

    /// Calls `visit` with each stretch of data, in order, and returns the owner of what comes behind the frame.
    #[inline]
    pub(super) fn segments(self, owner: Owner, mut visit: impl FnMut(Segment)) -> Owner {
        let auxiliary = self.auxiliary();
        let mut owner = owner;
        let mut start = 0;
        for (place, id_byte) in self.id_bytes() {
            if start < place {
                visit(Segment { owner, start, end: place });
            }
            start = place + 1;
            // Byte 14 has no data byte behind it that the change could be delayed by.
            let is_delayed = auxiliary >> (place / 2) & 1 == 1 && start < FRAME_DATA_BYTES;
            if is_delayed {
                visit(Segment { owner, start, end: start + 1 });
                start += 1;
            }
            owner = Owner::from_id_byte(id_byte);
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
const fn spread(bits: u64) -> u64 {
    bits.wrapping_mul(1 | 1 << 15 | 1 << 30 | 1 << 45) & MIXED_BIT_0
}

/// The way back from [`spread`] for two numbers at once, of which the second one's bits stand 4 places higher: bit 16n
/// becomes bit n, and bit 16n + 4 becomes bit n + 4. No two of all the products meet.
#[inline]
const fn gather(word: u64) -> u64 {
    word.wrapping_mul(1 << 48 | 1 << 33 | 1 << 18 | 1 << 3) >> 48 & 0xff
}

/// A mixed byte of a half frame is `0xff`. Adding 1 to each carries into the byte above only from there.
#[inline]
const fn has_mixed_ff(word: u64) -> bool {
    const MIXED: u64 = 0xff * MIXED_BIT_0;
    ((word & MIXED) + MIXED_BIT_0) & !MIXED != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_and_gather_are_inverse_for_every_half_of_an_auxiliary_byte() {
        for low in 0..16 {
            let word = spread(low);
            for n in 0..4 {
                assert_eq!(word >> (16 * n) & 0xffff, low >> n & 1, "bit {n} of {low:04b}");
            }
            for high in 0..16 {
                assert_eq!(gather(word | spread(high) << 4), low | high << 4);
            }
        }
    }

    #[test]
    fn a_sync_byte_is_found_at_every_mixed_place_and_at_no_other() {
        for place in 0..FRAME_BYTES {
            let mut bytes = [0xfe; FRAME_BYTES];
            bytes[place] = 0xff;
            assert_eq!(Frame::new(&bytes).has_sync_byte(), place % 2 == 0, "place {place}");
        }
    }
}

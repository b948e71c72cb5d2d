//! The layout of one frame: its 16 bytes as two words, and queries that do not look at each byte.

use wide::u8x16;

use super::owner::Owner;

/// The bytes of a frame.
pub const FRAME_BYTES: usize = 16;

/// The maximum number of data bytes in a frame: all but the auxiliary byte.
pub const FRAME_DATA_BYTES: usize = 15;

/// The full synchronisation of a trace port, `0x7fff_ffff` with its low byte first (IHI 0029, "Formatter protocol").
pub const FSYNC: [u8; 4] = [0xff, 0xff, 0xff, 0x7f];

/// The half synchronisation of a trace port, `0x7fff` with its low byte first.
pub const HSYNC: [u8; 2] = [0xff, 0x7f];

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
pub(super) struct DataSpan {
    pub(super) owner: Owner,
    /// Place of the first byte in the frame, 0 to 14.
    pub(super) start: usize,
    /// The place after the last byte.
    pub(super) end: usize,
}

/// The number of frames whose ID bytes are marked in one word.
pub(super) const GROUP: usize = 8;

/// Calls `visit` with some frames in groups of [`GROUP`], and with the rest. The compiler knows the size of a
/// whole group.
#[inline(always)]
pub(super) fn groups<'a>(
    frames: &'a [[u8; FRAME_BYTES]],
    mut visit: impl FnMut(usize, &'a [[u8; FRAME_BYTES]]),
) {
    let (groups, rest) = frames.as_chunks::<GROUP>();
    groups.iter().enumerate().for_each(|(number, group)| visit(number, group));
    if !rest.is_empty() {
        visit(groups.len(), rest);
    }
}

/// The ID bytes of eight frames: bit 8m + n is set if mixed byte 2n of frame m is an ID byte. Missing frames
/// have none.
#[inline(always)]
pub(super) fn id_pairs(frames: &[[u8; FRAME_BYTES]]) -> u64 {
    if frames.as_array::<GROUP>().is_some_and(|group| !has_ids(group)) {
        return 0;
    }
    let pairs = |number, bytes| Frame::new(bytes).id_pairs() << (8 * number);
    (0..8).zip(frames).fold(0, |all, (number, bytes)| all | pairs(number, bytes))
}

/// The ID bytes of at most eight frames, in order: the pair of bytes that each begins, and its value.
#[inline(always)]
pub(super) fn id_bytes(frames: &[[u8; FRAME_BYTES]]) -> impl Iterator<Item = (usize, u8)> {
    let mut ids = id_pairs(frames);
    core::iter::from_fn(move || {
        let pair = ids.trailing_zeros() as usize;
        ids &= ids.checked_sub(1)?;
        Some((pair, frames.as_flattened().get(2 * pair).copied().unwrap_or_default()))
    })
}

/// Bit 0 of each mixed byte in a frame.
const BIT_0: u8x16 = u8x16::new([1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);

#[inline(always)]
fn has_ids(group: &[[u8; FRAME_BYTES]; GROUP]) -> bool {
    let all = group.iter().fold(u8x16::ZERO, |all, bytes| all | u8x16::new(*bytes));
    (all & BIT_0).simd_eq(u8x16::ZERO).to_bitmask() != 0xffff
}

/// Writes the data of frames one after the other, with bit 0 restored as by [`Frame::restored`]. The output
/// includes ID bytes, which are meaningless. `data` needs room for one more byte. Eight frames take one check
/// for room.
#[inline(always)]
pub(super) fn restore(frames: &[[u8; FRAME_BYTES]], data: &mut [u8]) {
    const ROOM: usize = GROUP * FRAME_DATA_BYTES + 1;
    let (groups, rest) = frames.as_chunks::<GROUP>();
    let mut starts = (0..).step_by(GROUP * FRAME_DATA_BYTES);
    for (group, start) in groups.iter().zip(starts.by_ref()) {
        if let Some(data) = data.get_mut(start..).and_then(<[u8]>::first_chunk_mut::<ROOM>) {
            restore_some(group, data);
        }
    }
    restore_some(rest, data.get_mut(groups.len() * GROUP * FRAME_DATA_BYTES..).unwrap_or_default());
}

#[inline(always)]
fn restore_some(frames: &[[u8; FRAME_BYTES]], data: &mut [u8]) {
    /// The auxiliary byte's bit for each mixed byte, by place in the frame.
    const BITS: u8x16 = u8x16::new([1, 0, 2, 0, 4, 0, 8, 0, 16, 0, 32, 0, 64, 0, 128, 0]);
    for (bytes, start) in frames.iter().zip((0..).step_by(FRAME_DATA_BYTES)) {
        let [.., auxiliary] = *bytes;
        let is_set = (u8x16::splat(auxiliary) & BITS).simd_eq(BITS);
        // Writing all 16 bytes is quicker; the next frame overwrites the last one.
        if let Some(slot) = data.get_mut(start..start + FRAME_BYTES) {
            slot.copy_from_slice(&(u8x16::new(*bytes) | is_set & BIT_0).to_array());
        }
    }
}

impl Frame {
    #[inline]
    pub(super) fn new(bytes: &[u8; FRAME_BYTES]) -> Self {
        let [low @ .., _, _, _, _, _, _, _, _] = bytes;
        let [_, _, _, _, _, _, _, _, high @ ..] = bytes;
        Self { low: u64::from_le_bytes(*low), high: u64::from_le_bytes(*high) }
    }

    /// Bit n is set if mixed byte 2n is an ID byte.
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

    /// Whether a mixed byte is `0xff`: synchronisation, or an ID that does not exist.
    #[inline]
    pub(super) const fn has_sync_byte(self) -> bool {
        has_mixed_ff(self.low) || has_mixed_ff(self.high)
    }

    /// Whether the frame is four FSYNCs.
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

    /// Calls `visit` with each stretch of data, in order, and returns the owner of the bytes after the frame.
    #[inline]
    pub(super) fn data_spans(self, owner: Owner, mut visit: impl FnMut(DataSpan)) -> Owner {
        let auxiliary = self.auxiliary();
        let mut owner = owner;
        let mut start = 0;
        for (place, id_byte) in self.id_bytes() {
            if start < place {
                visit(DataSpan { owner, start, end: place });
            }
            start = place + 1;
            // Byte 14 has no data byte after it to delay the change.
            let is_delayed = auxiliary >> (place / 2) & 1 == 1 && start < FRAME_DATA_BYTES;
            if is_delayed {
                visit(DataSpan { owner, start, end: start + 1 });
                start += 1;
            }
            owner = Owner::from_id_byte(id_byte);
        }
        if start < FRAME_DATA_BYTES {
            visit(DataSpan { owner, start, end: FRAME_DATA_BYTES });
        }
        owner
    }
}

/// Moves bit n of a 4-bit number to bit 16n: one multiplication puts copies at every 15th place, the mask
/// keeps one copy of each bit.
#[inline]
const fn spread(bits: u64) -> u64 {
    bits.wrapping_mul(1 | 1 << 15 | 1 << 30 | 1 << 45) & MIXED_BIT_0
}

/// The inverse of [`spread`] for two numbers at once, the second one's bits 4 places higher: bit 16n becomes
/// bit n, and bit 16n + 4 becomes bit n + 4. The partial products do not overlap.
#[inline]
const fn gather(word: u64) -> u64 {
    word.wrapping_mul(1 << 48 | 1 << 33 | 1 << 18 | 1 << 3) >> 48 & 0xff
}

/// Whether a mixed byte of a half frame is `0xff`. Adding 1 to each mixed byte carries into the byte above
/// only from `0xff`.
#[inline]
const fn has_mixed_ff(word: u64) -> bool {
    const MIXED: u64 = 0xff * MIXED_BIT_0;
    ((word & MIXED) + MIXED_BIT_0) & !MIXED != 0
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

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
    fn bit_0_is_restored_the_same_in_many_frames_and_in_one() {
        let mut frames = Vec::new();
        for auxiliary in 0..=u8::MAX {
            let mut bytes = [0x5a, 0xa5, 0x01, 0xfe, 0x00, 0xff, 0x80, 0x7f, 2, 1, 0, 3, 0x42, 0x24, 0x10, 0];
            bytes[15] = auxiliary;
            frames.push(bytes);
        }
        let expected = frames.iter().flat_map(|bytes| Frame::new(bytes).restored()[..15].to_vec());
        let expected = expected.collect::<Vec<_>>();
        for count in (0..20).chain([frames.len()]) {
            let mut data = vec![0; 15 * count + 1];
            restore(&frames[..count], &mut data);
            assert_eq!(data[..15 * count], expected[..15 * count], "{count} frames");
        }
    }

    #[test]
    fn id_bytes_are_found_in_any_number_of_frames() {
        let mut frames = [[0x10; FRAME_BYTES]; GROUP + 1];
        assert_eq!(id_bytes(&frames[..GROUP]).count(), 0);
        frames[3][14] = 0x23;
        frames[7][0] = 0x25;
        frames[7][3] = 0x27;
        let all = [(31, 0x23), (56, 0x25)];
        assert_eq!(id_bytes(&frames[..GROUP]).collect::<Vec<_>>(), all);
        assert_eq!(id_bytes(&frames[..5]).collect::<Vec<_>>(), all[..1]);
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

//! Frames that are not contiguous, and the synchronisation that a trace port puts between and into them.

use super::layout::{FRAME_BYTES, Frame, HSYNC};

/// The pairs of bytes in a frame. HSYNCs come between pairs only.
const PAIRS: usize = FRAME_BYTES / 2;

/// The places of the bytes of frames.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) enum FramePlaces {
    /// One after the other, from this place on.
    Contiguous(u64),
    /// With HSYNCs between the pairs of bytes: a single frame.
    Pairs([u64; PAIRS]),
}

impl FramePlaces {
    /// The place of byte `index` of the frames.
    #[inline]
    pub(super) fn place(&self, index: usize) -> u64 {
        match self {
            Self::Contiguous(start) => start + index as u64,
            Self::Pairs(pairs) => pairs.get(index / 2).map_or(0, |pair| pair + (index % 2) as u64),
        }
    }
}

/// A frame that is put together from several pieces of input, or around HSYNCs.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct PartialFrame {
    bytes: [u8; FRAME_BYTES],
    /// The number of valid `bytes`; the others are zero.
    filled: usize,
    /// The place of each pair of bytes.
    pairs: [u64; PAIRS],
}

impl PartialFrame {
    /// Adds a byte. The caller removes a complete frame before it adds another byte.
    pub(super) fn take(&mut self, byte: u8, at: u64) {
        if let Some(slot) = self.bytes.get_mut(self.filled) {
            *slot = byte;
        }
        if let (0, Some(place)) = (self.filled % 2, self.pairs.get_mut(self.filled / 2)) {
            *place = at;
        }
        self.filled += 1;
    }

    /// Removes an HSYNC at the end, if there is one.
    pub(super) fn drop_half_sync(&mut self) {
        let Some(pair) = self.filled.checked_sub(2).filter(|pair| pair % 2 == 0) else { return };
        if let Some(last) = self.bytes.get_mut(pair..self.filled).filter(|last| *last == HSYNC) {
            last.fill(0);
            self.filled = pair;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The place of the first byte, if there is one.
    pub(super) fn start(&self) -> Option<u64> {
        let [start, ..] = self.pairs;
        (self.filled != 0).then_some(start)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.filled == FRAME_BYTES
    }

    /// The bytes so far.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
    }

    /// The bytes so far as a frame, with zeros for the missing ones.
    pub(super) fn padded(&self) -> &[u8; FRAME_BYTES] {
        &self.bytes
    }

    pub(super) fn frame(&self) -> Frame {
        Frame::new(&self.bytes)
    }

    /// The place of byte `index`.
    pub(super) fn place(&self, index: usize) -> u64 {
        self.pairs.get(index / 2).map_or(0, |pair| pair + (index % 2) as u64)
    }

    /// The places of the complete frame's bytes.
    pub(super) fn places(&self) -> FramePlaces {
        let [first, .., last] = self.pairs;
        match last - first == (FRAME_BYTES - 2) as u64 {
            true => FramePlaces::Contiguous(first),
            false => FramePlaces::Pairs(self.pairs),
        }
    }
}

/// Finds FSYNCs at any alignment. Frames do not contain these four bytes at any alignment: of three `ff` in a
/// row, one is in a mixed place, where it would be ID `0x7f`.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct SyncMatcher {
    /// The number of `ff` that came last, at most 3.
    ones: u8,
}

impl SyncMatcher {
    /// The matcher after a frame that ends in `last` and has no `ff` in its mixed places.
    pub(super) fn after(last: u8) -> Self {
        Self { ones: u8::from(last == 0xff) }
    }

    /// Takes a byte; returns whether it completes an FSYNC.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let complete = self.ones == 3 && byte == 0x7f;
        self.ones = if byte == 0xff { (self.ones + 1).min(3) } else { 0 };
        complete
    }

    /// Whether only one byte of an FSYNC is missing.
    pub(super) fn is_nearly_complete(self) -> bool {
        self.ones == 3
    }

    /// Whether the last byte may belong to an FSYNC.
    pub(super) fn is_in_progress(self) -> bool {
        self.ones != 0
    }
}

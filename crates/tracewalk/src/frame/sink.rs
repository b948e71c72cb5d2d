//! What a deframer hands out.

use alloc::vec::Vec;
use core::fmt;

use super::alignment::FrameAlignment;
use super::layout::{FRAME_BYTES, FRAME_DATA_BYTES};
use super::owner::Owner;
use crate::span::CaptureOffset;

/// Bytes of one owner, in the order in which it made them.
///
/// They lie in frames, one after the other in the capture: after the 15th byte of each an auxiliary byte is stepped
/// over, and before the last byte of a piece an ID byte may be. One rule covers all: see [`Piece::place`].
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The offset of the first byte in the capture.
    pub at: CaptureOffset,
    /// The bytes as the source made them: bit 0 of mixed bytes is restored. Never empty.
    pub bytes: &'a [u8],
    /// The first byte's place in its frame, 0 to 14.
    pub(super) phase: u8,
    /// Whether an ID byte is before the last byte, which is not the only one.
    pub(super) last_is_delayed: bool,
    /// `bytes`, and perhaps some after them that mean nothing.
    padded: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Bytes that stand one after the other in the capture from `at` on, at most 15; or, where they are more, as the data
    /// of whole frames.
    #[must_use]
    pub const fn new(at: CaptureOffset, bytes: &'a [u8]) -> Self {
        Self { at, bytes, phase: 0, last_is_delayed: false, padded: bytes }
    }

    /// Data of frames that start at `frames`, from the frames' byte `start` on. Where the change of owner after it
    /// `is_delayed`, the last byte stands after the ID byte. After them in `padded` lie bytes that mean nothing.
    #[inline(always)]
    pub(super) fn in_frames(
        frames: CaptureOffset,
        start: usize,
        bytes: &'a [u8],
        is_delayed: bool,
        padded: &'a [u8],
    ) -> Self {
        let is_alone = bytes.len() == 1;
        let first = start + usize::from(is_delayed && is_alone);
        Self {
            at: CaptureOffset(frames.0 + first as u64),
            bytes,
            phase: u8::try_from(first % FRAME_BYTES).unwrap_or(0),
            last_is_delayed: is_delayed && !is_alone,
            padded,
        }
    }

    /// The same bytes, `by` further on in the capture.
    #[inline]
    pub(super) const fn moved(self, by: u64) -> Self {
        Self { at: CaptureOffset(self.at.0.saturating_add(by)), ..self }
    }

    /// The offset of the byte at `index` in the capture.
    #[must_use]
    #[inline]
    pub const fn place(&self, index: usize) -> CaptureOffset {
        let auxiliary = (self.phase as usize + index) / FRAME_DATA_BYTES;
        let id = (self.last_is_delayed && index + 1 == self.bytes.len()) as usize;
        CaptureOffset(self.at.0 + (index + auxiliary + id) as u64)
    }

    /// The piece as slices that are contiguous in the capture, at most 15 bytes each.
    pub fn contiguous(self) -> impl Iterator<Item = Piece<'a>> {
        let mut rest = 0..self.bytes.len();
        core::iter::from_fn(move || {
            let start = rest.next()?;
            let at = self.place(start);
            let goes_on = |&next: &usize| self.place(next).0 == at.0 + (next - start) as u64;
            let end = rest.clone().take_while(goes_on).last().map_or(start, |last| last) + 1;
            rest.start = end;
            Some(Piece::new(at, self.bytes.get(start..end).unwrap_or_default()))
        })
    }

    /// Appends the bytes, which is quicker here than by their slice: nearly all pieces are short, and copying too much of
    /// them takes less time than finding out how much.
    #[inline]
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        const SHORT: usize = 32;
        match self.padded.first_chunk::<SHORT>() {
            Some(short) if self.bytes.len() <= SHORT => {
                let end = bytes.len() + self.bytes.len();
                bytes.extend_from_slice(short);
                bytes.truncate(end);
            }
            _ => bytes.extend_from_slice(self.bytes),
        }
    }
}

/// A break: the bytes before and after it do not belong together. It concerns every source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Discontinuity {
    /// Where in the capture.
    pub at: CaptureOffset,
    /// The number of bytes from there that could not be read; 0 if none are missing from this file.
    pub bytes: u64,
    /// Why.
    pub cause: Cause,
}

/// Why a [`Discontinuity`] was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Cause {
    /// The capture does not start at a frame.
    Start,
    /// A frame of four FSYNCs, which Linux's drivers put where a trace was cut.
    Barrier,
    /// An FSYNC in the middle of a frame: the frames before it were misaligned.
    MisplacedSync,
    /// An ID byte for ID `0x7f`, which no formatter makes, in a trace port's capture that is read without recovery.
    ImpossibleId,
    /// Frames continue some bytes later than they should: that number modulo 16 was inserted, or the rest to 16 is missing.
    Shifted {
        /// How many.
        by: FrameAlignment,
    },
    /// There are no frames at any alignment, for a while.
    NoFrames,
}

impl fmt::Display for Discontinuity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        match self.cause {
            Cause::Start => write!(f, "{bytes} bytes before the first frame"),
            Cause::Barrier => f.write_str("a barrier of four FSYNCs: the trace was cut"),
            Cause::MisplacedSync => {
                write!(f, "found FSYNC inside a frame, expected it between two: {bytes} bytes lost")
            }
            Cause::ImpossibleId => write!(f, "found ID 0x7f, expected a trace ID: {bytes} bytes lost"),
            Cause::Shifted { by } => {
                let inserted = by.bytes();
                let missing = FRAME_BYTES - usize::from(inserted);
                write!(f, "{missing} bytes missing or {inserted} too many (modulo 16): {bytes} bytes lost")
            }
            Cause::NoFrames => write!(f, "found no frames in {bytes} bytes"),
        }?;
        write!(f, " at {}", self.at)
    }
}

/// What a [`Deframer`](super::Deframer) hands its results to.
pub trait FrameSink {
    /// The next bytes of `owner`.
    fn data(&mut self, owner: Owner, piece: Piece<'_>);

    /// What comes next does not follow on what came before, for any source.
    fn discontinuity(&mut self, discontinuity: Discontinuity);
}

//! The output of a deframer.

use alloc::vec::Vec;
use core::fmt;

use super::alignment::FrameAlignment;
use super::layout::{FRAME_BYTES, FRAME_DATA_BYTES};
use super::owner::Owner;
use crate::span::CaptureOffset;

/// Bytes of one owner, in the order in which the owner made them.
///
/// The bytes lie in contiguous frames of the capture: an auxiliary byte follows the 15th byte of each frame,
/// and an ID byte may precede the last byte of a piece. [`Piece::place`] gives the offset of each byte.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The offset of the first byte in the capture.
    pub at: CaptureOffset,
    /// The bytes as the source made them: bit 0 of mixed bytes is restored. Never empty.
    pub bytes: &'a [u8],
    /// The first byte's place in its frame, 0 to 14.
    pub(super) phase: u8,
    /// Whether an ID byte precedes the last byte. Invariant: false for a single byte.
    pub(super) last_is_delayed: bool,
    /// `bytes`, possibly followed by meaningless bytes.
    padded: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Bytes that are contiguous in the capture from `at` on, at most 15; more bytes are placed as the data
    /// of whole frames.
    #[must_use]
    pub const fn new(at: CaptureOffset, bytes: &'a [u8]) -> Self {
        Self { at, bytes, phase: 0, last_is_delayed: false, padded: bytes }
    }

    /// Data of frames that start at `frames`, from the frames' byte `start` on. If the change of owner after
    /// the data `is_delayed`, the last byte is after the ID byte. `padded` is `bytes` followed by meaningless
    /// bytes.
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

    /// Appends the bytes to `bytes`, faster than `extend_from_slice` does: nearly all pieces are short, and
    /// copying a fixed number of bytes takes less time than copying a variable one.
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

/// A break for every source: the bytes before and after it do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Discontinuity {
    /// The place in the capture.
    pub at: CaptureOffset,
    /// The number of bytes from there that could not be read; 0 if this file has all of its bytes.
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
    /// Frames continue `by` bytes later than they should: modulo 16, `by` bytes were inserted or 16 - `by`
    /// are missing.
    Shifted {
        /// The number of bytes, modulo 16.
        by: FrameAlignment,
    },
    /// A stretch without frames at any alignment.
    NoFrames,
}

impl fmt::Display for Discontinuity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        match self.cause {
            Cause::Start => write!(f, "{bytes} bytes before the first frame"),
            Cause::Barrier => f.write_str("a barrier of four FSYNCs: the trace was cut"),
            Cause::MisplacedSync => {
                write!(f, "found an FSYNC inside a frame, expected it between frames: {bytes} bytes lost")
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

/// Receives the output of a [`Deframer`](super::Deframer).
pub trait FrameSink {
    /// The next bytes of `owner`.
    fn data(&mut self, owner: Owner, piece: Piece<'_>);

    /// The next bytes do not continue the earlier ones, for any source.
    fn discontinuity(&mut self, discontinuity: Discontinuity);
}

//! The CoreSight formatter: frames of 16 bytes ↔ the bytes of each trace ID.
//!
//! A formatter (in a TPIU, an ETB or a TMC) lets several trace sources share one port or buffer. A frame has eight
//! *mixed* bytes at its even places, each either data or a new trace ID, seven data bytes at its odd places, and an
//! *auxiliary* byte with one bit for each mixed byte (CoreSight SoC-400 TRM, DDI 0480G, "Trace formatter"; IHI 0029,
//! "Formatter protocol"):
//!
//! | mixed byte 2n | bit n of the auxiliary byte |
//! |---|---|
//! | bit 0 clear: data, its own bit 0 is in the auxiliary byte | that bit 0 |
//! | bit 0 set: bits 7..1 are the new trace ID | 0: the byte behind it is the new source's; 1: still the old one's |
//!
//! A trace port adds synchronisation: FSYNC (`ff ff ff 7f`) between frames and HSYNC (`ff 7f`) between any two pairs
//! of bytes. A buffer has neither, but Linux's drivers put a whole frame of four FSYNCs where a trace was cut.
//!
//! - [`Deframer`] takes a capture in pieces of any size and hands out each owner's bytes with their place in the
//!   capture. Every capture byte is accounted for once: see [`Account`]. Where bytes are missing it finds the frames
//!   again, and says what is lost.
//! - [`Ranking`] says where frames start in bytes without synchronisation, and why: see [`Evidence`].
//! - [`Formatter`] is the way back.
//! - [`Places`] remembers where a source's bytes stood in the capture.
//!
//! Not here: what the bytes mean, and which protocol a trace ID speaks. A change of trace ID says nothing about the
//! packets: they run on across frames and across other sources' bytes, and a sink must not reset anything there.
//!
//! ```
//! use tracewalk::frame::{Deframer, Discontinuity, FrameSink, Framing, Owner, Piece};
//!
//! #[derive(Default)]
//! struct Bytes(Vec<(Owner, u64, Vec<u8>)>);
//!
//! impl FrameSink for Bytes {
//!     fn data(&mut self, owner: Owner, piece: Piece<'_>) {
//!         self.0.push((owner, piece.at.0, piece.bytes.to_vec()));
//!     }
//!     fn discontinuity(&mut self, _: Discontinuity) {}
//! }
//!
//! let frame = [0x21, 0xaa, 0x10, 0xbb, 0x23, 0xcc, 0x30, 0xdd, 0x40, 0xee, 0x50, 0xff, 0x60, 0x11, 0x70, 0x00];
//! let mut sink = Bytes::default();
//! let mut deframer = Deframer::new(Framing::Buffer);
//! deframer.push(&frame, &mut sink);
//! let tail = deframer.finish(&mut sink);
//!
//! assert_eq!(tail.bytes, 0);
//! let [(first, at, bytes), (second, ..)] = sink.0.as_slice() else { panic!("two owners") };
//! assert_eq!(first.trace_id().map(|id| id.get()), Some(0x10));
//! assert_eq!((*at, bytes.as_slice()), (1, &[0xaa, 0x10, 0xbb][..]));
//! assert_eq!(second.trace_id().map(|id| id.get()), Some(0x11));
//! ```

mod account;
mod align;
mod decode;
mod encode;
mod evidence;
mod held;
mod index;
mod layout;
mod only;
mod places;
mod recover;
mod search;
mod unpacker;
mod watch;
mod wire;

use alloc::vec::Vec;
use core::fmt;

use crate::ids::TraceId;
use crate::span::CaptureOffset;

pub use account::Account;
pub use align::{Alignment, Candidate, Ranking};
pub use decode::{Deframer, Framing, Tail};
pub use encode::{Formatter, FormatterOptions};
pub use evidence::{Evidence, IdSet};
pub use index::{Extraction, Index, Indexer};
pub use places::Places;

/// The bytes of a frame.
pub const FRAME_BYTES: usize = 16;

/// The most data bytes that a frame can carry: all but the auxiliary byte.
pub const FRAME_DATA_BYTES: usize = 15;

/// The full synchronisation of a trace port, `0x7fff_ffff` with its low byte first (IHI 0029, "Formatter protocol").
pub const FSYNC: [u8; 4] = [0xff, 0xff, 0xff, 0x7f];

/// The half synchronisation of a trace port, `0x7fff` with its low byte first.
pub const HSYNC: [u8; 2] = [0xff, 0x7f];

/// Whose bytes they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Not known: no ID byte came yet, or none since bytes were lost.
    Unknown,
    /// A trace source.
    Source(TraceId),
    /// Nobody: ID 0, with which a formatter fills up a frame. The bytes are zero in a healthy capture.
    Padding,
    /// The trigger, ID `0x7d`: normally one zero byte for each.
    Trigger,
    /// An ID that the architecture reserves.
    Reserved(ReservedId),
}

impl Owner {
    /// The owner that an ID byte names: its bits 7..1.
    #[must_use]
    #[inline]
    pub const fn from_id_byte(byte: u8) -> Self {
        let number = byte >> 1;
        match (number, TraceId::new(number)) {
            (_, Some(id)) => Self::Source(id),
            (0x00, None) => Self::Padding,
            (0x7d, None) => Self::Trigger,
            (_, None) => Self::Reserved(ReservedId(number)),
        }
    }

    /// The trace source, if it is one.
    #[must_use]
    #[inline]
    pub const fn trace_id(self) -> Option<TraceId> {
        match self {
            Self::Source(id) => Some(id),
            _ => None,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("an unknown source"),
            Self::Source(id) => write!(f, "trace ID {id}"),
            Self::Padding => f.write_str("padding"),
            Self::Trigger => f.write_str("trigger"),
            Self::Reserved(id) => write!(f, "reserved ID {id}"),
        }
    }
}

/// An ID that names neither a source nor padding nor the trigger: `0x70..=0x7c`, `0x7e` and `0x7f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReservedId(u8);

impl ReservedId {
    /// The ID that no formatter may use, because it would look like synchronisation.
    pub const NEVER_USED: Self = Self(0x7f);

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for ReservedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02x}", self.0)
    }
}

/// Bytes of one owner, in the order in which it made them.
///
/// They lie in frames, one behind the other in the capture: behind the 15th byte of each an auxiliary byte is stepped
/// over, and in front of the last byte of a piece an ID byte may be. One rule covers all: see [`Piece::place`].
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Where the first byte stands in the capture.
    pub at: CaptureOffset,
    /// The bytes as the source made them: bit 0 of mixed bytes is restored. Never empty.
    pub bytes: &'a [u8],
    /// The first byte's place in its frame, 0 to 14.
    phase: u8,
    /// Whether an ID byte is in front of the last byte, which is not the only one.
    last_is_delayed: bool,
    /// `bytes`, and perhaps some behind them that mean nothing.
    padded: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Bytes that stand one behind the other in the capture from `at` on, at most 15; or, where they are more, as the data
    /// of whole frames.
    #[must_use]
    pub const fn new(at: CaptureOffset, bytes: &'a [u8]) -> Self {
        Self { at, bytes, phase: 0, last_is_delayed: false, padded: bytes }
    }

    /// Data of frames that start at `frames`, from the frames' byte `start` on. Where the change of owner behind it
    /// `is_delayed`, the last byte stands behind the ID byte. Behind them in `padded` lie bytes that mean nothing.
    #[inline(always)]
    fn in_frames(
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

    /// Where the byte at `index` stands in the capture.
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

/// A place where the bytes in front and the bytes behind do not belong together. It concerns every source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discontinuity {
    /// Where in the capture.
    pub at: CaptureOffset,
    /// How many capture bytes from there could not be read. 0 where none are missing from this file.
    pub bytes: u64,
    /// Why.
    pub cause: Cause,
}

/// Why a [`Discontinuity`] was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The capture does not start at a frame.
    Start,
    /// A frame of four FSYNCs, which Linux's drivers put where a trace was cut.
    Barrier,
    /// An FSYNC in the middle of a frame: the frames in front of it were not where they were thought to be.
    MisplacedSync,
    /// An ID byte for ID `0x7f`, which no formatter makes, in a trace port's capture that is read without recovery.
    ImpossibleId,
    /// Frames go on so many bytes later than they should, modulo 16: so many were inserted, or are missing at 16.
    Shifted {
        /// How many.
        by: Alignment,
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

/// What a [`Deframer`] hands its results to.
pub trait FrameSink {
    /// The next bytes of `owner`.
    fn data(&mut self, owner: Owner, piece: Piece<'_>);

    /// What comes next does not follow on what came before, for any source.
    fn discontinuity(&mut self, discontinuity: Discontinuity);
}

#[cfg(test)]
mod tests;

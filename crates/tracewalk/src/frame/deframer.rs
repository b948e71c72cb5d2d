//! Frames → the bytes of each owner.
//!
//! ```text
//! bytes ─▶ Framer: whole frames, FSYNC, barrier ─▶ Unpacker: each owner's bytes, and the account
//! ```

use super::account::Account;
use super::alignment::FrameAlignment;
use super::framer::{Completed, Framer};
use super::partial::FramePlaces;
use super::sink::{Cause, FrameSink};
use super::unpacker::Unpacker;
use crate::span::CaptureOffset;

/// The synchronisation between the frames of a capture, and their first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Framing {
    /// None, as in a trace buffer: a frame every 16 bytes from the first byte on. Barriers are recognised.
    #[default]
    Buffer,
    /// FSYNCs and HSYNCs, as on a trace port. Frames start after the first FSYNC, at any byte, or (with recovery) by
    /// evidence.
    Port,
    /// As [`Framing::Port`], with a known start of the frames. FSYNCs still count.
    PortFrom(FrameAlignment),
}

/// The incomplete frame at the end of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The start of the frame; the end of the capture if there is none.
    pub at: CaptureOffset,
    /// The number of its bytes, including HSYNCs.
    pub bytes: u64,
}

/// Splits a capture, in pieces of any size, into the bytes of each owner.
///
/// Takes the frames as they are: only FSYNCs correct their start. Holds back only an incomplete frame. If
/// bytes may be missing, use [`RecoveringDeframer`](super::RecoveringDeframer).
///
/// How the capture is cut into pieces makes no difference, except that a run of whole frames may come as one
/// [`Piece`](super::Piece) or as several.
///
/// ```
/// use tracewalk::frame::{Deframer, Discontinuity, FrameSink, Framing, Owner, Piece};
///
/// #[derive(Default)]
/// struct Bytes(Vec<(Owner, u64, Vec<u8>)>);
///
/// impl FrameSink for Bytes {
///     fn data(&mut self, owner: Owner, piece: Piece<'_>) {
///         self.0.push((owner, piece.at.0, piece.bytes.to_vec()));
///     }
///     fn discontinuity(&mut self, _: Discontinuity) {}
/// }
///
/// let frame = [0x21, 0xaa, 0x10, 0xbb, 0x23, 0xcc, 0x30, 0xdd, 0x40, 0xee, 0x50, 0xff, 0x60, 0x11, 0x70, 0x00];
/// let mut sink = Bytes::default();
/// let mut deframer = Deframer::new(Framing::Buffer);
/// deframer.push(&frame, &mut sink);
/// let tail = deframer.finish(&mut sink);
///
/// assert_eq!(tail.bytes, 0);
/// let [(first, at, bytes), (second, ..)] = sink.0.as_slice() else { panic!("two owners") };
/// assert_eq!(first.trace_id().map(|id| id.get()), Some(0x10));
/// assert_eq!((*at, bytes.as_slice()), (1, &[0xaa, 0x10, 0xbb][..]));
/// assert_eq!(second.trace_id().map(|id| id.get()), Some(0x11));
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Deframer {
    /// `None` when the next byte belongs to a frame or to synchronisation.
    unsynchronised: Option<Unsynchronised>,
    pub(super) framer: Framer,
    pub(super) unpacker: Unpacker,
}

/// The state while the start of frames is unknown.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Unsynchronised {
    cause: Cause,
    /// The start of the first frame, if the caller knows it.
    start: Option<u64>,
}

impl Deframer {
    /// A deframer for a capture from its first byte.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        let start = |start| Unsynchronised { cause: Cause::Start, start };
        let unsynchronised = match framing {
            Framing::Port => Some(start(None)),
            Framing::PortFrom(alignment) if alignment != FrameAlignment::default() => {
                Some(start(Some(u64::from(alignment.bytes()))))
            }
            Framing::Buffer | Framing::PortFrom(_) => None,
        };
        Self { unsynchronised, ..Self::synchronised(framing) }
    }

    /// A deframer for which the next byte starts a frame or synchronisation.
    pub(super) fn synchronised(framing: Framing) -> Self {
        let framer = Framer::new(framing != Framing::Buffer);
        Self { unsynchronised: None, framer, unpacker: Unpacker::new() }
    }

    /// Takes the next bytes of the capture.
    pub fn push(&mut self, input: &[u8], sink: &mut impl FrameSink) {
        let mut input = input;
        while let Some((&byte, rest)) = input.split_first() {
            let frames = match self.unsynchronised {
                None => self.framer.without_sync(self.framer.whole_frames(input)),
                Some(_) => &[],
            };
            if frames.is_empty() {
                let at = self.framer.advance();
                self.take_byte(byte, at, sink);
                input = rest;
            } else {
                self.unpacker.frames(FramePlaces::Contiguous(self.framer.position()), frames, sink);
                self.framer.step_over(frames);
                input = input.get(frames.as_flattened().len()..).unwrap_or_default();
            }
        }
    }

    /// Ends the capture.
    pub fn finish(&mut self, sink: &mut impl FrameSink) -> Tail {
        let end = self.framer.taken();
        if let Some(Unsynchronised { cause, .. }) = self.unsynchronised {
            self.unpacker.lose_until(end, cause, sink);
        }
        let start = self.framer.partial.start().unwrap_or(end);
        self.framer.partial.clear();
        self.unpacker.end(start, end);
        Tail { at: CaptureOffset(start), bytes: end - start }
    }

    /// The account of the bytes so far.
    #[must_use]
    pub fn account(&self) -> Account {
        self.unpacker.account()
    }

    fn take_byte(&mut self, byte: u8, at: u64, sink: &mut impl FrameSink) {
        if let Some(waiting) = self.unsynchronised {
            self.synchronise(waiting, byte, at, sink);
            return;
        }
        match self.framer.take(byte, at) {
            Some(Completed::FullSync) => self.full_sync(sink),
            Some(Completed::Barrier) => self.barrier(sink),
            // After an ID that does not exist, only an FSYNC gives the start of frames.
            Some(Completed::Frame) | None if self.framer.names_impossible_id() => {
                self.unpacker.overhead_until(self.framer.partial.start().unwrap_or(at));
                self.framer.partial.clear();
                self.unsynchronised = Some(Unsynchronised { cause: Cause::ImpossibleId, start: None });
            }
            Some(Completed::Frame) => {
                let partial = &self.framer.partial;
                self.unpacker.frames(partial.places(), core::slice::from_ref(partial.padded()), sink);
                self.framer.partial.clear();
            }
            None => {}
        }
    }

    /// Takes a byte before the first frame.
    fn synchronise(&mut self, waiting: Unsynchronised, byte: u8, at: u64, sink: &mut impl FrameSink) {
        if self.framer.pass_over(byte, at) {
            self.first_full_sync(waiting.cause, sink);
        } else if waiting.start == Some(self.framer.taken()) {
            self.unpacker.lose_until(self.framer.taken(), waiting.cause, sink);
            self.framer.start_frame();
        } else {
            return;
        }
        self.unsynchronised = None;
    }

    /// Handles an FSYNC that was completed while the start of frames was unknown.
    pub(super) fn first_full_sync(&mut self, cause: Cause, sink: &mut impl FrameSink) {
        self.unpacker.lose_until(self.framer.full_sync_start(), cause, sink);
        self.unpacker.overhead_until(self.framer.taken());
    }

    /// Handles a completed FSYNC, which is between frames or cuts one.
    pub(super) fn full_sync(&mut self, sink: &mut impl FrameSink) {
        let sync = self.framer.full_sync_start();
        let start = self.framer.partial.start().unwrap_or(sync);
        self.framer.partial.clear();
        if start != sync {
            self.unpacker.overhead_until(start.min(sync));
            self.unpacker.lose_until(sync, Cause::MisplacedSync, sink);
        }
        self.unpacker.overhead_until(self.framer.taken());
    }

    /// Handles a completed barrier.
    pub(super) fn barrier(&mut self, sink: &mut impl FrameSink) {
        self.framer.partial.clear();
        self.unpacker.overhead_until(self.framer.taken());
        self.unpacker.lose_until(self.framer.taken(), Cause::Barrier, sink);
    }
}

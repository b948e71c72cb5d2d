//! Handing frames out: whose bytes are in them, and the account of all bytes.

use super::held::Places;
use super::layout::Frame;
use super::{Account, Cause, Discontinuity, FRAME_BYTES, FRAME_DATA_BYTES, FrameSink, Owner, Piece};
use crate::span::CaptureOffset;

/// The last station of a frame.
#[derive(Clone, Debug)]
pub(super) struct Unpacker {
    /// Whose bytes come next.
    pub(super) owner: Owner,
    /// All capture bytes in front of this one are in `account`.
    pub(super) accounted: u64,
    pub(super) account: Account,
    /// The data of a run of frames. It lies here because a new one would have to be cleared for each run.
    run: [u8; RUN_FRAMES * FRAME_DATA_BYTES + 1],
}

/// How many frames go into one piece at most. More do not make it faster.
const RUN_FRAMES: usize = 64;

impl Unpacker {
    pub(super) fn new() -> Self {
        Self {
            owner: Owner::Unknown,
            accounted: 0,
            account: Account::default(),
            run: [0; RUN_FRAMES * FRAME_DATA_BYTES + 1],
        }
    }

    /// Hands frames out.
    pub(super) fn frames(&mut self, places: Places, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) {
        match places {
            Places::Contiguous(start) => {
                self.contiguous(start, frames, |_| false, sink);
            }
            Places::Pairs(_) => frames.iter().for_each(|bytes| {
                self.broken_frame(Frame::new(bytes), places, sink);
            }),
        }
    }

    /// Hands out frames that lie one behind the other from `start` on. Stops in front of a frame with an ID byte where
    /// `stop` says so; returns how many frames went out.
    #[inline]
    pub(super) fn contiguous(
        &mut self,
        start: u64,
        frames: &[[u8; FRAME_BYTES]],
        stop: impl Fn(Frame) -> bool,
        sink: &mut impl FrameSink,
    ) -> usize {
        self.overhead_until(start);
        let mut rest = frames;
        while let [bytes, behind @ ..] = rest {
            let run = self.data_frames(rest, sink);
            if run != 0 {
                rest = rest.get(run..).unwrap_or_default();
                continue;
            }
            let frame = Frame::new(bytes);
            if stop(frame) {
                break;
            }
            self.frame_with_ids(frame, sink);
            rest = behind;
        }
        frames.len() - rest.len()
    }

    /// The fast path: the leading frames that have no ID byte go out together; returns how many they are.
    #[inline]
    fn data_frames(&mut self, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) -> usize {
        let mut taken = 0;
        for bytes in frames.iter().take(RUN_FRAMES) {
            let frame = Frame::new(bytes);
            if !frame.is_all_data() {
                break;
            }
            // All 16 bytes are written, because that is quicker; the next frame overwrites the last one.
            let start = taken * FRAME_DATA_BYTES;
            if let Some(slot) = self.run.get_mut(start..start + FRAME_BYTES) {
                slot.copy_from_slice(&frame.restored());
            }
            taken += 1;
        }
        if taken != 0 {
            let bytes = self.run.get(..taken * FRAME_DATA_BYTES).unwrap_or_default();
            self.account.add(self.owner, bytes.len() as u64);
            self.account.overhead += taken as u64;
            sink.data(self.owner, Piece { at: CaptureOffset(self.accounted), bytes });
            self.accounted += (taken * FRAME_BYTES) as u64;
        }
        taken
    }

    #[inline]
    fn frame_with_ids(&mut self, frame: Frame, sink: &mut impl FrameSink) {
        let restored = frame.restored();
        let at = self.accounted;
        let mut data = 0;
        self.owner = frame.segments(self.owner, |segment| {
            let bytes = restored.get(segment.start..segment.end).unwrap_or_default();
            self.account.add(segment.owner, bytes.len() as u64);
            data += bytes.len();
            sink.data(segment.owner, Piece { at: CaptureOffset(at + segment.start as u64), bytes });
        });
        self.account.overhead += (FRAME_BYTES - data) as u64;
        self.accounted = at + FRAME_BYTES as u64;
    }

    /// A frame with HSYNCs in it, which cut its segments into several pieces.
    fn broken_frame(&mut self, frame: Frame, places: Places, sink: &mut impl FrameSink) {
        let restored = frame.restored();
        self.owner = frame.segments(self.owner, |segment| {
            let mut start = segment.start;
            while start < segment.end {
                let at = places.place(start);
                let end = (start + 1..segment.end)
                    .find(|&next| places.place(next) != at + (next - start) as u64)
                    .unwrap_or(segment.end);
                let bytes = restored.get(start..end).unwrap_or_default();
                self.account.overhead += at.saturating_sub(self.accounted);
                self.account.add(segment.owner, bytes.len() as u64);
                self.accounted = at + bytes.len() as u64;
                sink.data(segment.owner, Piece { at: CaptureOffset(at), bytes });
                start = end;
            }
        });
        self.overhead_until(places.place(FRAME_BYTES - 1) + 1);
    }

    /// What comes in front of `end` and is not accounted for belongs to nobody.
    pub(super) fn overhead_until(&mut self, end: u64) {
        self.account.overhead += end.saturating_sub(self.accounted);
        self.accounted = self.accounted.max(end);
    }

    /// What comes in front of `end` and is not accounted for could not be read. The owner is not known any more.
    pub(super) fn lose_until(&mut self, end: u64, cause: Cause, sink: &mut impl FrameSink) {
        let bytes = end.saturating_sub(self.accounted);
        if bytes != 0 || cause != Cause::Start {
            sink.discontinuity(Discontinuity { at: CaptureOffset(self.accounted), bytes, cause });
        }
        self.account.lost += bytes;
        self.accounted = self.accounted.max(end);
        self.owner = Owner::Unknown;
    }
}

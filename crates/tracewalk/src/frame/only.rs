//! Extracts one source's bytes from contiguous frames.
//!
//! Other sources' bytes are not read: in frames without the source, only ID bytes are.

use super::layout::{FRAME_BYTES, FRAME_DATA_BYTES, id_bytes, restore};
use super::owner::Owner;
use super::sink::{FrameSink, Piece};
use super::unpacker::{PADDING, RUN_FRAMES, data_place, is_delayed};
use crate::ids::TraceId;
use crate::span::CaptureOffset;

/// Takes one source's bytes out of frames.
#[derive(Clone, Debug)]
pub(super) struct Only {
    id: TraceId,
    /// Whether the next byte is the source's.
    is_open: bool,
    /// The source's data of a run of frames, and some bytes after it.
    run: [u8; RUN_FRAMES * FRAME_DATA_BYTES + PADDING],
}

impl Only {
    /// For the bytes of `id`; `first` is the owner of the first frame's first byte.
    pub(super) fn new(id: TraceId, first: Owner) -> Self {
        Self { id, is_open: first == Owner::Source(id), run: [0; RUN_FRAMES * FRAME_DATA_BYTES + PADDING] }
    }

    /// Takes the next frames, which begin at `at`.
    pub(super) fn frames(&mut self, at: u64, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) {
        let ats = (at..).step_by(RUN_FRAMES * FRAME_BYTES);
        frames.chunks(RUN_FRAMES).zip(ats).for_each(|(frames, at)| self.run(at, frames, sink));
    }

    #[inline]
    fn run(&mut self, at: u64, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) {
        let own = self.id.get() << 1 | 1;
        let mut start = 0;
        for (group, before) in frames.chunks(8).zip((0..).step_by(8)) {
            for (pair, id_byte) in id_bytes(group) {
                let opens = id_byte == own;
                if !opens && !self.is_open {
                    continue;
                }
                let is_delayed = is_delayed(group, pair);
                let place = FRAME_BYTES * before + 2 * pair;
                if self.is_open {
                    self.stretch(at, frames, start..place, is_delayed, sink);
                }
                self.is_open = opens;
                start = place + 1 + usize::from(is_delayed);
            }
        }
        if self.is_open {
            self.stretch(at, frames, start..frames.as_flattened().len(), false, sink);
        }
    }

    /// Hands out the data in these places of the frames and, if the change after them `is_delayed`, the byte
    /// after the ID byte.
    fn stretch(
        &mut self,
        at: u64,
        frames: &[[u8; FRAME_BYTES]],
        places: core::ops::Range<usize>,
        is_delayed: bool,
        sink: &mut impl FrameSink,
    ) {
        // After the last data byte of a frame, the next frame begins.
        let start = places.start + usize::from(places.start % FRAME_BYTES == FRAME_DATA_BYTES);
        let delayed = usize::from(is_delayed);
        let (from, to) = (data_place(start), data_place(places.end) + delayed);
        if from >= to {
            return;
        }
        let (first, last) = (start / FRAME_BYTES, (places.end + delayed).div_ceil(FRAME_BYTES));
        if let (Some(frames), Some(data)) =
            (frames.get(first..last.min(frames.len())), self.run.get_mut(first * FRAME_DATA_BYTES..))
        {
            restore(frames, data);
        }
        if let Some([id, after, ..]) = self.run.get_mut(data_place(places.end)..).filter(|_| is_delayed) {
            *id = *after;
        }
        if let (Some(bytes), Some(padded)) = (self.run.get(from..to), self.run.get(from..)) {
            sink.data(
                Owner::Source(self.id),
                Piece::in_frames(CaptureOffset(at), start, bytes, is_delayed, padded),
            );
        }
    }
}

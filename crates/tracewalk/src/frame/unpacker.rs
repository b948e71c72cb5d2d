//! Hands out the bytes of frames by owner, and keeps the account of all bytes.

use core::fmt;

use super::account::{Account, OwnerKey, Tally};
use super::layout::{FRAME_BYTES, FRAME_DATA_BYTES, Frame, GROUP, groups, id_pairs, restore};
use super::partial::FramePlaces;
use super::sink::{Cause, Discontinuity, FrameSink, Piece};
use crate::ids::TraceId;
use crate::span::CaptureOffset;

/// The last stage of deframing.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Unpacker {
    /// The owner of the next bytes.
    pub(super) owner: OwnerKey,
    /// All capture bytes before this one are in `tally`.
    accounted: u64,
    tally: Tally,
    /// The number of times that anything but contiguous whole frames came.
    breaks: u64,
    /// The data of a run of frames, and some bytes after it. Kept here, because a new buffer would have to be
    /// cleared for each run.
    #[cfg_attr(feature = "serde", serde(skip))]
    run: Run,
}

/// The number of frames that are taken at a time, a multiple of 8. A larger number is not faster.
pub(super) const RUN_FRAMES: usize = 128;

/// The number of bytes after the data of the longest run: see [`Piece::append_to`].
pub(super) const PADDING: usize = 64;

/// Room for the data of a run of frames, and for some bytes after it. Its content is meaningless between two runs.
#[derive(Clone)]
struct Run([u8; RUN_FRAMES * FRAME_DATA_BYTES + PADDING]);

impl Default for Run {
    fn default() -> Self {
        Self([0; RUN_FRAMES * FRAME_DATA_BYTES + PADDING])
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Run")
    }
}

impl Unpacker {
    pub(super) fn new() -> Self {
        Self {
            owner: OwnerKey::UNKNOWN,
            accounted: 0,
            tally: Tally::default(),
            breaks: 0,
            run: Run::default(),
        }
    }

    /// The account of the bytes so far.
    pub(super) fn account(&self) -> Account {
        self.tally.account()
    }

    /// The place up to which all bytes were handed out, or have no owner.
    pub(super) const fn accounted(&self) -> u64 {
        self.accounted
    }

    /// The number of bytes that were handed out for each source.
    pub(super) fn sources(&self) -> impl Iterator<Item = (TraceId, u64)> {
        self.tally.owners().filter_map(|(owner, bytes)| Some((owner.trace_id()?, bytes)))
    }

    /// The number of times that anything but contiguous whole frames was handed out.
    pub(super) const fn breaks(&self) -> u64 {
        self.breaks
    }

    /// Hands frames out.
    pub(super) fn frames(
        &mut self,
        places: FramePlaces,
        frames: &[[u8; FRAME_BYTES]],
        sink: &mut impl FrameSink,
    ) {
        match places {
            FramePlaces::Contiguous(start) => {
                self.overhead_until(start);
                frames.chunks(RUN_FRAMES).for_each(|frames| self.run(frames, sink));
            }
            FramePlaces::Pairs(_) => frames.iter().for_each(|bytes| {
                self.broken_frame(Frame::new(bytes), places, sink);
            }),
        }
    }

    /// Hands out contiguous frames, at most `RUN_FRAMES`: stretches of data from one ID byte to the next one,
    /// across frames.
    #[inline]
    fn run(&mut self, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) {
        let run = self.run.0.as_mut_slice();
        restore(frames, run);
        // Finds all ID bytes before anything goes out, because reading bytes directly after writing one of
        // them stalls the processor.
        let mut changes = [Changes::default(); RUN_FRAMES / GROUP];
        let count = find_changes(frames, run, &mut changes);
        let mut handing =
            Handing { at: self.accounted, run, tally: &mut self.tally, start: 0, place: 0, data: 0 };
        for &Changes { group, mut ids, delayed } in changes.get(..count).unwrap_or_default() {
            let before = group * GROUP * FRAME_BYTES;
            let group = frames.as_flattened().get(before..).unwrap_or_default();
            while ids != 0 {
                let pair = ids.trailing_zeros() as usize;
                ids &= ids - 1;
                handing.stretch(self.owner, before + 2 * pair, delayed >> pair & 1 == 1, sink);
                self.owner = OwnerKey::from_id_byte(group.get(2 * pair).copied().unwrap_or_default());
            }
        }
        let bytes = frames.as_flattened().len();
        handing.stretch(self.owner, bytes, false, sink);
        let data = handing.data;
        self.tally.overhead += (bytes - data) as u64;
        self.accounted += bytes as u64;
    }

    /// Hands out a frame with HSYNCs in it, which cut its data into several pieces.
    fn broken_frame(&mut self, frame: Frame, places: FramePlaces, sink: &mut impl FrameSink) {
        self.breaks += 1;
        let restored = frame.restored();
        self.owner = OwnerKey::from(frame.data_spans(self.owner.owner(), |span| {
            let mut start = span.start;
            while start < span.end {
                let at = places.place(start);
                let end = (start + 1..span.end)
                    .find(|&next| places.place(next) != at + (next - start) as u64)
                    .unwrap_or(span.end);
                let bytes = restored.get(start..end).unwrap_or_default();
                self.tally.overhead += at.saturating_sub(self.accounted);
                self.tally.add(span.owner.into(), bytes.len() as u64);
                self.accounted = at + bytes.len() as u64;
                sink.data(span.owner, Piece::new(CaptureOffset(at), bytes));
                start = end;
            }
        }));
        self.overhead_until(places.place(FRAME_BYTES - 1) + 1);
    }

    /// Counts the remaining bytes before `end` as overhead.
    pub(super) fn overhead_until(&mut self, end: u64) {
        self.breaks += u64::from(end > self.accounted);
        self.tally.overhead += end.saturating_sub(self.accounted);
        self.accounted = self.accounted.max(end);
    }

    /// Counts the remaining bytes before `end` as lost. The owner is unknown afterwards.
    pub(super) fn lose_until(&mut self, end: u64, cause: Cause, sink: &mut impl FrameSink) {
        self.breaks += 1;
        let bytes = end.saturating_sub(self.accounted);
        if bytes != 0 || cause != Cause::Start {
            sink.discontinuity(Discontinuity { at: CaptureOffset(self.accounted), bytes, cause });
        }
        self.tally.lost += bytes;
        self.accounted = self.accounted.max(end);
        self.owner = OwnerKey::UNKNOWN;
    }

    /// Ends the capture at `end`, with an incomplete frame from `start` on.
    pub(super) fn end(&mut self, start: u64, end: u64) {
        self.overhead_until(start);
        self.tally.tail += end - start;
        self.accounted = end;
    }
}

/// The ID bytes of a group of frames.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    /// The group's place among the run's frames.
    group: usize,
    /// By pair of bytes: whether the first one is an ID.
    ids: u64,
    /// By pair of bytes: whether the byte after the ID is still the old owner's.
    delayed: u64,
}

/// Finds the ID bytes in `frames`, whose data is in `run`; returns the number of groups with ID bytes. A
/// delayed byte moves to the ID byte's place, which has no data otherwise.
#[inline]
fn find_changes(frames: &[[u8; FRAME_BYTES]], run: &mut [u8], changes: &mut [Changes]) -> usize {
    let mut slots = changes.iter_mut();
    let mut count = 0;
    groups(frames, |number, group| {
        let ids = id_pairs(group);
        if ids == 0 {
            return;
        }
        let mut delayed = 0;
        let mut left = ids;
        while left != 0 {
            let pair = left.trailing_zeros() as usize;
            left &= left - 1;
            if is_delayed(group, pair) {
                delayed |= 1 << pair;
                let place = number * GROUP * FRAME_BYTES + 2 * pair;
                if let Some([id, after, ..]) = run.get_mut(data_place(place)..) {
                    *id = *after;
                }
            }
        }
        if let Some(slot) = slots.next() {
            *slot = Changes { group: number, ids, delayed };
            count += 1;
        }
    });
    count
}

/// Whether a change of owner in the first byte of a pair leaves the second byte to the old owner.
#[inline(always)]
pub(super) fn is_delayed(frames: &[[u8; FRAME_BYTES]], pair: usize) -> bool {
    let auxiliary = frames.get(pair / 8).map_or(0, |[.., auxiliary]| *auxiliary);
    // Byte 14 has no data byte after it to delay the change.
    (auxiliary & 0b0111_1111) >> (pair % 8) & 1 == 1
}

/// The index of a byte of frames in their data, which omits the auxiliary bytes.
#[inline(always)]
pub(super) const fn data_place(place: usize) -> usize {
    place - place / FRAME_BYTES
}

/// Hands out the stretches of data in a run of frames.
struct Handing<'a> {
    /// The place of the run's first frame.
    at: u64,
    /// The run's data.
    run: &'a [u8],
    tally: &'a mut Tally,
    /// The start of the next stretch in the run's data, and in its frames.
    start: usize,
    place: usize,
    /// The number of bytes that were handed out.
    data: usize,
}

impl Handing<'_> {
    /// Hands out the stretch up to a place where the owner changes.
    #[inline(always)]
    fn stretch(&mut self, owner: OwnerKey, place: usize, is_delayed: bool, sink: &mut impl FrameSink) {
        let delayed = usize::from(is_delayed);
        let end = data_place(place) + delayed;
        if let (Some(bytes @ [_, ..]), Some(padded)) =
            (self.run.get(self.start..end), self.run.get(self.start..))
        {
            self.tally.add(owner, bytes.len() as u64);
            self.data += bytes.len();
            let frames = CaptureOffset(self.at);
            sink.data(owner.owner(), Piece::in_frames(frames, self.place, bytes, is_delayed, padded));
        }
        self.start = end + 1;
        let after = place + 1 + delayed;
        // After the last data byte the next frame begins.
        self.place = after + usize::from(after % FRAME_BYTES == FRAME_DATA_BYTES);
    }
}

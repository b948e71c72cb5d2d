//! Handing frames out: whose bytes are in them, and the account of all bytes.

use alloc::vec::Vec;

use super::held::Places;
use super::layout::{Frame, id_pairs};
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
    /// How often something else came than whole frames that lie one behind the other.
    pub(super) breaks: u64,
    scratch: Scratch,
}

/// Room for a run of frames. It lies here because a new one would have to be cleared for each run; nothing of it is needed
/// for the next one, so that a clone begins without.
#[derive(Debug, Default)]
struct Scratch {
    /// The data, and some bytes behind it.
    run: Vec<u8>,
    /// The changes of owner in it, and room for as many as there can be.
    changes: Vec<Change>,
}

impl Clone for Scratch {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Scratch {
    fn prepare(&mut self) {
        self.run.resize(RUN_FRAMES * FRAME_DATA_BYTES + PADDING, 0);
        self.changes.resize(RUN_FRAMES * FRAME_BYTES / 2, Change::default());
    }
}

/// A change of owner in a run of frames.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    /// Where the ID byte stands in the frames.
    place: u16,
    /// Whether the byte behind it is still the old owner's.
    is_delayed: bool,
    id_byte: u8,
}

/// How many frames are taken at a time, a multiple of 8. More do not make it faster.
pub(super) const RUN_FRAMES: usize = 128;

/// How many bytes there are behind the data of the longest run: see [`Piece::append_to`].
pub(super) const PADDING: usize = 64;

impl Unpacker {
    pub(super) fn new() -> Self {
        Self {
            owner: Owner::Unknown,
            accounted: 0,
            account: Account::default(),
            breaks: 0,
            scratch: Scratch::default(),
        }
    }

    /// Hands frames out.
    pub(super) fn frames(&mut self, places: Places, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) {
        match places {
            Places::Contiguous(start) => {
                self.overhead_until(start);
                self.scratch.prepare();
                frames.chunks(RUN_FRAMES).for_each(|frames| self.run(frames, sink));
            }
            Places::Pairs(_) => frames.iter().for_each(|bytes| {
                self.broken_frame(Frame::new(bytes), places, sink);
            }),
        }
    }

    /// Hands out frames that lie one behind the other, at most `RUN_FRAMES`: stretches of data from one ID byte to the next
    /// one, across frames.
    #[inline]
    fn run(&mut self, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) {
        let Scratch { run, changes } = &mut self.scratch;
        let run = run.as_mut_slice();
        for (index, bytes) in frames.iter().enumerate() {
            // All 16 bytes are written, because that is quicker; the next frame overwrites the last one.
            let start = index * FRAME_DATA_BYTES;
            if let Some(slot) = run.get_mut(start..start + FRAME_BYTES) {
                slot.copy_from_slice(&Frame::new(bytes).restored());
            }
        }
        // All ID bytes are looked for before anything goes out, because reading bytes directly behind writing one of them
        // makes the processor wait.
        let count = find_changes(frames, run, changes);
        let mut handing = Handing { at: self.accounted, account: self.account, start: 0, place: 0, data: 0 };
        for change in changes.get(..count).unwrap_or_default() {
            handing.stretch(self.owner, change, run, sink);
            self.owner = Owner::from_id_byte(change.id_byte);
        }
        let bytes = frames.as_flattened().len();
        let end = Change { place: u16::try_from(bytes).unwrap_or(u16::MAX), ..Change::default() };
        handing.stretch(self.owner, &end, run, sink);
        self.account = handing.account;
        self.account.overhead += (bytes - handing.data) as u64;
        self.accounted += bytes as u64;
    }

    /// A frame with HSYNCs in it, which cut its segments into several pieces.
    fn broken_frame(&mut self, frame: Frame, places: Places, sink: &mut impl FrameSink) {
        self.breaks += 1;
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
                sink.data(segment.owner, Piece::new(CaptureOffset(at), bytes));
                start = end;
            }
        });
        self.overhead_until(places.place(FRAME_BYTES - 1) + 1);
    }

    /// What comes in front of `end` and is not accounted for belongs to nobody.
    pub(super) fn overhead_until(&mut self, end: u64) {
        self.breaks += u64::from(end > self.accounted);
        self.account.overhead += end.saturating_sub(self.accounted);
        self.accounted = self.accounted.max(end);
    }

    /// What comes in front of `end` and is not accounted for could not be read. The owner is not known any more.
    pub(super) fn lose_until(&mut self, end: u64, cause: Cause, sink: &mut impl FrameSink) {
        self.breaks += 1;
        let bytes = end.saturating_sub(self.accounted);
        if bytes != 0 || cause != Cause::Start {
            sink.discontinuity(Discontinuity { at: CaptureOffset(self.accounted), bytes, cause });
        }
        self.account.lost += bytes;
        self.accounted = self.accounted.max(end);
        self.owner = Owner::Unknown;
    }
}

/// Finds the ID bytes in `frames`, whose data is in `run`; returns how many there are.
#[inline]
fn find_changes(frames: &[[u8; FRAME_BYTES]], run: &mut [u8], changes: &mut [Change]) -> usize {
    let mut count = 0;
    for (group, before) in frames.chunks(8).zip((0..).step_by(8)) {
        let mut ids = id_pairs(group);
        while ids != 0 {
            let pair = ids.trailing_zeros() as usize;
            ids &= ids - 1;
            let id_byte = group.as_flattened().get(2 * pair).copied().unwrap_or_default();
            let auxiliary = group.get(pair / 8).map_or(0, |[.., auxiliary]| *auxiliary);
            // Byte 14 has no data byte behind it that the change could be delayed by.
            let is_delayed = (auxiliary & 0b0111_1111) >> (pair % 8) & 1 == 1;
            let place = FRAME_BYTES * before + 2 * pair;
            // A delayed byte moves up to the ID byte's place, where nothing of use is otherwise.
            if let Some([id, behind, ..]) = run.get_mut(data_place(place)..) {
                *id = *behind;
            }
            if let Some(slot) = changes.get_mut(count) {
                *slot = Change { place: u16::try_from(place).unwrap_or(u16::MAX), is_delayed, id_byte };
            }
            count += 1;
        }
    }
    count
}

/// Where the data of a byte of some frames is, without their auxiliary bytes.
#[inline(always)]
pub(super) const fn data_place(place: usize) -> usize {
    place - place / FRAME_BYTES
}

/// Stretches of data on their way out of a run of frames.
struct Handing {
    /// Where the run's first frame stands.
    at: u64,
    account: Account,
    /// Where the next stretch starts in the run's data, and in its frames.
    start: usize,
    place: usize,
    /// How many bytes went out.
    data: usize,
}

impl Handing {
    /// The stretch that a change of owner ends.
    #[inline(always)]
    fn stretch(&mut self, owner: Owner, change: &Change, run: &[u8], sink: &mut impl FrameSink) {
        let place = usize::from(change.place);
        let delayed = usize::from(change.is_delayed);
        let end = data_place(place) + delayed;
        if let (Some(bytes @ [_, ..]), Some(padded)) = (run.get(self.start..end), run.get(self.start..)) {
            self.account.add(owner, bytes.len() as u64);
            self.data += bytes.len();
            let frames = CaptureOffset(self.at);
            sink.data(owner, Piece::in_frames(frames, self.place, bytes, change.is_delayed, padded));
        }
        self.start = end + 1;
        let behind = place + 1 + delayed;
        // Behind the last data byte the next frame begins.
        self.place = behind + usize::from(behind % FRAME_BYTES == FRAME_DATA_BYTES);
    }
}

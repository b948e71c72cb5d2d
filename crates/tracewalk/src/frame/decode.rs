//! Frames → the bytes of each owner.

use super::unpack::Frame;
use super::{
    Account, Cause, Discontinuity, FRAME_BYTES, FRAME_DATA_BYTES, FSYNC, FrameSink, HSYNC, Owner, Piece,
};
use crate::span::CaptureOffset;

/// What stands between the frames of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Nothing, as in a trace buffer: a frame every 16 bytes from the first byte on. Barriers are recognised.
    #[default]
    Buffer,
    /// FSYNCs and HSYNCs, as on a trace port. The frames start behind the first FSYNC, at any byte.
    Port,
    /// As [`Framing::Port`], but it is known that a frame starts after this many bytes, 0 to 15: for a capture without
    /// FSYNCs. They are obeyed where they come all the same.
    PortFrom(u8),
}

/// The incomplete frame at the end of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Where it starts; the end of the capture if there is none.
    pub at: CaptureOffset,
    /// How many bytes it takes, with the HSYNCs in it.
    pub bytes: u64,
}

/// A capture, in pieces of any size, to the bytes of each owner.
///
/// How the capture is cut into pieces makes no difference, except that a run of whole frames may come as one
/// [`Piece`] or as several.
#[derive(Clone, Debug)]
pub struct Deframer {
    framing: Framing,
    state: State,
    owner: Owner,
    /// The start of a frame whose rest has not come yet.
    partial: Partial,
    /// What came of an FSYNC so far, at any alignment.
    sync: SyncMatcher,
    /// Where the next byte stands.
    position: u64,
    account: Account,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The next byte belongs to a frame.
    Synchronised,
    /// Bytes from `since` on are lost, up to an FSYNC or to where a frame is known to start.
    Searching { since: u64, known_start: Option<u64>, cause: Cause },
}

/// How many frames go into one piece at most. More do not make it faster, and the buffer lies on the stack.
const RUN_FRAMES: usize = 64;

impl Deframer {
    /// A deframer for a capture from its first byte.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        let searching = |known_start| State::Searching { since: 0, known_start, cause: Cause::Start };
        Self {
            framing,
            state: match framing {
                Framing::Buffer | Framing::PortFrom(0) => State::Synchronised,
                Framing::PortFrom(start) => searching(Some(u64::from(start))),
                Framing::Port => searching(None),
            },
            owner: Owner::Unknown,
            partial: Partial::default(),
            sync: SyncMatcher::default(),
            position: 0,
            account: Account::default(),
        }
    }

    /// Takes the next bytes of the capture.
    pub fn push(&mut self, input: &[u8], sink: &mut impl FrameSink) {
        let mut input = input;
        while !input.is_empty() {
            let used = match self.state {
                State::Searching { since, known_start, cause } => {
                    self.search(input, since, known_start, cause, sink)
                }
                // What was searched through may have been the start of an FSYNC, which ends here.
                State::Synchronised if self.partial.filled == 0 && !self.sync.in_progress() => {
                    match self.whole_frames(input.as_chunks().0, sink) {
                        0 => self.assemble(input, sink),
                        frames => frames * FRAME_BYTES,
                    }
                }
                State::Synchronised => self.assemble(input, sink),
            };
            input = input.get(used..).unwrap_or_default();
        }
    }

    /// The capture ends here.
    pub fn finish(&mut self, sink: &mut impl FrameSink) -> Tail {
        if let State::Searching { since, known_start, cause } = self.state {
            self.lose(since, self.position, cause, sink);
            self.state = State::Searching { since: self.position, known_start, cause };
        }
        let start = if self.partial.filled == 0 { self.position } else { self.partial.start };
        self.partial.filled = 0;
        let bytes = self.position - start;
        self.account.tail += bytes;
        Tail { at: CaptureOffset(start), bytes }
    }

    /// What became of the bytes so far. Those of an unfinished frame or search are not in it yet.
    #[must_use]
    pub const fn account(&self) -> &Account {
        &self.account
    }

    /// Takes frames as long as they have nothing of a trace port in them; returns how many.
    fn whole_frames(&mut self, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) -> usize {
        let mut taken = 0;
        while let Some(bytes) = frames.get(taken) {
            let run = self.data_frames(frames.get(taken..).unwrap_or_default(), sink);
            taken += run;
            if run != 0 {
                continue;
            }
            let frame = Frame::new(bytes);
            let at = self.position;
            if frame.has_sync_byte() && self.framing != Framing::Buffer {
                break;
            }
            self.position += FRAME_BYTES as u64;
            if !self.take_barrier(frame, at, sink) {
                self.unpack(frame, |place| at + place as u64, sink);
            }
            taken += 1;
        }
        if let Some([.., last]) = taken.checked_sub(1).and_then(|last| frames.get(last)) {
            self.sync = SyncMatcher::after(*last);
        }
        taken
    }

    /// The fast path: takes the leading frames that have no ID byte and hands them out together; returns how many.
    fn data_frames(&mut self, frames: &[[u8; FRAME_BYTES]], sink: &mut impl FrameSink) -> usize {
        let mut run = [[0; FRAME_DATA_BYTES]; RUN_FRAMES];
        let mut taken = 0;
        for (slot, frame) in run.iter_mut().zip(frames) {
            let frame = Frame::new(frame);
            if !frame.is_all_data() {
                break;
            }
            let [data @ .., _] = frame.restored();
            *slot = data;
            taken += 1;
        }
        if let Some(run) = run.get(..taken).filter(|run| !run.is_empty()) {
            self.emit(self.owner, self.position, run.as_flattened(), sink);
            self.account.overhead += taken as u64;
            self.position += (taken * FRAME_BYTES) as u64;
        }
        taken
    }

    /// Hands out one frame. `place` tells where a byte of the frame stands in the capture.
    fn unpack(&mut self, frame: Frame, place: impl Fn(usize) -> u64, sink: &mut impl FrameSink) {
        let bytes = frame.restored();
        let before = self.account.total();
        let owner = frame.segments(self.owner, |segment| {
            let mut start = segment.start;
            // HSYNCs inside the frame cut a segment into several pieces.
            while start < segment.end {
                let at = place(start);
                let end = (start + 1..segment.end)
                    .find(|&next| place(next) != at + (next - start) as u64)
                    .unwrap_or(segment.end);
                self.emit(segment.owner, at, bytes.get(start..end).unwrap_or_default(), sink);
                start = end;
            }
        });
        self.owner = owner;
        self.account.overhead += FRAME_BYTES as u64 - (self.account.total() - before);
    }

    /// Takes a frame that is Linux's barrier; returns whether it was one.
    fn take_barrier(&mut self, frame: Frame, at: u64, sink: &mut impl FrameSink) -> bool {
        let is_barrier = frame.is_barrier();
        if is_barrier {
            self.account.overhead += FRAME_BYTES as u64;
            self.lose(at, at, Cause::Barrier, sink);
        }
        is_barrier
    }

    #[inline]
    fn emit(&mut self, owner: Owner, at: u64, bytes: &[u8], sink: &mut impl FrameSink) {
        self.account.add(owner, bytes.len() as u64);
        sink.data(owner, Piece { at: CaptureOffset(at), bytes });
    }

    /// Takes bytes into the partial frame until it is complete or given up; returns how many.
    fn assemble(&mut self, input: &[u8], sink: &mut impl FrameSink) -> usize {
        for (index, &byte) in input.iter().enumerate() {
            if self.take_byte(byte, sink) {
                return index + 1;
            }
        }
        input.len()
    }

    /// Takes one byte into the partial frame; returns whether the frame is done with.
    fn take_byte(&mut self, byte: u8, sink: &mut impl FrameSink) -> bool {
        let is_port = self.framing != Framing::Buffer;
        self.partial.take(byte, self.position);
        self.position += 1;
        if is_port && self.sync.take(byte) {
            self.full_sync(sink);
            return true;
        }
        if is_port && self.partial.drop_half_sync() {
            if self.partial.filled == 0 {
                self.account.overhead += HSYNC.len() as u64;
            }
            return self.partial.filled == 0;
        }
        let complete = self.partial.filled == FRAME_BYTES;
        // An `ff` in a mixed place may be the start of an FSYNC as long as only `ff`s follow it.
        let decided = complete || !self.sync.in_progress();
        if is_port && decided && self.partial.frame().has_sync_byte() {
            self.desynchronise(Cause::ImpossibleId);
            return true;
        }
        if complete {
            self.complete_partial(sink);
        }
        complete
    }

    /// An FSYNC ends at the current position.
    fn full_sync(&mut self, sink: &mut impl FrameSink) {
        let sync = self.position - FSYNC.len() as u64;
        let start = self.partial.start;
        if start != sync {
            // It may start in front of the partial frame, in what was taken for an auxiliary byte.
            self.lose(start.min(sync), sync, Cause::MisplacedSync, sink);
        }
        self.account.overhead += self.position - start.max(sync);
        self.partial.filled = 0;
    }

    fn complete_partial(&mut self, sink: &mut impl FrameSink) {
        let Partial { places, start, .. } = self.partial;
        let frame = self.partial.frame();
        self.partial.filled = 0;
        if self.take_barrier(frame, start, sink) {
            return;
        }
        self.unpack(frame, |place| places[place / 2] + (place % 2) as u64, sink);
        // HSYNCs between the pairs.
        self.account.overhead += self.position - start - FRAME_BYTES as u64;
    }

    /// The frame in work cannot be one: nothing is known about the frames any more.
    fn desynchronise(&mut self, cause: Cause) {
        self.state = State::Searching { since: self.partial.start, known_start: None, cause };
        self.partial.filled = 0;
    }

    /// Passes over bytes in search of a frame's start; returns how many.
    fn search(
        &mut self,
        input: &[u8],
        since: u64,
        known_start: Option<u64>,
        cause: Cause,
        sink: &mut impl FrameSink,
    ) -> usize {
        for (index, &byte) in input.iter().enumerate() {
            if known_start == Some(self.position) {
                self.lose(since, self.position, cause, sink);
                self.state = State::Synchronised;
                return index;
            }
            self.position += 1;
            if self.sync.take(byte) {
                self.lose(since, self.position - FSYNC.len() as u64, cause, sink);
                self.account.overhead += FSYNC.len() as u64;
                self.state = State::Synchronised;
                return index + 1;
            }
        }
        input.len()
    }

    /// Reports that the bytes from `start` to `end` are not part of any frame, if need be.
    fn lose(&mut self, start: u64, end: u64, cause: Cause, sink: &mut impl FrameSink) {
        let bytes = end - start;
        if bytes == 0 && cause == Cause::Start {
            return;
        }
        self.owner = Owner::Unknown;
        self.account.lost += bytes;
        sink.discontinuity(Discontinuity { at: CaptureOffset(start), bytes, cause });
    }
}

/// A frame that is put together from several pieces of input, or around HSYNCs.
#[derive(Clone, Copy, Debug, Default)]
struct Partial {
    bytes: [u8; FRAME_BYTES],
    /// How many of `bytes` are there; the others are zero.
    filled: usize,
    /// Where each pair of them stood.
    places: [u64; FRAME_BYTES / 2],
    /// Where the first of them stood.
    start: u64,
}

impl Partial {
    /// Adds a byte. The caller takes a complete frame away before it adds another.
    fn take(&mut self, byte: u8, at: u64) {
        if self.filled == 0 {
            *self = Self { start: at, ..Self::default() };
        }
        if let Some(slot) = self.bytes.get_mut(self.filled) {
            *slot = byte;
        }
        if let (0, Some(place)) = (self.filled % 2, self.places.get_mut(self.filled / 2)) {
            *place = at;
        }
        self.filled += 1;
    }

    /// Takes an HSYNC at the end away; returns whether there was one.
    fn drop_half_sync(&mut self) -> bool {
        let Some(pair) = self.filled.checked_sub(2).filter(|pair| pair % 2 == 0) else { return false };
        let Some(last) = self.bytes.get_mut(pair..self.filled).filter(|last| *last == HSYNC) else {
            return false;
        };
        last.fill(0);
        self.filled = pair;
        true
    }

    fn frame(&self) -> Frame {
        Frame::new(&self.bytes)
    }
}

/// Finds FSYNCs at any alignment. No frame has those four bytes in it, wherever one starts to read: three `ff` in a
/// row put one into a mixed place, where it would be ID `0x7f`.
#[derive(Clone, Copy, Debug, Default)]
struct SyncMatcher {
    /// How many `ff` came last, at most 3.
    ones: u8,
}

impl SyncMatcher {
    /// The matcher behind a frame that ends in `last` and has no `ff` in its mixed places.
    fn after(last: u8) -> Self {
        Self { ones: u8::from(last == 0xff) }
    }

    /// Takes a byte; returns whether it completes an FSYNC.
    fn take(&mut self, byte: u8) -> bool {
        let complete = self.ones == 3 && byte == 0x7f;
        self.ones = if byte == 0xff { (self.ones + 1).min(3) } else { 0 };
        complete
    }

    /// The last byte may belong to an FSYNC.
    fn in_progress(self) -> bool {
        self.ones != 0
    }
}

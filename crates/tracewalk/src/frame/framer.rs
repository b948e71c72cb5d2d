//! Bytes → frames, and the synchronisation that a trace port puts between them.

use super::layout::{FRAME_BYTES, FSYNC, Frame};
use super::partial::{PartialFrame, SyncMatcher};

/// Assembles the bytes of a synchronised capture into frames.
///
/// Frames that are contiguous in the input are taken from there ([`Framer::whole_frames`],
/// [`Framer::step_over`]), all others byte by byte ([`Framer::take`]).
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Framer {
    /// Whether the capture has FSYNCs and HSYNCs; otherwise barriers.
    is_port: bool,
    /// The start of a frame whose rest has not arrived.
    pub(super) partial: PartialFrame,
    /// The part of an FSYNC that has arrived, at any alignment.
    sync: SyncMatcher,
    /// The place of the next new byte.
    position: u64,
    /// The place after the last byte that was taken.
    taken: u64,
}

/// The unit that the last byte completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completed {
    /// A frame: [`Framer::partial`].
    Frame,
    /// An FSYNC. [`Framer::partial`] holds the start of the frame that it cuts, and then the FSYNC.
    FullSync,
    /// A frame of four FSYNCs in a buffer: [`Framer::partial`].
    Barrier,
}

/// The maximum number of frames that are taken at a time: few enough to stay in the fastest cache.
const BLOCK_FRAMES: usize = 1024;

impl Framer {
    pub(super) fn new(is_port: bool) -> Self {
        Self {
            is_port,
            partial: PartialFrame::default(),
            sync: SyncMatcher::default(),
            position: 0,
            taken: 0,
        }
    }

    /// The place of the next new byte.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// The place after the last byte that was taken.
    pub(super) const fn taken(&self) -> u64 {
        self.taken
    }

    /// The start of the FSYNC that the last byte completed.
    pub(super) const fn full_sync_start(&self) -> u64 {
        self.taken.saturating_sub(FSYNC.len() as u64)
    }

    /// The frames at the start of the input; none if a frame or an FSYNC is pending.
    pub(super) fn whole_frames<'a>(&self, input: &'a [u8]) -> &'a [[u8; FRAME_BYTES]] {
        if self.partial.start().is_some() || self.sync.is_nearly_complete() {
            return &[];
        }
        let frames = input.as_chunks().0;
        frames.get(..BLOCK_FRAMES).unwrap_or(frames)
    }

    /// Takes contiguous frames, which have no synchronisation in them.
    pub(super) fn step_over(&mut self, frames: &[[u8; FRAME_BYTES]]) {
        if let Some([.., last]) = frames.last() {
            self.sync = SyncMatcher::after(*last);
        }
        self.position += frames.as_flattened().len() as u64;
        self.taken = self.position;
    }

    /// The place of a new byte.
    pub(super) fn advance(&mut self) -> u64 {
        self.position += 1;
        self.position - 1
    }

    /// Takes a byte of a frame or of synchronisation, from place `at`. The caller clears [`Framer::partial`]
    /// after it has used a completed unit.
    pub(super) fn take(&mut self, byte: u8, at: u64) -> Option<Completed> {
        self.taken = at + 1;
        self.partial.take(byte, at);
        if self.is_port {
            if self.sync.take(byte) {
                return Some(Completed::FullSync);
            }
            self.partial.drop_half_sync();
        }
        match self.partial.is_complete() {
            true if !self.is_port && self.partial.frame().is_barrier() => Some(Completed::Barrier),
            true => Some(Completed::Frame),
            false => None,
        }
    }

    /// Takes a byte while the start of frames is unknown. Returns whether the byte completes an FSYNC.
    pub(super) fn pass_over(&mut self, byte: u8, at: u64) -> bool {
        self.taken = at + 1;
        self.sync.take(byte)
    }

    /// Takes new bytes while the start of frames is unknown. None of the bytes ends an FSYNC.
    pub(super) fn pass_over_all(&mut self, bytes: &[u8]) {
        for &byte in bytes.last_chunk::<3>().map_or(bytes, |last| last) {
            self.sync.take(byte);
        }
        self.position += bytes.len() as u64;
        self.taken = self.position;
    }

    /// Starts a frame at the next byte, whatever came before.
    pub(super) fn start_frame(&mut self) {
        self.partial.clear();
        self.sync = SyncMatcher::default();
    }

    /// Marks all bytes up to the newest one as taken, including synchronisation.
    pub(super) fn take_all(&mut self) {
        self.taken = self.position;
    }

    /// Whether, on a port, the current frame has an ID byte for ID `0x7f` that is not part of an FSYNC.
    pub(super) fn names_impossible_id(&self) -> bool {
        // An `ff` in a mixed place may be the start of an FSYNC as long as only `ff`s follow it.
        let decided = self.partial.is_complete() || !self.sync.is_in_progress();
        self.is_port && decided && self.partial.frame().has_sync_byte()
    }

    /// Whether a frame may have synchronisation in it: on a port a part of an FSYNC, in a buffer only a
    /// barrier.
    pub(super) fn may_be_sync(&self, bytes: &[u8; FRAME_BYTES]) -> bool {
        let frame = Frame::new(bytes);
        if self.is_port { frame.has_sync_byte() } else { frame.is_barrier() }
    }

    /// The frames before the first one with synchronisation in it.
    pub(super) fn without_sync<'a>(&self, frames: &'a [[u8; FRAME_BYTES]]) -> &'a [[u8; FRAME_BYTES]] {
        let count = frames.iter().position(|bytes| self.may_be_sync(bytes)).unwrap_or(frames.len());
        frames.get(..count).unwrap_or_default()
    }
}

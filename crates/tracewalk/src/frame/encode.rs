//! The bytes of each owner → frames.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use super::layout::{FRAME_BYTES, FSYNC, HSYNC};
use crate::ids::TraceId;

/// The IDs and the synchronisation that a [`Formatter`] adds to the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FormatterOptions {
    /// Repeat the ID after this number of frames without one, so that a reader that starts late learns the
    /// owner. A TPIU repeats the ID about every 8 frames (ETB TRM, DDI 0314H).
    pub repeat_id_after: Option<NonZeroU32>,
    /// An FSYNC before the first frame, and again after every such number of frames.
    pub full_sync_every: Option<NonZeroU32>,
    /// An HSYNC after every such number of pairs of bytes.
    pub half_sync_every: Option<NonZeroU32>,
}

/// Encodes several sources' bytes as frames: the inverse of [`Deframer`](super::Deframer).
///
/// Each call appends complete frames to its `output`. A change of ID takes a mixed byte of its own. If the
/// next place is even, the ID goes there and the change is immediate. If the next place is odd, the old
/// source's last byte moves there, the ID takes that byte's place, and the change is delayed.
///
/// ```
/// use tracewalk::frame::{Formatter, FormatterOptions};
/// use tracewalk::ids::TraceId;
///
/// let [cpu, itm] = [0x10, 0x20].map(|id| TraceId::new(id).expect("a trace source's ID"));
/// let mut frames = Vec::new();
/// let mut formatter = Formatter::new(FormatterOptions::default());
/// formatter.write(cpu, &[0xaa, 0x11, 0xbb, 0xcc], &mut frames);
/// formatter.write(itm, &[0x01], &mut frames);
/// formatter.flush(&mut frames);
///
/// let cpu_bytes = [0x21, 0xaa, 0x10, 0xbb];
/// let itm_after_one_more_cpu_byte = [0x41, 0xcc];
/// let padding_after_one_more_itm_byte = [0x01, 0x01, 0, 0, 0, 0, 0, 0, 0];
/// let bit_0_of_0x11_and_two_delayed_changes = [0b0000_1110];
/// assert_eq!(frames[..4], cpu_bytes);
/// assert_eq!(frames[4..6], itm_after_one_more_cpu_byte);
/// assert_eq!(frames[6..15], padding_after_one_more_itm_byte);
/// assert_eq!(frames[15..], bit_0_of_0x11_and_two_delayed_changes);
/// ```
#[derive(Clone, Debug)]
pub struct Formatter {
    options: FormatterOptions,
    frame: [u8; FRAME_BYTES],
    /// The next place to fill, 0 to 14.
    place: usize,
    /// The ID of the next bytes; none at first.
    owner: Option<u8>,
    /// The number of complete frames since the last ID byte.
    frames_without_id: u32,
    frames: u32,
    pairs: u32,
}

/// The ID of padding.
const PADDING: u8 = 0x00;

/// The ID of triggers.
const TRIGGER: u8 = 0x7d;

/// The place of the auxiliary byte.
const AUXILIARY: usize = FRAME_BYTES - 1;

impl Formatter {
    /// A formatter at the start of a capture.
    #[must_use]
    pub const fn new(options: FormatterOptions) -> Self {
        Self {
            options,
            frame: [0; FRAME_BYTES],
            place: 0,
            owner: None,
            frames_without_id: 0,
            frames: 0,
            pairs: 0,
        }
    }

    /// Writes the next bytes of source `id`.
    pub fn write(&mut self, id: TraceId, bytes: &[u8], output: &mut Vec<u8>) {
        for &byte in bytes {
            self.put(id.get(), byte, output);
        }
    }

    /// Writes a trigger: a zero byte of ID `0x7d`.
    pub fn trigger(&mut self, output: &mut Vec<u8>) {
        self.put(TRIGGER, 0, output);
    }

    /// Fills the current frame with padding. The next byte starts with its ID.
    pub fn flush(&mut self, output: &mut Vec<u8>) {
        while self.place != 0 {
            self.put(PADDING, 0, output);
        }
        self.owner = None;
    }

    /// Writes a barrier, as Linux's drivers put it into a buffer where a trace was cut. Flushes first.
    pub fn barrier(&mut self, output: &mut Vec<u8>) {
        self.flush(output);
        output.extend_from_slice(FSYNC.repeat(FRAME_BYTES / FSYNC.len()).as_slice());
    }

    fn put(&mut self, owner: u8, byte: u8, output: &mut Vec<u8>) {
        if self.owner != Some(owner) || self.is_id_due() {
            self.change_owner(owner, output);
        }
        self.frame[self.place] = byte;
        if self.place.is_multiple_of(2) {
            self.frame[self.place] = byte & !1;
            self.frame[AUXILIARY] |= (byte & 1) << (self.place / 2);
        }
        self.advance(output);
    }

    fn is_id_due(&self) -> bool {
        let due = |after: NonZeroU32| self.frames_without_id >= after.get();
        self.place.is_multiple_of(2) && self.options.repeat_id_after.is_some_and(due)
    }

    /// Writes the ID byte of the next data.
    fn change_owner(&mut self, owner: u8, output: &mut Vec<u8>) {
        self.owner = Some(owner);
        self.frames_without_id = 0;
        let id_byte = owner << 1 | 1;
        if self.place.is_multiple_of(2) {
            self.frame[self.place] = id_byte;
            self.advance(output);
            return;
        }
        // The pair's first byte is data already: move it after the ID byte and delay the change.
        let mixed = self.place - 1;
        let bit = 1 << (mixed / 2);
        let data = self.frame[mixed] | u8::from(self.frame[AUXILIARY] & bit != 0);
        self.frame[mixed] = id_byte;
        self.frame[AUXILIARY] |= bit;
        self.frame[self.place] = data;
        self.advance(output);
    }

    fn advance(&mut self, output: &mut Vec<u8>) {
        self.place += 1;
        if self.place == AUXILIARY {
            self.complete_frame(output);
        }
    }

    fn complete_frame(&mut self, output: &mut Vec<u8>) {
        if self.options.full_sync_every.is_some_and(|every| self.frames.is_multiple_of(every.get())) {
            output.extend_from_slice(&FSYNC);
        }
        self.frames = self.frames.wrapping_add(1);
        match self.options.half_sync_every {
            None => output.extend_from_slice(&self.frame),
            Some(every) => {
                for pair in self.frame.as_chunks::<2>().0 {
                    output.extend_from_slice(pair);
                    self.pairs = self.pairs.wrapping_add(1);
                    if self.pairs.is_multiple_of(every.get()) {
                        output.extend_from_slice(&HSYNC);
                    }
                }
            }
        }
        self.frame = [0; FRAME_BYTES];
        self.place = 0;
        self.frames_without_id = self.frames_without_id.saturating_add(1);
    }
}

//! Frames that are complete but not handed out yet, with the place of every byte.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::super::layout::{FRAME_BYTES, HSYNC};
use super::super::partial::{FramePlaces, PartialFrame};

/// A queue of frames. Each has a number, counted from the start of the capture.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Held {
    frames: Vec<[u8; FRAME_BYTES]>,
    /// The number of `frames` that have left the queue. They are removed now and then.
    gone: usize,
    /// The number of the first frame in the queue.
    first: u64,
    /// Ascending by number; each reaches to the next one's number. Only the first one may start before `first`.
    runs: VecDeque<Run>,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Run {
    number: u64,
    places: FramePlaces,
}

impl Held {
    /// The number of the first frame in the queue.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The number of the frame that comes next.
    pub(super) fn end(&self) -> u64 {
        self.first + (self.frames.len() - self.gone) as u64
    }

    /// The frames from number `start` to number `end`, as far as they are in the queue.
    pub(super) fn frames(&self, start: u64, end: u64) -> &[[u8; FRAME_BYTES]] {
        let index = |number: u64| {
            let after_first = usize::try_from(number.saturating_sub(self.first)).unwrap_or(usize::MAX);
            after_first.saturating_add(self.gone).min(self.frames.len())
        };
        self.frames.get(index(start)..index(end)).unwrap_or_default()
    }

    /// Adds frames that are contiguous in the capture.
    pub(super) fn extend(&mut self, frames: &[[u8; FRAME_BYTES]], at: u64) {
        if frames.is_empty() {
            return;
        }
        let goes_on = self.runs.back().is_some_and(|run| match run.places {
            FramePlaces::Contiguous(start) => start + (self.end() - run.number) * FRAME_BYTES as u64 == at,
            FramePlaces::Pairs(_) => false,
        });
        if !goes_on {
            self.runs.push_back(Run { number: self.end(), places: FramePlaces::Contiguous(at) });
        }
        self.frames.extend_from_slice(frames);
    }

    /// Adds an assembled frame.
    pub(super) fn push(&mut self, frame: &PartialFrame) {
        match frame.places() {
            FramePlaces::Contiguous(at) => self.extend(core::slice::from_ref(frame.padded()), at),
            places @ FramePlaces::Pairs(_) => {
                self.runs.push_back(Run { number: self.end(), places });
                self.frames.push(*frame.padded());
            }
        }
    }

    /// Frames from the front of the queue up to number `until` with their places, as many as are contiguous.
    pub(super) fn front(&self, until: u64) -> Option<(FramePlaces, &[[u8; FRAME_BYTES]])> {
        let run = self.runs.front()?;
        let end = self.runs.get(1).map_or(u64::MAX, |next| next.number).min(until);
        let places = match run.places {
            FramePlaces::Contiguous(start) => {
                FramePlaces::Contiguous(start + (self.first - run.number) * FRAME_BYTES as u64)
            }
            pairs @ FramePlaces::Pairs(_) => pairs,
        };
        Some((places, self.frames(self.first, end))).filter(|(_, frames)| !frames.is_empty())
    }

    /// Removes the first `count` frames that [`Held::front`] returns.
    pub(super) fn drop_front(&mut self, count: usize) {
        /// Frames that left are removed at this number, so that moving the others up costs next to nothing.
        const SHIFT_AFTER: usize = 256;
        self.gone += count;
        self.first += count as u64;
        if self.gone == self.frames.len() || self.gone >= SHIFT_AFTER {
            self.frames.drain(..self.gone);
            self.gone = 0;
        }
        while self.runs.get(1).is_some_and(|next| next.number <= self.first) {
            self.runs.pop_front();
        }
        if self.first == self.end() {
            self.runs.clear();
        }
    }

    /// Counts frames that bypass the queue, which is empty.
    pub(super) fn pass(&mut self, count: usize) {
        debug_assert!(self.runs.is_empty(), "frames must not overtake each other");
        self.first += count as u64;
    }

    /// Calls `visit` with every byte in the queue and its place.
    pub(super) fn bytes(&self, mut visit: impl FnMut(u8, u64)) {
        let mut runs = self.runs.iter().peekable();
        while let Some(run) = runs.next() {
            let end = runs.peek().map_or(self.end(), |next| next.number);
            let start = run.number.max(self.first);
            let skipped =
                usize::try_from(start - run.number).unwrap_or(usize::MAX).saturating_mul(FRAME_BYTES);
            let bytes = self.frames(start, end).as_flattened();
            for (index, &byte) in bytes.iter().enumerate() {
                visit(byte, run.places.place(skipped + index));
            }
        }
    }

    /// Removes all frames from the queue.
    pub(super) fn clear(&mut self) {
        self.first = self.end();
        self.gone = 0;
        self.frames.clear();
        self.runs.clear();
    }
}

/// The bytes up to the place `end`, and the HSYNCs that were left out between them, which are data at another
/// alignment.
pub(super) fn with_half_syncs(bytes: &[(u8, u64)], end: u64) -> Vec<(u8, u64)> {
    /// A longer gap is the HSYNCs of an idle port, not data.
    const IDLE: u64 = 256;
    let next_places = bytes.iter().skip(1).map(|&(_, at)| at).chain([end]);
    let with_gap = bytes.iter().zip(next_places).flat_map(|(&(byte, at), next)| {
        let gap =
            Some(at + 1..next).filter(|gap| gap.end.saturating_sub(gap.start) <= IDLE).unwrap_or_default();
        core::iter::once((byte, at)).chain(HSYNC.into_iter().cycle().zip(gap))
    });
    with_gap.collect()
}

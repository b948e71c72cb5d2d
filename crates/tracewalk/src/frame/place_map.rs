//! The offsets of a source's bytes in the capture.

use alloc::collections::VecDeque;

use super::layout::FRAME_DATA_BYTES;
use super::sink::Piece;
use crate::span::{CaptureOffset, StreamOffset};

/// A map from one source's [`StreamOffset`]s to [`CaptureOffset`]s.
///
/// The map grows at the end as bytes arrive, and the caller trims its front as bytes are used up, so that the
/// map stays as small as the window in use. A run of whole frames takes one entry, whatever its length.
///
/// ```
/// use tracewalk::frame::{Piece, PlaceMap};
/// use tracewalk::span::{CaptureOffset, StreamOffset};
///
/// let mut places = PlaceMap::new();
/// places.append(Piece::new(CaptureOffset(1), &[0xaa, 0x10, 0xbb]));
/// places.append(Piece::new(CaptureOffset(16), &[0x08]));
/// assert_eq!(places.locate(StreamOffset(2)), Some(CaptureOffset(3)));
/// assert_eq!(places.locate(StreamOffset(3)), Some(CaptureOffset(16)));
/// assert_eq!(places.locate(StreamOffset(4)), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PlaceMap {
    /// Ascending by `stream`; each entry reaches to the next one's `stream`, the last one to `end`.
    entries: VecDeque<Entry>,
    /// The offset of the next byte in the stream.
    end: u64,
    /// Bytes before this one are trimmed.
    start: u64,
    /// The entry that the last look-up found. A hint: any value is correct.
    recent: usize,
    /// The place and the rule by which the last entry would continue; meaningless without entries.
    next: (u64, Rule),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    stream: u64,
    capture: u64,
    rule: Rule,
}

/// How an entry continues from its first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rule {
    /// Byte after byte.
    #[default]
    Contiguous,
    /// As a [`Piece`]: an auxiliary byte follows every 15 bytes of a frame. The number is the first byte's
    /// place in its frame.
    Frames(u8),
}

impl Entry {
    #[inline]
    const fn place(&self, stream: u64) -> u64 {
        let index = stream - self.stream;
        match self.rule {
            Rule::Contiguous => self.capture + index,
            Rule::Frames(phase) => self.capture + index + (phase as u64 + index) / FRAME_DATA_BYTES as u64,
        }
    }
}

impl Rule {
    /// The place after `bytes` bytes from `at` on, and how bytes continue there.
    #[inline]
    fn after(self, at: u64, bytes: u64) -> (u64, Self) {
        match self {
            Self::Contiguous => (at + bytes, self),
            Self::Frames(phase) => {
                let from_frame = u64::from(phase) + bytes;
                let frames = from_frame / FRAME_DATA_BYTES as u64;
                let phase = u8::try_from(from_frame - frames * FRAME_DATA_BYTES as u64).unwrap_or(0);
                (at + bytes + frames, Self::Frames(phase))
            }
        }
    }
}

impl PlaceMap {
    /// An empty map; the first byte to arrive is stream byte 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends the source's next bytes, as a deframer hands them out.
    #[inline]
    pub fn append(&mut self, piece: Piece<'_>) {
        let bytes = piece.bytes.len() as u64;
        let rule = Rule::Frames(piece.phase);
        match bytes.checked_sub(1).filter(|_| piece.last_is_delayed) {
            None => self.append_bytes(piece.at.0, bytes, rule),
            Some(last) => {
                self.append_bytes(piece.at.0, last, rule);
                self.append_bytes(piece.place(piece.bytes.len() - 1).0, 1, rule);
            }
        }
    }

    /// Appends the source's next bytes of an unformatted capture, in which they are contiguous.
    pub fn append_contiguous(&mut self, at: CaptureOffset, bytes: u64) {
        self.append_bytes(at.0, bytes, Rule::Contiguous);
    }

    #[inline]
    fn append_bytes(&mut self, at: u64, bytes: u64, rule: Rule) {
        if bytes == 0 {
            return;
        }
        if self.entries.is_empty() || self.next != (at, rule) {
            self.entries.push_back(Entry { stream: self.end, capture: at, rule });
        }
        self.next = rule.after(at, bytes);
        self.end += bytes;
    }

    /// The capture offset of the stream's byte at `at`. `None` if the byte has not arrived yet or is trimmed.
    ///
    /// Look-ups in ascending order take constant time each, others a binary search.
    #[must_use]
    pub fn locate(&mut self, at: StreamOffset) -> Option<CaptureOffset> {
        if at.0 < self.start || at.0 >= self.end {
            return None;
        }
        let holds = |index: usize| {
            let entry = self.entries.get(index).filter(|entry| entry.stream <= at.0)?;
            let next = self.entries.get(index + 1).map_or(self.end, |next| next.stream);
            (at.0 < next).then_some((index, entry.place(at.0)))
        };
        let search = || holds(self.entries.partition_point(|entry| entry.stream <= at.0).checked_sub(1)?);
        let (index, place) = holds(self.recent).or_else(|| holds(self.recent + 1)).or_else(search)?;
        self.recent = index;
        Some(CaptureOffset(place))
    }

    /// The offset of the next byte in the stream.
    #[must_use]
    pub const fn end(&self) -> StreamOffset {
        StreamOffset(self.end)
    }

    /// Forgets the bytes before `before`, which can no longer be located.
    pub fn trim(&mut self, before: StreamOffset) {
        self.start = self.start.max(before.0.min(self.end));
        while self.entries.get(1).is_some_and(|second| second.stream <= self.start) {
            self.entries.pop_front();
            self.recent = self.recent.saturating_sub(1);
        }
    }

    /// The number of entries, to which the map's memory is proportional.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries.len()
    }
}

//! Finding where frames start, without FSYNCs.

use core::fmt;

use super::evidence::{Evidence, Examiner, IdSet, Values, Weights};
use super::layout::Frame;
use super::{FRAME_BYTES, FSYNC, HSYNC, Owner};

/// Where the frames of a capture start: how many bytes are in front of the first whole one, 0 to 15.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alignment(u8);

impl Alignment {
    /// The alignment with `bytes` bytes in front of the first frame, if they are fewer than a frame has.
    #[must_use]
    pub const fn new(bytes: u8) -> Option<Self> {
        if (bytes as usize) < FRAME_BYTES { Some(Self(bytes)) } else { None }
    }

    /// The number of bytes in front of the first frame.
    #[must_use]
    pub const fn bytes(self) -> u8 {
        self.0
    }

    /// All 16, ascending.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).map_while(Self::new)
    }
}

impl fmt::Display for Alignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frames from byte {} on", self.0)
    }
}

/// One alignment and what speaks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// The alignment.
    pub alignment: Alignment,
    /// What was seen at it.
    pub evidence: Evidence,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.alignment, self.evidence)
    }
}

/// All 16 alignments, best first.
///
/// ```
/// use tracewalk::frame::{Formatter, FormatterOptions, Ranking};
/// use tracewalk::ids::TraceId;
///
/// let id = TraceId::new(0x10).expect("a trace source's ID");
/// let mut capture = Vec::new();
/// let mut formatter = Formatter::new(FormatterOptions::default());
/// for packet in 0..100 {
///     formatter.write(id, &[0x84, 0x85 + packet % 8, 0x42, 0x11], &mut capture);
///     formatter.flush(&mut capture);
/// }
///
/// let ranking = Ranking::of(&capture[5..], None);
/// assert_eq!(ranking.best().alignment.bytes(), 16 - 5);
/// assert!(ranking.is_clear());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    candidates: [Candidate; FRAME_BYTES],
}

impl Ranking {
    /// Reads `bytes` at each alignment. `expected` are the trace IDs that can be in it, where the caller knows.
    ///
    /// The work is that of taking the bytes apart 16 times; a part of the capture, say 64 KiB, is enough.
    #[must_use]
    pub fn of(bytes: &[u8], expected: Option<IdSet>) -> Self {
        let mut candidates = [Candidate::default(); FRAME_BYTES];
        for (slot, alignment) in candidates.iter_mut().zip(Alignment::all()) {
            let mut examiner = Examiner::new(Owner::Unknown, expected, weights(bytes, alignment));
            let mut frames = Frames::new(bytes, alignment);
            let whole = u32::try_from(bytes.len() / FRAME_BYTES).unwrap_or(u32::MAX);
            // What is hopeless need not be looked at to its end; no other candidate gets worse by it.
            while !examiner.evidence.is_hopeless_for(whole)
                && let Some(found) = frames.next()
            {
                examiner.frame(Frame::new(&found.bytes));
            }
            let evidence = Evidence {
                full_syncs: frames.full_syncs,
                misplaced_syncs: frames.misplaced_syncs,
                ..examiner.evidence
            };
            *slot = Candidate { alignment, evidence };
        }
        candidates.sort_by_key(|candidate| core::cmp::Reverse(candidate.evidence.score()));
        Self { candidates }
    }

    /// The best one.
    #[must_use]
    pub const fn best(&self) -> &Candidate {
        let [best, ..] = &self.candidates;
        best
    }

    /// All of them, best first.
    #[must_use]
    pub const fn candidates(&self) -> &[Candidate; FRAME_BYTES] {
        &self.candidates
    }

    /// The best one is plausible, and better than the next one by more than chance explains.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        let [best, second, ..] = &self.candidates;
        best.evidence.is_plausible() && best.evidence.is_clearly_better_than(&second.evidence)
    }
}

/// What the odd places of the frames in a slice say about bit 0. Nothing older goes in: a trace's values change with what
/// the program does, and then bit 0 would seem wrong at the right alignment only.
pub(super) fn weights(bytes: &[u8], alignment: Alignment) -> Weights {
    let mut values = Values::new();
    Frames::new(bytes, alignment).for_each(|found| values.learn(&found.bytes));
    values.weights()
}

/// The frames in a slice at one alignment, without the synchronisation between and inside them.
#[derive(Clone, Debug)]
pub(super) struct Frames<'a> {
    bytes: &'a [u8],
    position: usize,
    full_syncs: u32,
    misplaced_syncs: u32,
}

/// A frame found by [`Frames`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) bytes: [u8; FRAME_BYTES],
    /// Where in the slice it starts.
    pub(super) start: usize,
    /// Where in the slice the next byte stands.
    pub(super) end: usize,
}

impl<'a> Frames<'a> {
    pub(super) fn new(bytes: &'a [u8], alignment: Alignment) -> Self {
        Self { bytes, position: usize::from(alignment.bytes()), full_syncs: 0, misplaced_syncs: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// Steps over synchronisation; returns how many FSYNCs it was.
    fn skip_syncs(&mut self) -> u32 {
        let mut full_syncs = 0;
        // Every pair comes through here, and nearly none starts with `ff`.
        while self.rest().first() == Some(&0xff) {
            if self.rest().starts_with(&FSYNC) {
                self.position += FSYNC.len();
                full_syncs += 1;
            } else if self.rest().starts_with(&HSYNC) {
                self.position += HSYNC.len();
            } else {
                break;
            }
        }
        full_syncs
    }
}

impl Iterator for Frames<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        let whole = self.rest().first_chunk().filter(|bytes| !Frame::new(bytes).has_sync_byte());
        if let Some(bytes) = whole {
            let start = self.position;
            self.position += FRAME_BYTES;
            return Some(Found { bytes: *bytes, start, end: self.position });
        }
        let mut bytes = [0; FRAME_BYTES];
        self.full_syncs += self.skip_syncs();
        let start = self.position;
        for (index, pair) in bytes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            if index != 0 {
                self.misplaced_syncs += self.skip_syncs();
            }
            *pair = *self.rest().first_chunk()?;
            self.position += pair.len();
        }
        Some(Found { bytes, start, end: self.position })
    }
}

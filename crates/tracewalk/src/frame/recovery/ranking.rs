//! Works out where frames start, without FSYNCs.

use core::fmt;

use super::super::alignment::FrameAlignment;
use super::super::layout::{FRAME_BYTES, FSYNC, Frame, HSYNC};
use super::super::owner::{IdSet, Owner};
use super::evidence::{AlignmentEvidence, Examiner, Values, Weights};

/// One alignment and the evidence for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlignmentCandidate {
    /// The alignment.
    pub alignment: FrameAlignment,
    /// The evidence of the alignment.
    pub evidence: AlignmentEvidence,
}

impl fmt::Display for AlignmentCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.alignment, self.evidence)
    }
}

/// All 16 alignments, best first.
///
/// ```
/// use tracewalk::frame::{Formatter, FormatterOptions, AlignmentRanking};
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
/// let ranking = AlignmentRanking::of(&capture[5..], None);
/// assert_eq!(ranking.best().alignment.bytes(), 16 - 5);
/// assert!(ranking.is_clear());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignmentRanking {
    candidates: [AlignmentCandidate; FRAME_BYTES],
}

impl AlignmentRanking {
    /// Reads `bytes` at each alignment. `expected` are the trace IDs that can be in `bytes`, if the caller
    /// knows them.
    ///
    /// The work is that of deframing the bytes 16 times; a part of the capture, say 64 KiB, is enough.
    #[must_use]
    pub fn of(bytes: &[u8], expected: Option<IdSet>) -> Self {
        let mut candidates = [AlignmentCandidate::default(); FRAME_BYTES];
        for (slot, alignment) in candidates.iter_mut().zip(FrameAlignment::all()) {
            let mut examiner = Examiner::new(Owner::Unknown, expected, weights(bytes, alignment));
            let mut frames = Frames::new(bytes, alignment);
            let whole = u32::try_from(bytes.len() / FRAME_BYTES).unwrap_or(u32::MAX);
            // A hopeless candidate is not examined to its end; this makes no other candidate worse.
            while !examiner.evidence.is_hopeless_for(whole)
                && let Some(found) = frames.next()
            {
                examiner.frame(Frame::new(&found.bytes));
            }
            let evidence = AlignmentEvidence {
                full_syncs: frames.full_syncs,
                misplaced_syncs: frames.misplaced_syncs,
                ..examiner.evidence
            };
            *slot = AlignmentCandidate { alignment, evidence };
        }
        candidates.sort_by_key(|candidate| core::cmp::Reverse(candidate.evidence.score()));
        Self { candidates }
    }

    /// The best candidate.
    #[must_use]
    pub const fn best(&self) -> &AlignmentCandidate {
        let [best, ..] = &self.candidates;
        best
    }

    /// All candidates, best first.
    #[must_use]
    pub const fn candidates(&self) -> &[AlignmentCandidate; FRAME_BYTES] {
        &self.candidates
    }

    /// Whether the best candidate is plausible, and better than the next one by more than chance explains.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        let [best, second, ..] = &self.candidates;
        best.evidence.is_plausible() && best.evidence.is_clearly_better_than(&second.evidence)
    }
}

/// The weights of bit 0, from the odd places of the frames in a slice. Older frames are not used: a trace's
/// values change with what the program does, and then bit 0 would seem wrong at the right alignment only.
pub(super) fn weights(bytes: &[u8], alignment: FrameAlignment) -> Weights {
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
    /// The start of the frame in the slice.
    pub(super) start: usize,
    /// The place of the next byte in the slice.
    pub(super) end: usize,
}

impl<'a> Frames<'a> {
    pub(super) fn new(bytes: &'a [u8], alignment: FrameAlignment) -> Self {
        Self { bytes, position: usize::from(alignment.bytes()), full_syncs: 0, misplaced_syncs: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.position..).unwrap_or_default()
    }

    /// Skips synchronisation; returns the number of FSYNCs.
    fn skip_syncs(&mut self) -> u32 {
        let mut full_syncs = 0;
        // Every pair passes through here, and nearly none starts with `ff`.
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

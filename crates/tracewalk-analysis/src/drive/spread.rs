//! How the work on a source is spread over threads: the lengths of segments, and of their parts.

use std::ops::Range;

use crate::sink::Growth;

/// How the work is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// How many threads decode; with one, nothing is decoded twice.
    pub threads: usize,
    /// About how many bytes a segment has.
    pub segment: usize,
}

impl Spread {
    /// Over this number of threads.
    #[must_use]
    pub const fn over(threads: usize) -> Self {
        Self { threads, segment: SEGMENT }
    }

    /// For parts that do not grow with the trace. Few of them have to be joined, and the joining thread, which has learned little
    /// of the program, has little to decode.
    #[must_use]
    pub const fn for_counts(self) -> Self {
        Self { segment: if self.threads <= 1 { SEGMENT_ALONE } else { SEGMENT_OF_COUNTS }, ..self }
    }

    /// For parts with this growth. A size that the caller chose stays.
    #[must_use]
    pub const fn growing(self, growth: Growth) -> Self {
        match growth {
            _ if self.segment != SEGMENT => self,
            Growth::Bounded => self.for_counts(),
            Growth::Lines => self,
            Growth::LongLines => Self { segment: SEGMENT_OF_LONG_LINES, ..self },
        }
    }

    /// The fewest segments for which several threads pay. Each thread has to learn the program, and one of two does little but
    /// join: counting 3 MB took longer with two threads than with one.
    pub(super) const fn least_segments(self) -> usize {
        match self.segment {
            SEGMENT_OF_COUNTS => 4,
            _ => 2,
        }
    }

    /// The parts of a segment of `bytes` bytes, each up to a checkpoint; at least one.
    pub(super) fn steps(self, bytes: usize) -> impl Iterator<Item = Range<usize>> {
        // Counts cost time for each part; lines are decoded again up to the next checkpoint.
        let (growing, longest) = match self.segment {
            SEGMENT_OF_COUNTS => (3, LAST_STEP_OF_COUNTS),
            _ => (1, LAST_STEP),
        };
        let (first, last) =
            ((self.segment / SMALLEST_STEP).clamp(1, FIRST_STEP), (self.segment / longest).max(1));
        let mut next = Some(0_usize);
        std::iter::from_fn(move || {
            let start = next?;
            let end = (start + (start * growing).clamp(first, last)).min(bytes);
            next = (end < bytes).then_some(end);
            Some(start..end)
        })
    }
}

/// A worker's output for this number of bytes of trace has to fit into memory several times, and joining two segments costs some
/// kilobytes of decoding.
const SEGMENT: usize = 1 << 18;

/// Counts take no room, and a capture of a few megabytes should occupy all threads.
const SEGMENT_OF_COUNTS: usize = 1 << 20;

/// Each byte of trace gives some hundred bytes of lines, so that segments are shorter.
const SEGMENT_OF_LONG_LINES: usize = 1 << 15;

/// The most bytes of one source that are collected from frames with other sources. Their places take as much memory again, or
/// more.
const SEGMENT_ALONE: usize = 1 << 22;

/// The distance of the first checkpoint from a segment's start: a trace has usually synchronised by then. The distance doubles
/// with each checkpoint (for counts it quadruples), up to an eighth (a quarter) of the segment.
const FIRST_STEP: usize = 1 << 10;
const SMALLEST_STEP: usize = 256;
const LAST_STEP: usize = 8;
const LAST_STEP_OF_COUNTS: usize = 4;

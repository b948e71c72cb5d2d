//! The evidence for and against reading bytes as frames at one alignment.
//!
//! A frame has no checksum. But a reader that is off by some bytes sees things that no formatter writes:
//!
//! - Off by an odd number, the reader takes data for ID bytes: reserved IDs, ever new IDs, padding that is
//!   not zero.
//! - Off by an even number, the reader still finds the ID bytes. But it takes another byte for the auxiliary
//!   byte, so bit 0 of every second data byte is wrong. The other half of the data bytes has its own bit 0,
//!   and shows which values are likely: a trace's bytes are far from evenly distributed. Padding that does
//!   not end with a frame is a sign as well.

use core::fmt;

use super::super::layout::{FRAME_BYTES, FRAME_DATA_BYTES, Frame};
use super::super::owner::{IdSet, Owner, ReservedId};

/// The evidence of reading bytes as frames at one alignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlignmentEvidence {
    /// Whole frames.
    pub frames: u32,
    /// ID bytes.
    pub id_bytes: u32,
    /// The trace sources that the ID bytes name.
    pub sources: IdSet,
    /// ID bytes for a source that is not expected.
    pub unexpected_ids: u32,
    /// ID bytes for a reserved ID other than `0x7f`.
    pub reserved_ids: u32,
    /// ID bytes for ID `0x7f`, which a formatter must not use.
    pub impossible_ids: u32,
    /// Padding bytes that are zero, in frames where the padding starts.
    pub clean_padding: u32,
    /// Padding bytes that are not zero.
    pub dirty_padding: u32,
    /// Stretches of padding that reached the end of a frame.
    pub whole_padding: u32,
    /// Stretches of padding with an ID byte after them in the same frame.
    pub broken_padding: u32,
    /// FSYNCs between frames.
    pub full_syncs: u32,
    /// FSYNCs inside frames.
    pub misplaced_syncs: u32,
    /// How well bit 0 of the mixed data bytes agrees with the values of the other data bytes, in 64ths of a
    /// bit.
    pub low_bits: i32,
}

impl AlignmentEvidence {
    /// The evidence in one number, about the bits of information in favour of the alignment.
    ///
    /// Each weight is the logarithm of how much rarer the sign is at right than at wrong alignments, or the
    /// reverse, rounded. The weights were tested on hardware captures that were cut at every place.
    #[must_use]
    pub fn score(&self) -> i64 {
        // Data with an order of its own, such as a counter, may contradict the statistics, which is no reason
        // to prefer random bytes.
        self.score_of_ids_and_padding() + self.score_of_low_bits().max(-i64::from(self.frames / 2))
    }

    /// The part of the score that comes from bit 0 of the data.
    pub(super) fn score_of_low_bits(&self) -> i64 {
        i64::from(self.low_bits / i32::from(UNITS_OF_A_BIT))
    }

    /// The part of the score that comes from everything else.
    pub(super) fn score_of_ids_and_padding(&self) -> i64 {
        let weigh = |number: u32, weight: i64| i64::from(number) * weight;
        // One more source is no reason for doubt; one more in every frame is. But sources must not outweigh
        // the rest: a capture of many quiet sources has no other evidence.
        let sources = weigh(self.sources.len().min(8), -4);
        sources
            + weigh(self.unexpected_ids, -8)
            + weigh(self.reserved_ids, -10)
            + weigh(self.impossible_ids, -20)
            + weigh(self.clean_padding, 1)
            + weigh(self.dirty_padding, -8)
            + weigh(self.whole_padding, 4)
            + weigh(self.broken_padding, -4)
            + weigh(self.full_syncs, 32)
            + weigh(self.misplaced_syncs, -32)
    }

    /// Whether this evidence is better than `other` by more than chance explains.
    #[must_use]
    pub fn is_clearly_better_than(&self, other: &Self) -> bool {
        self.score() - other.score() >= self.chance()
    }

    /// As [`Self::is_clearly_better_than`], without the evidence from bit 0 of the data.
    pub(super) fn is_certainly_better_than(&self, other: &Self) -> bool {
        self.score_of_ids_and_padding() - other.score_of_ids_and_padding() >= self.chance()
    }

    /// The lead that chance explains. In random data, which has no evidence, the best of 16 alignments leads
    /// by less than 40 in 64 frames (600 trials). The lead grows with the square root of the number of
    /// frames.
    fn chance(&self) -> i64 {
        48 + i64::from(self.frames) / 8
    }

    /// The number of signs that a formatter does not write. Unexpected IDs do not count, because a formatter
    /// may write them.
    const fn wrong(&self) -> u32 {
        self.impossible_ids + self.reserved_ids + self.dirty_padding + self.misplaced_syncs
    }

    /// Whether nearly nothing was seen that a formatter does not write. A damaged frame is allowed.
    #[must_use]
    pub const fn is_plausible(&self) -> bool {
        self.frames != 0 && self.wrong() <= Self::most_wrong_of(self.frames)
    }

    /// The plausible number of things that a formatter does not write, in a number of frames.
    pub(super) const fn most_wrong_of(frames: u32) -> u32 {
        8 + frames / 16
    }

    /// Whether too much was seen that a formatter does not write: these are not frames.
    pub(super) const fn is_hopeless_for(&self, frames: u32) -> bool {
        self.wrong() > 8 + frames / 4
    }
}

impl fmt::Display for AlignmentEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { frames, id_bytes, sources, .. } = self;
        write!(f, "{frames} frames, {id_bytes} ID bytes for {} sources", sources.len())?;
        let mut note = |count: u32, what: &str| match count {
            0 => Ok(()),
            _ => write!(f, ", {count} {what}"),
        };
        note(self.unexpected_ids, "unexpected IDs")?;
        note(self.reserved_ids, "reserved IDs")?;
        note(self.impossible_ids, "uses of ID 0x7f")?;
        note(self.clean_padding, "zero padding bytes")?;
        note(self.dirty_padding, "padding bytes that are not zero")?;
        note(self.whole_padding, "stretches of padding that end with a frame")?;
        note(self.broken_padding, "stretches of padding that do not")?;
        note(self.full_syncs, "FSYNCs between frames")?;
        note(self.misplaced_syncs, "FSYNCs inside frames")?;
        let low_bits = self.score_of_low_bits();
        write!(f, ", {low_bits:+} bits from bit 0 of the data; score {:+}", self.score())
    }
}

/// Gathers [`AlignmentEvidence`] frame by frame.
#[derive(Clone, Debug)]
pub(super) struct Examiner {
    pub(super) evidence: AlignmentEvidence,
    expected: Option<IdSet>,
    weights: Weights,
    owner: Owner,
    last: Option<Frame>,
}

impl Examiner {
    pub(super) fn new(owner: Owner, expected: Option<IdSet>, weights: Weights) -> Self {
        Self { evidence: AlignmentEvidence::default(), expected, weights, owner, last: None }
    }

    pub(super) fn frame(&mut self, frame: Frame) {
        let evidence = &mut self.evidence;
        evidence.frames += 1;
        let mut owner = self.owner;
        for (place, id_byte) in frame.id_bytes() {
            let new = Owner::from_id_byte(id_byte);
            evidence.id_bytes += 1;
            match new {
                Owner::Source(id) => {
                    evidence.sources.insert(id);
                    let unexpected = self.expected.is_some_and(|expected| !expected.contains(id));
                    evidence.unexpected_ids += u32::from(unexpected);
                }
                Owner::Reserved(ReservedId::NEVER_USED) => evidence.impossible_ids += 1,
                Owner::Reserved(_) => evidence.reserved_ids += 1,
                Owner::Padding | Owner::Trigger | Owner::Unknown => {}
            }
            if owner == Owner::Padding && new != Owner::Padding {
                *if place == 0 { &mut evidence.whole_padding } else { &mut evidence.broken_padding } += 1;
            }
            owner = new;
        }
        // A repetition of the same frame is no new evidence.
        let is_new = self.last.replace(frame) != Some(frame);
        let bytes = frame.restored();
        self.owner = frame.data_spans(self.owner, |span| {
            let data = bytes.get(span.start..span.end).unwrap_or_default();
            let is_padding = span.owner == Owner::Padding;
            let zeros = data.iter().filter(|byte| **byte == 0).count();
            if is_padding {
                evidence.dirty_padding += count(data.len() - zeros);
            }
            // A formatter's padding ends with the frame. Longer padding is no better than any source's zeros.
            if is_padding && data.len() < FRAME_DATA_BYTES {
                evidence.clean_padding += count(zeros);
            } else if is_new {
                let mixed = data.iter().skip(span.start % 2).step_by(2);
                evidence.low_bits += mixed.map(|&byte| self.weights.of(byte)).sum::<i32>();
            }
        });
    }
}

/// A number of bytes in a frame.
fn count(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The counts of each byte value at the odd places of frames, where data has its own bit 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Values {
    #[cfg_attr(feature = "serde", serde(with = "crate::arrays"))]
    counts: [u16; 256],
    total: u16,
}

impl Values {
    /// The number of values after which older ones count half, because a trace changes.
    const MEMORY: u16 = 8192;

    /// Added to each count, so that few observations do not weigh like many. With 2, random data does not reach half
    /// of the limit by chance, and hardware captures reach it in half the bytes that 4 takes.
    const RESERVE: u32 = 2;

    pub(super) const fn new() -> Self {
        Self { counts: [0; 256], total: 0 }
    }

    /// Takes the seven data bytes at odd places of a frame.
    pub(super) fn learn(&mut self, bytes: &[u8; FRAME_BYTES]) {
        if self.total >= Self::MEMORY {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
        let [_, a, _, b, _, c, _, d, _, e, _, f, _, g, _, _] = *bytes;
        let values = [a, b, c, d, e, f, g];
        values.iter().for_each(|&value| self.counts[usize::from(value)] += 1);
        self.total += 7;
    }

    /// The evidence of these counts about bit 0 of each value.
    pub(super) fn weights(&self) -> Weights {
        let mut weights = Weights::NONE;
        for (pair, counts) in weights.0.as_chunks_mut::<2>().0.iter_mut().zip(self.counts.as_chunks::<2>().0)
        {
            let counts = counts.map(|count| u32::from(count) + Self::RESERVE);
            let both: u32 = counts.iter().sum();
            // The logarithm of the ratio, not the difference of two logarithms, whose roundings would add up
            // over many bytes.
            *pair = counts.map(|count| log2_of_65536ths((count << 16) / both) + UNITS_OF_A_BIT);
        }
        weights
    }
}

/// For each byte value, the logarithm of its share among the two values that differ in bit 0 only, relative
/// to one half.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Weights(#[cfg_attr(feature = "serde", serde(with = "crate::arrays"))] [i16; 256]);

/// Weights are in 64ths of a bit.
pub(super) const UNITS_OF_A_BIT: i16 = 64;

impl Weights {
    /// No evidence about any value.
    pub(super) const NONE: Self = Self([0; 256]);

    /// The weight of a value, in 64ths of a bit.
    #[inline]
    pub(super) fn of(&self, value: u8) -> i32 {
        i32::from(self.0[usize::from(value)])
    }
}

/// The logarithm to base 2 of a number of 65536ths, in 64ths, with straight lines between the powers of two.
fn log2_of_65536ths(number: u32) -> i16 {
    let number = number.max(1);
    let whole = number.ilog2();
    let fraction = (u64::from(number) << 6 >> whole) & 0b11_1111;
    let sum = i64::from(whole * 64) + i64::try_from(fraction).unwrap_or(0) - 16 * 64;
    i16::try_from(sum).unwrap_or(i16::MIN)
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;
    use crate::ids::TraceId;

    fn id(number: u8) -> TraceId {
        TraceId::new(number).expect("a trace ID")
    }

    #[test]
    fn sets_of_ids_have_the_members_of_both() {
        let (one, other) = (IdSet::from_iter([id(1), id(3)]), IdSet::from_iter([id(3), id(0x6f)]));
        assert_eq!(one.union(other), IdSet::from_iter([id(1), id(3), id(0x6f)]));
        assert_eq!(one.union(IdSet::EMPTY), one);
    }

    /// Evidence of every kind, each with a different number.
    const SEEN: AlignmentEvidence = AlignmentEvidence {
        frames: 1000,
        id_bytes: 2000,
        sources: IdSet(1 << 1 | 1 << 2 | 1 << 4),
        unexpected_ids: 1,
        reserved_ids: 2,
        impossible_ids: 3,
        clean_padding: 400,
        dirty_padding: 5,
        whole_padding: 6,
        broken_padding: 7,
        full_syncs: 8,
        misplaced_syncs: 9,
        low_bits: -640,
    };

    #[test]
    fn each_sign_has_its_weight() {
        let parts = [3 * -4, -8, 2 * -10, 3 * -20, 400, 5 * -8, 6 * 4, 7 * -4, 8 * 32, 9 * -32];
        assert_eq!(SEEN.score_of_ids_and_padding(), parts.iter().sum::<i64>());
        assert_eq!(SEEN.score_of_low_bits(), -10);
        assert_eq!(SEEN.score(), parts.iter().sum::<i64>() - 10);
        // Statistics against an alignment count at most half a bit for each frame.
        let order = AlignmentEvidence { frames: 10, low_bits: -6400, ..AlignmentEvidence::default() };
        assert_eq!(order.score(), -5);
        // At most eight sources count.
        let many = AlignmentEvidence { sources: (1..=20).map(id).collect(), ..AlignmentEvidence::default() };
        assert_eq!(many.score(), -32);
    }

    #[test]
    fn better_is_what_chance_does_not_explain() {
        // 48 plus an eighth of the frames.
        let with =
            |clean_padding| AlignmentEvidence { frames: 80, clean_padding, ..AlignmentEvidence::default() };
        assert!(
            with(158).is_clearly_better_than(&with(100)) && !with(157).is_clearly_better_than(&with(100))
        );
        assert!(
            with(158).is_certainly_better_than(&with(100)) && !with(157).is_certainly_better_than(&with(100))
        );
    }

    #[test]
    fn plausible_is_what_has_frames_and_little_that_is_wrong() {
        let with =
            |frames, reserved_ids| AlignmentEvidence { frames, reserved_ids, ..AlignmentEvidence::default() };
        assert!(!with(0, 0).is_plausible());
        assert!(with(1, 8).is_plausible() && !with(1, 9).is_plausible());
        assert!(with(160, 18).is_plausible() && !with(160, 19).is_plausible());
    }

    #[test]
    fn evidence_is_reported_with_what_was_seen_and_nothing_else() {
        assert_eq!(
            SEEN.to_string(),
            "1000 frames, 2000 ID bytes for 3 sources, 1 unexpected IDs, 2 reserved IDs, 3 uses of ID 0x7f, \
             400 zero padding bytes, 5 padding bytes that are not zero, 6 stretches of padding that end with a frame, \
             7 stretches of padding that do not, 8 FSYNCs between frames, 9 FSYNCs inside frames, -10 bits from bit 0 of the data; score +214"
        );
        let few = AlignmentEvidence {
            frames: 2,
            id_bytes: 1,
            sources: IdSet(1 << 1),
            ..AlignmentEvidence::default()
        };
        assert_eq!(
            few.to_string(),
            "2 frames, 1 ID bytes for 1 sources, +0 bits from bit 0 of the data; score -4"
        );
    }

    fn examined(weights: Weights, frames: &[[u8; FRAME_BYTES]]) -> AlignmentEvidence {
        let mut examiner = Examiner::new(Owner::Unknown, None, weights);
        frames.iter().for_each(|bytes| examiner.frame(Frame::new(bytes)));
        examiner.evidence
    }

    #[test]
    fn padding_ends_with_a_frame_or_is_broken() {
        // Source 1; padding from byte 4 on, and source 1 again from byte 8 on.
        let mut broken = [0; FRAME_BYTES];
        (broken[0], broken[4], broken[8]) = (0x03, 0x01, 0x03);
        // Padding from byte 10 to the end of the frame; the next one begins with source 1.
        let mut whole = [0; FRAME_BYTES];
        (whole[0], whole[10]) = (0x03, 0x01);
        let evidence = examined(Weights::NONE, &[broken, broken, whole, broken]);
        assert_eq!((evidence.broken_padding, evidence.whole_padding), (3, 1));
    }

    #[test]
    fn bit_0_is_weighed_of_the_bytes_whose_bit_0_the_auxiliary_byte_has() {
        let mut values = Values::new();
        values.learn(&[0x10; FRAME_BYTES]);
        let weights = values.weights();
        let (likely, unlikely) = (weights.of(0x10), weights.of(0x11));
        assert!(likely > 0 && unlikely < 0);
        // Source 1, then source 2 from byte 6 on, at once or one byte later. The other bytes have their own bit 0.
        let mut frame = [0x11; FRAME_BYTES];
        for place in [2, 4, 8, 10, 12, 14] {
            frame[place] = 0x10;
        }
        (frame[0], frame[6]) = (0x03, 0x05);
        for later in [0, 0b1000] {
            frame[15] = 0b0100_0010 | later;
            let evidence = examined(weights.clone(), &[frame]);
            assert_eq!(evidence.low_bits, 4 * likely + 2 * unlikely, "{later:#06b}");
        }
    }

    #[test]
    fn what_was_seen_seldom_weighs_little() {
        // Seven times one value and never the other one, with two added to each: 9/11 and 2/11 instead of 1 and 0.
        let mut values = Values::new();
        values.learn(&[0x10; FRAME_BYTES]);
        let weights = values.weights();
        assert_eq!((weights.of(0x10), weights.of(0x11)), (40, -99));
        assert_eq!((weights.of(0x20), weights.of(0x21)), (0, 0));
    }

    #[test]
    fn logarithms_are_right_to_a_tenth() {
        for number in 1..=1 << 16 {
            let exact = (f64::from(number) / 65536.0).log2();
            let error = exact - f64::from(log2_of_65536ths(number)) / f64::from(UNITS_OF_A_BIT);
            assert!((0.0..0.11).contains(&error), "{number}: off by {error}");
        }
    }
}

//! Watches for signs that the alignment of frames was lost.
//!
//! The watch is cheap and easily alarmed: a doubt costs a closer look (see `judge`) and no more.

use core::ops::RangeInclusive;

use super::super::layout::{FRAME_BYTES, Frame, GROUP, id_bytes};
use super::super::owner::{IdSet, Owner, ReservedId};
use super::evidence::{UNITS_OF_A_BIT, Values, Weights};
use crate::ids::TraceId;

/// The known properties of a capture's frames, by which odd ones are recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Watch {
    /// The trace IDs that can be in the capture, if the caller knows them.
    pub(super) expected: Option<IdSet>,
    values: Values,
    /// IDs, by number, that do not raise a doubt.
    trusted: u128,
    /// By ID byte: whether it needs no look.
    #[cfg_attr(feature = "serde", serde(with = "crate::arrays"))]
    unremarkable: [bool; 256],
    /// The number of the next frame to look at.
    pub(super) next: u64,
    /// Whether that frame is doubtful, and not decided yet.
    is_doubtful: bool,
    /// Whether that frame begins with padding.
    is_padding: bool,
    /// Up to this frame nothing raises a doubt.
    quiet_until: u64,
    /// The length of that quiet stretch, in frames.
    quiet: u64,
    /// One frame in this number goes into the statistics of values, once the statistics have enough frames.
    interval: u64,
    /// The next frame that goes into the statistics.
    next_sample: u64,
    /// The number of frames in the statistics.
    learned: u32,
    /// The weights from the statistics, renewed now and then.
    weights: Weights,
    /// How far recent low bits contradict the statistics, in 64ths of a bit.
    drift: i32,
    /// The drift that raises a doubt.
    drift_limit: i32,
}

/// The range of the number of frames that raise no doubt after an unfounded one. The number doubles each time
/// that the next doubt comes soon. This pause bounds the work on captures that are odd everywhere.
const QUIET_FRAMES: RangeInclusive<u64> = 32..=4096;

/// The number of frames after which the statistics are used, and the weights renewed.
const LEARN_FRAMES: u32 = 64;

/// Three frames' worth: each wrongly restored low bit contradicts the statistics by about one bit.
const DRIFT_LIMIT: i32 = 24 * UNITS_OF_A_BIT as i32;

impl Watch {
    /// A watch from frame 0 on that looks at the values of one in `interval` frames.
    pub(super) fn new(expected: Option<IdSet>, interval: u64) -> Self {
        let mut watch = Self {
            expected,
            values: Values::new(),
            trusted: 0,
            unremarkable: [false; 256],
            next: 0,
            is_doubtful: false,
            is_padding: false,
            quiet_until: 0,
            quiet: 0,
            interval,
            next_sample: 0,
            learned: 0,
            weights: Weights::NONE,
            drift: 0,
            drift_limit: DRIFT_LIMIT,
        };
        [Owner::Padding, Owner::Trigger].into_iter().for_each(|owner| watch.trust_owner(owner));
        watch.trust(expected.unwrap_or_default());
        watch
    }

    /// Looks at the next frames. Returns how many are in order; the one after them is doubtful or may have synchronisation in
    /// it.
    pub(super) fn look_at(
        &mut self,
        frames: &[[u8; FRAME_BYTES]],
        may_be_sync: impl Fn(&[u8; FRAME_BYTES]) -> bool,
    ) -> usize {
        let mut rest = frames;
        loop {
            rest = rest.get(self.unremarkable_frames(rest)..).unwrap_or_default();
            match rest {
                [bytes, after @ ..] if !may_be_sync(bytes) && !self.look(bytes) => {
                    rest = after;
                }
                _ => return frames.len() - rest.len(),
            }
        }
    }

    /// Looks at the next frames in groups, up to the first one whose ID bytes or padding need a look of their
    /// own, or that is doubtful; returns how many are in order. Only the values of a few of the other frames
    /// matter.
    #[inline]
    fn unremarkable_frames(&mut self, frames: &[[u8; FRAME_BYTES]]) -> usize {
        let start = self.next;
        let (groups, rest) = frames.as_chunks::<GROUP>();
        let goes_on = !self.is_doubtful && !self.is_padding;
        if goes_on && groups.iter().all(|group| self.is_group_unremarkable(group)) {
            self.is_group_unremarkable(rest);
        }
        usize::try_from(self.next - start).unwrap_or(usize::MAX)
    }

    /// Looks at the next frames, at most [`GROUP`]; returns whether all of them are in order.
    #[inline(always)]
    fn is_group_unremarkable(&mut self, group: &[[u8; FRAME_BYTES]]) -> bool {
        let unremarkable = self.unremarkable_in(group);
        let (start, end) = (self.next, self.next + unremarkable as u64);
        loop {
            // The frame to look at may have been lost. Then the next frame takes its place.
            let sample = self.next.max(self.next_sample);
            if sample >= end {
                break;
            }
            self.next = sample;
            let sample = usize::try_from(sample - start).ok().and_then(|index| group.get(index));
            if sample.is_none_or(|bytes| self.look(bytes)) {
                return false;
            }
        }
        self.next = end;
        unremarkable == group.len()
    }

    /// The number of frames before the first one whose ID bytes need a look.
    #[inline(always)]
    fn unremarkable_in(&self, group: &[[u8; FRAME_BYTES]]) -> usize {
        for (pair, id_byte) in id_bytes(group) {
            if !self.unremarkable[usize::from(id_byte)] {
                return pair / 8;
            }
        }
        group.len()
    }

    /// Looks at the next frame. Returns whether it is doubtful: then it stays the next one.
    #[inline]
    pub(super) fn look(&mut self, bytes: &[u8; FRAME_BYTES]) -> bool {
        if self.is_doubtful {
            return true;
        }
        let frame = Frame::new(bytes);
        let (is_usual, is_padding) = self.is_usual(frame, self.is_padding);
        let is_sample = self.next >= self.next_sample;
        let is_drifting = is_sample && self.is_drifting(frame);
        if (!is_usual || is_drifting) && self.next >= self.quiet_until {
            self.is_doubtful = true;
            return true;
        }
        if is_sample {
            self.learn(bytes);
        }
        self.is_padding = is_padding;
        self.next += 1;
        false
    }

    /// Whether these frames, which follow a doubtful one, are so similar to all earlier frames that the
    /// alignment must be right: they name no new source, their padding is zero, and bit 0 of their data
    /// agrees with the statistics. At any wrong alignment, nearly every frame breaks one of these rules.
    pub(super) fn is_content_with(&self, frames: &[[u8; FRAME_BYTES]]) -> bool {
        /// The minimum number of frames, and the minimum evidence from bit 0 of their data, in bits for each
        /// frame.
        const FEWEST: usize = 16;
        const BITS: i32 = 1;
        if self.learned < LEARN_FRAMES || frames.len() < FEWEST {
            return false;
        }
        let mut is_padding = false;
        let mut low_bits = 0;
        for bytes in frames {
            let frame = Frame::new(bytes);
            let (is_usual, ends_in_padding) = self.is_usual(frame, is_padding);
            if !is_usual {
                return false;
            }
            low_bits += if is_padding { 0 } else { self.low_bits(frame) };
            is_padding = ends_in_padding;
        }
        let frames = i32::try_from(frames.len()).unwrap_or(i32::MAX);
        low_bits >= frames.saturating_mul(BITS * i32::from(UNITS_OF_A_BIT))
    }

    /// Records that the next frame is in order after all: similar frames raise no doubt any more.
    pub(super) fn acquit(&mut self, bytes: &[u8; FRAME_BYTES]) {
        Frame::new(bytes).id_bytes().for_each(|(_, id_byte)| self.trust_owner(Owner::from_id_byte(id_byte)));
        self.is_doubtful = false;
        let came_soon = self.next < self.quiet_until + *QUIET_FRAMES.start();
        self.quiet = if came_soon { self.quiet * 2 } else { 0 };
        self.quiet = self.quiet.clamp(*QUIET_FRAMES.start(), *QUIET_FRAMES.end());
        self.quiet_until = self.next + self.quiet;
        if self.drift > self.drift_limit {
            self.drift_limit = self.drift_limit.saturating_mul(2);
        }
        self.drift = 0;
    }

    /// Records that frames up to number `end` are right.
    pub(super) fn be_quiet_until(&mut self, end: u64) {
        self.is_doubtful = false;
        self.quiet_until = end;
        self.drift = 0;
    }

    /// Restarts with frame number `next`, after a loss.
    pub(super) fn restart(&mut self, next: u64) {
        self.next = next;
        self.is_doubtful = false;
        self.is_padding = false;
        self.quiet_until = next;
        self.drift = 0;
    }

    /// Trusts these sources: they raise no doubt.
    pub(super) fn trust(&mut self, sources: IdSet) {
        sources.iter().for_each(|id| self.trust_owner(Owner::Source(id)));
    }

    /// The sources that raise no doubt.
    pub(super) fn trusted_sources(&self) -> IdSet {
        (0..=u8::MAX).filter_map(TraceId::new).filter(|id| self.trusted >> id.get() & 1 == 1).collect()
    }

    #[inline]
    const fn trusts(&self, id_byte: u8) -> bool {
        self.trusted >> (id_byte >> 1) & 1 == 1
    }

    fn trust_owner(&mut self, owner: Owner) {
        self.trusted |= bit_of(owner);
        for id_byte in (1..=u8::MAX).step_by(2) {
            self.unremarkable[usize::from(id_byte)] = id_byte != PADDING_ID_BYTE && self.trusts(id_byte);
        }
    }

    /// Whether a frame names only trusted sources and has clean padding, and whether it ends in padding.
    #[inline]
    fn is_usual(&self, frame: Frame, begins_with_padding: bool) -> (bool, bool) {
        let mut is_usual = true;
        let mut has_padding = begins_with_padding;
        let mut is_padding = begins_with_padding;
        for (_, id_byte) in frame.id_bytes() {
            is_usual &= self.trusts(id_byte);
            is_padding = id_byte == PADDING_ID_BYTE;
            has_padding |= is_padding;
        }
        (is_usual && (!has_padding || Self::is_padding_clean(frame, begins_with_padding)), is_padding)
    }

    /// Whether all padding is zero.
    fn is_padding_clean(frame: Frame, begins_with_padding: bool) -> bool {
        let restored = frame.restored();
        let owner = if begins_with_padding { Owner::Padding } else { Owner::Unknown };
        let mut is_clean = true;
        frame.data_spans(owner, |span| {
            let data = restored.get(span.start..span.end).unwrap_or_default();
            is_clean &= span.owner != Owner::Padding || data.iter().all(|&byte| byte == 0);
        });
        is_clean
    }

    /// Whether low bits contradicted the statistics for too long.
    fn is_drifting(&mut self, frame: Frame) -> bool {
        if self.learned < LEARN_FRAMES || self.is_padding {
            return false;
        }
        self.drift = (self.drift - self.low_bits(frame)).max(0);
        self.drift > self.drift_limit
    }

    /// How well bit 0 of a frame's mixed data bytes agrees with the statistics, in 64ths of a bit.
    #[inline]
    fn low_bits(&self, frame: Frame) -> i32 {
        let ids = frame.id_pairs();
        let restored = frame.restored();
        let mut sum = 0;
        if ids == 0 {
            for [mixed, _] in restored.as_chunks::<2>().0 {
                sum += self.weights.of(*mixed);
            }
            return sum;
        }
        // All eight are added up without a branch: ID bytes count as nothing.
        for (pair, [mixed, _]) in restored.as_chunks::<2>().0.iter().enumerate() {
            sum += if ids >> pair & 1 == 0 { self.weights.of(*mixed) } else { 0 };
        }
        sum
    }

    fn learn(&mut self, bytes: &[u8; FRAME_BYTES]) {
        self.values.learn(bytes);
        self.learned = self.learned.saturating_add(1);
        let is_beginner = self.learned < 4 * LEARN_FRAMES;
        self.next_sample = self.next + if is_beginner { 1 } else { self.interval };
        // Renewing takes as long as looking at a few dozen frames.
        let renewal = if is_beginner { LEARN_FRAMES } else { 4 * LEARN_FRAMES };
        if self.learned.is_multiple_of(renewal) {
            self.weights = self.values.weights();
        }
    }
}

/// The ID byte of padding.
const PADDING_ID_BYTE: u8 = 0b0000_0001;

/// The bit of an owner's ID. The ID that is never used has none: it cannot be trusted.
const fn bit_of(owner: Owner) -> u128 {
    match owner {
        Owner::Source(id) => 1 << id.get(),
        Owner::Padding => 1,
        Owner::Trigger => 1 << 0x7d,
        Owner::Reserved(ReservedId::NEVER_USED) | Owner::Unknown => 0,
        Owner::Reserved(id) => 1 << id.get(),
    }
}

#[cfg(test)]
mod tests;

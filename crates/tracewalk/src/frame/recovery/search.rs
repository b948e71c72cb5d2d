//! Searches for frames while their start is unknown.

use alloc::vec::Vec;

use super::super::alignment::FrameAlignment;
use super::super::layout::FRAME_BYTES;
use super::super::owner::IdSet;
use super::super::sink::Cause;
use super::evidence::AlignmentEvidence;
use super::judge::good_start;
use super::ranking::{AlignmentRanking, Frames};
use super::watch::Watch;

/// The search for the start of a frame. The bytes that are not accounted for yet are lost if the search
/// fails.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Search {
    pub(super) cause: Cause,
    /// The number of bytes to skip, if it is known.
    pub(super) skip: Option<usize>,
    /// The newest bytes, at most `MOST`.
    pub(super) bytes: Vec<u8>,
    /// The place of each byte.
    pub(super) places: Vec<u64>,
    /// The number of bytes at the last look.
    looked_at: usize,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// The number of the search's bytes before the first good frame.
    pub(super) index: usize,
    /// The sources of the frames.
    pub(super) sources: IdSet,
    /// Whether there are FSYNCs between these frames, and none inside them.
    agrees_with_sync: bool,
}

impl Search {
    /// The number of new bytes that justify another look.
    const STEP: usize = 1024;

    /// The number of the newest bytes that show whether there are frames.
    const DECIDING: usize = 2048;

    const MOST: usize = 4096;

    pub(super) const fn new(cause: Cause) -> Self {
        Self { cause, skip: None, bytes: Vec::new(), places: Vec::new(), looked_at: 0 }
    }

    /// A search that waits for a known start.
    pub(super) fn until(start: FrameAlignment) -> Self {
        Self { skip: Some(usize::from(start.bytes())), ..Self::new(Cause::Start) }
    }

    /// Takes the next byte, and forgets the oldest ones if necessary.
    pub(super) fn take(&mut self, byte: u8, at: u64) {
        self.make_room();
        self.bytes.push(byte);
        self.places.push(at);
    }

    /// The number of bytes that may be taken before the next look.
    pub(super) fn room(&mut self) -> usize {
        if self.skip.is_some() {
            return 0;
        }
        self.make_room();
        (self.looked_at + Self::STEP).min(Self::MOST) - self.bytes.len()
    }

    /// Takes contiguous bytes from `place` on, for which there must be [`Search::room`].
    pub(super) fn take_all(&mut self, bytes: &[u8], place: u64) {
        self.bytes.extend_from_slice(bytes);
        self.places.extend((place..).take(bytes.len()));
    }

    fn make_room(&mut self) {
        if self.bytes.len() >= Self::MOST {
            self.bytes.drain(..Self::STEP);
            self.places.drain(..Self::STEP);
            self.looked_at = self.looked_at.saturating_sub(Self::STEP);
        }
    }

    /// Looks for frames if there are enough new bytes.
    pub(super) fn find_now_and_then(&mut self, watch: &Watch) -> Option<Start> {
        if self.bytes.len() < self.looked_at + Self::STEP {
            return None;
        }
        self.looked_at = self.bytes.len();
        self.find(watch)
    }

    /// Looks for frames that agree with an FSYNC that has just ended.
    pub(super) fn find_before_sync(&self, watch: &Watch) -> Option<Start> {
        self.find(watch).filter(|start| start.agrees_with_sync)
    }

    /// Looks for frames that clearly explain the newest bytes, and for the first of these frames.
    pub(super) fn find(&self, watch: &Watch) -> Option<Start> {
        let older = self.bytes.len().saturating_sub(Self::DECIDING);
        let newest = self.bytes.get(older..).unwrap_or_default();
        if are_no_frames(newest) {
            return None;
        }
        let ranking = AlignmentRanking::of(newest, watch.expected);
        let best = ranking.is_clear().then_some(ranking.best())?;
        let first_newest = older + usize::from(best.alignment.bytes());
        // The alignment of the same frames from the oldest byte on, unless there are HSYNCs in between.
        let from_oldest = u8::try_from(first_newest % FRAME_BYTES).ok().and_then(FrameAlignment::new)?;
        let same_frames = Frames::new(&self.bytes, from_oldest).any(|frame| frame.start == first_newest);
        let index = if same_frames {
            good_start(&self.bytes, from_oldest, best.evidence.sources, watch)
        } else {
            older + good_start(newest, best.alignment, best.evidence.sources, watch)
        };
        let agrees_with_sync = best.evidence.full_syncs != 0 && best.evidence.misplaced_syncs == 0;
        Some(Start { index, sources: best.evidence.sources, agrees_with_sync })
    }
}

/// Whether the bytes name reserved IDs so often that an [`AlignmentRanking`] has no plausible candidate. Most junk is like that, and
/// counting takes a small part of the time of ranking.
///
/// The mixed bytes of a frame are at every second place, so all alignments of the same parity have the same
/// mixed bytes. Synchronisation comes in pairs of bytes, so it moves no byte to the other parity.
fn are_no_frames(bytes: &[u8]) -> bool {
    /// Bytes at the ends may be in no whole frame.
    const ENDS: usize = 3 * FRAME_BYTES;
    let inside = bytes.get(FRAME_BYTES..bytes.len().saturating_sub(ENDS)).unwrap_or_default();
    let mut reserved = [0_u32; 2];
    for pair in inside.as_chunks::<2>().0 {
        for (count, &byte) in reserved.iter_mut().zip(pair) {
            *count += u32::from(names_reserved_id(byte));
        }
    }
    let most = AlignmentEvidence::most_wrong_of(u32::try_from(bytes.len() / FRAME_BYTES).unwrap_or(u32::MAX));
    reserved.iter().all(|&count| count > most)
}

/// Whether the byte is the ID byte of a reserved ID. `ff` does not count, because it may be synchronisation.
const fn names_reserved_id(byte: u8) -> bool {
    byte & 1 == 1 && byte > LAST_ID_BYTE && byte != TRIGGER_ID_BYTE && byte != 0xff
}

/// The ID byte of the last ID of a source, 0x6f.
const LAST_ID_BYTE: u8 = 0x6f << 1 | 1;

/// The ID byte of triggers.
const TRIGGER_ID_BYTE: u8 = 0x7d << 1 | 1;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// Random bytes, or bytes that seldom name reserved IDs.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let random = proptest::collection::vec(any::<u8>(), 0..2048);
        let mostly = proptest::collection::vec(prop_oneof![9 => 0_u8..0xe0, 1 => any::<u8>()], 1024..2048);
        prop_oneof![random, mostly]
    }

    proptest! {
        #[test]
        fn what_is_taken_for_no_frames_has_no_clear_alignment(bytes in bytes()) {
            if are_no_frames(&bytes) {
                let ranking = AlignmentRanking::of(&bytes, None);
                prop_assert!(ranking.candidates().iter().all(|candidate| !candidate.evidence.is_plausible()));
            }
        }
    }

    #[test]
    fn random_bytes_are_no_frames_and_zeros_may_be() {
        let mut state = 1_u32;
        let random = (0..Search::DECIDING).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        });
        assert!(are_no_frames(&random.collect::<Vec<_>>()));
        assert!(!are_no_frames(&[0; Search::DECIDING]));
        assert!(!are_no_frames(&[]));
    }
}

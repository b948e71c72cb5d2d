//! A closer look at doubtful frames: is the alignment still right, and if not, where was it lost?

use alloc::vec::Vec;

use super::super::alignment::FrameAlignment;
use super::super::layout::{FRAME_BYTES, Frame};
use super::super::owner::{IdSet, Owner};
use super::evidence::{AlignmentEvidence, Examiner};
use super::held::Held;
use super::ranking::{AlignmentRanking, Frames, weights};
use super::watch::Watch;

/// The number of frames, from the doubtful one on, that decide about it. 1 KiB shows the alignment in every
/// stretch of a Cortex-M3's SWO and of a Versatile Express TC2's buffer, 512 bytes in nine stretches of ten.
pub(super) const DECIDING_FRAMES: u64 = 64;

/// If fewer of the deciding frames are wrong, the alignment was not lost.
const FEWEST_LOST: u64 = 8;

/// The decision about a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No other alignment explains the bytes clearly better.
    Unfounded,
    /// The frames from `keep` on are not frames. The real frames are at `alignment`, the first one `resume`
    /// bytes after the first held frame's start.
    Realign { keep: u64, resume: usize, alignment: FrameAlignment },
    /// The frames from `keep` on are not frames, and the places of the real frames are not clear.
    Lost { keep: u64 },
}

/// Judges the watch's next frame by that frame and the frames after it, as far as they have arrived.
///
/// `owner` is the owner of the first held frame's first byte.
pub(super) fn judge(held: &Held, watch: &Watch, owner: Owner, is_port: bool) -> Verdict {
    let end = watch.next + DECIDING_FRAMES;
    let deciding = held.frames(watch.next, end);
    if matches!(deciding, [_, after @ ..] if watch.is_content_with(after)) {
        return Verdict::Unfounded;
    }
    let deciding = deciding.as_flattened();
    let ranking = AlignmentRanking::of(deciding, watch.expected);
    let current =
        ranking.candidates().iter().find(|candidate| candidate.alignment == FrameAlignment::default());
    let current = current.map(|candidate| candidate.evidence).unwrap_or_default();
    let best = ranking.best();
    // Bit 0 alone may speak against data that has an order of its own, even at the right alignment. So only
    // better IDs and padding condemn an alignment if no other one stands out.
    let is_certain = best.evidence.is_certainly_better_than(&current);
    // Frames that repeat each other repeat this evidence as well, and add none.
    let is_clear = ranking.is_clear()
        && best.alignment != FrameAlignment::default()
        && (is_certain || !is_repetitive(deciding));
    if is_clear || is_certain {
        let region = held.frames(held.first(), end).as_flattened();
        let Split { keep, resume, .. } = split(region, best.alignment, watch, owner);
        let keep = held.first() + keep;
        return if is_clear {
            Verdict::Realign { keep, resume, alignment: best.alignment }
        } else if keep + FEWEST_LOST > end {
            // Nearly all of these frames are right: one was damaged, and the others support the alignment.
            Verdict::Unfounded
        } else {
            Verdict::Lost { keep }
        };
    }
    // The places of a buffer's frames follow from its memory. On a port, bytes that do not look like frames
    // at all are none. If the bytes from the doubtful frame on still look like frames, there will be another
    // doubt.
    if is_port && current.is_hopeless_for(current.frames) && is_bad_from_the_start(deciding, watch) {
        return Verdict::Lost { keep: watch.next };
    }
    Verdict::Unfounded
}

/// Whether most bytes equal those one frame before.
fn is_repetitive(bytes: &[u8]) -> bool {
    let next = bytes.get(FRAME_BYTES..).unwrap_or_default();
    let repeated = bytes.iter().zip(next).filter(|(byte, next)| byte == next).count();
    repeated * 4 >= next.len() * 3
}

fn is_bad_from_the_start(deciding: &[u8], watch: &Watch) -> bool {
    let borders = scores(deciding, FrameAlignment::default(), watch.expected, Owner::Unknown);
    let best = borders.iter().max_by_key(|border| border.certain);
    best.is_some_and(|best| best.start < 4 * FRAME_BYTES)
}

/// The place at which one alignment ends and another one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// The number of right frames at the old alignment.
    pub(super) keep: u64,
    /// The first byte of the first frame at the new alignment.
    pub(super) resume: usize,
    /// The gain in score over keeping all frames of the old alignment.
    pub(super) gain: i64,
}

/// Splits bytes that start as frames and end as frames at `alignment`, at the best place.
///
/// ```text
/// for every border between frames of the old alignment, and the next few borders of the new one after it:
///     the gain is the score of the old frames before + the score of the new frames after
/// among the best split and its neighbours that are nearly as good, the one that trusts the fewest frames
///     wins
/// ```
///
/// Wrong bytes are worse than lost bytes, because a synchronised decoder believes them.
pub(super) fn split(region: &[u8], alignment: FrameAlignment, watch: &Watch, owner: Owner) -> Split {
    // A single frame has little more evidence than this for or against it.
    const NEARLY: i64 = 8;
    const NEXT_FRAMES: usize = 2;
    // Only the place is in question here: a source that was never trusted is more likely wrong than right.
    let expected = Some(watch.trusted_sources()).filter(|trusted| !trusted.is_empty());
    let old = scores(region, FrameAlignment::default(), expected, owner);
    let new = scores(region, alignment, expected, Owner::Unknown);
    let [all_old, all_new] = [&old, &new].map(|borders| borders.last().map_or(0, |last| last.score));
    let splits = || {
        (0..).zip(&old).flat_map(|(keep, old)| {
            let after = new.partition_point(|new| new.start < old.start);
            new.iter().skip(after).take(1 + NEXT_FRAMES).map(move |new| {
                let gain = old.score - all_old + (all_new - new.score);
                Split { keep, resume: new.start, gain }
            })
        })
    };
    let nothing = Split { keep: 0, resume: region.len(), gain: i64::MIN };
    let best = splits().max_by_key(|split| split.gain).unwrap_or(nothing);
    if best.keep == 0 {
        // The old alignment was never right here, so no frame contains the loss.
        return Split { resume: usize::from(alignment.bytes()), ..best };
    }
    let next = |split: &Split| {
        let fewer_old = best.keep.checked_sub(split.keep).is_some_and(|fewer| fewer <= NEXT_FRAMES as u64);
        let fewer_new = split.resume.saturating_sub(best.resume) <= NEXT_FRAMES * FRAME_BYTES;
        fewer_old && fewer_new && split.gain >= best.gain - NEARLY
    };
    splits().filter(next).fold(best, |careful, split| Split {
        keep: careful.keep.min(split.keep),
        resume: careful.resume.max(split.resume),
        gain: best.gain,
    })
}

/// The border before a frame, and the evidence for the frames before it.
#[derive(Clone, Copy, Debug)]
struct Border {
    start: usize,
    /// All evidence.
    score: i64,
    /// The evidence that is certain even if the data has an order of its own.
    certain: i64,
}

impl Border {
    /// A bonus for each frame, so that a frame with little evidence against it is kept. A frame at the wrong
    /// alignment has 8 or more against it.
    const FRAME_SCORE: i64 = 2;

    fn after(evidence: &AlignmentEvidence, start: usize) -> Self {
        let frames = i64::from(evidence.frames) * Self::FRAME_SCORE;
        let certain = evidence.score_of_ids_and_padding() + frames;
        Self { start, score: certain + evidence.score_of_low_bits(), certain }
    }
}

/// The start of the first good frame in bytes that end as frames of `sources` at `alignment`. Before that
/// start are the bytes before the first frame, and frames that are clearly worse than none.
pub(super) fn good_start(bytes: &[u8], alignment: FrameAlignment, sources: IdSet, watch: &Watch) -> usize {
    /// One damaged frame reaches this score; new sources in healthy frames do not.
    const CLEARLY: i64 = -24;
    let expected = Some(watch.trusted_sources().union(sources));
    let borders = scores(bytes, alignment, expected, Owner::Unknown);
    let worst = borders.iter().filter(|border| border.certain <= CLEARLY).min_by_key(|border| border.certain);
    worst.map_or(usize::from(alignment.bytes()), |border| border.start)
}

/// All borders between frames at `alignment`, the last one after the last whole frame.
fn scores(region: &[u8], alignment: FrameAlignment, expected: Option<IdSet>, owner: Owner) -> Vec<Border> {
    let mut examiner = Examiner::new(owner, expected, weights(region, alignment));
    let mut borders = Vec::with_capacity(region.len() / FRAME_BYTES + 2);
    let mut end = usize::from(alignment.bytes());
    for found in Frames::new(region, alignment) {
        borders.push(Border::after(&examiner.evidence, found.start));
        examiner.frame(Frame::new(&found.bytes));
        end = found.end;
    }
    borders.push(Border::after(&examiner.evidence, end));
    borders
}

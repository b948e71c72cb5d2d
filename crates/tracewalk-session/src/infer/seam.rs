//! The place of the oldest byte in a buffer that wrapped, inferred from the distances between synchronisations alone.
//!
//! A trace unit sends an A-sync at a regular distance in its own trace, usually 1024 bytes. In a buffer that wrapped
//! and was read from its first address on, one distance differs: the newest trace ends and the oldest begins in it. If
//! the buffer is turned there, the odd distance disappears, because the bytes after the last A-sync and those before
//! the first one together make one distance. Neither a program nor a setting is needed, and the buffer may have any
//! size.
//!
//! ```text
//! for each source with one odd distance, whose ends together make one distance:
//!     the seam is between the A-syncs of the odd distance
//! the seam is between the last of these A-syncs before it and the first of these A-syncs after it
//! turn the buffer there: the odd distances become regular, and no others become odd
//! ```
//!
//! The exact place of the seam remains unknown. The answer is the first possible place, after the last A-sync of the
//! newest trace: the bytes from there to the seam then precede the oldest A-sync, where nothing is decoded. The decoded
//! bytes are in the order in which they were traced.

use std::collections::BTreeMap;

use tracewalk::frame::{Discontinuity, FRAME_BYTES, FrameSink, Framing, Owner, Piece, RecoveringDeframer};
use tracewalk::ids::TraceId;

/// The place at which a buffer's newest byte and its oldest one meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seam {
    /// The first possible place.
    pub(crate) first: usize,
    /// The last possible place.
    pub(crate) last: usize,
    /// The number of sources that agree.
    pub(crate) sources: usize,
    /// The distance between A-syncs in one of these sources.
    pub(crate) distance: u64,
}

/// The fewest A-syncs that show a rhythm.
const FEWEST: usize = 5;

/// How many bytes at a source's beginning and end may be attributed to another source: up to the first frame with an
/// ID.
const LOST_AT_START: u64 = 128;

/// The seam of a buffer of frames, or of one source's bytes, if it wrapped.
pub(crate) fn seam(bytes: &[u8], in_frames: bool) -> Option<Seam> {
    let sources = Synchronisations::of([bytes, &[]], in_frames);
    let rhythms = sources.iter().filter_map(|(id, found)| Some((*id, found, found.rhythm()?)));
    let rhythms = rhythms.collect::<Vec<_>>();
    let gaps = rhythms.iter().filter_map(|(id, found, rhythm)| {
        let [gap] = rhythm.odd.as_slice() else { return None };
        let joined = found.in_front()? + found.after()?;
        let is_joined = joined.abs_diff(rhythm.distance) <= rhythm.tolerance + LOST_AT_START;
        is_joined.then_some((*id, (gap.0, gap.1), rhythm.distance))
    });
    let gaps = gaps.collect::<Vec<_>>();
    let first = gaps.iter().map(|(_, (from, _), _)| *from).max()?;
    let last = gaps.iter().map(|(_, (_, to), _)| *to).min()?;
    let unit = if in_frames { FRAME_BYTES } else { 1 };
    let first = usize::try_from(first).ok()?.next_multiple_of(unit);
    let last = usize::try_from(last).ok()? / unit * unit;
    // A long stretch without synchronisation leaves too much doubt.
    if first > last || last - first > bytes.len() / 8 {
        return None;
    }
    let turned = Synchronisations::of([bytes.get(first..)?, bytes.get(..first)?], in_frames);
    let mut agree = Vec::new();
    for (id, found, rhythm) in &rhythms {
        let after = turned.get(id)?;
        let odd = after.odd(rhythm).count();
        match gaps.iter().find(|(gap, ..)| gap == id) {
            Some((_, _, distance)) if odd == 0 && after.places.len() >= found.places.len() => {
                agree.push(*distance);
            }
            // Bytes between the first place and the seam may be attributed to this source, which makes one distance
            // odd.
            None if odd > rhythm.odd.len() + 1 || found.keeps_time_over(first, last, rhythm) => return None,
            _ => {}
        }
    }
    Some(Seam { first, last, sources: agree.len(), distance: *agree.first()? })
}

/// The A-syncs of a source (IHI 0014Q, 7.10; IHI 0035B, 4.5.1: five bytes 0x00 or more, and 0x80).
#[derive(Clone, Debug, Default)]
struct Synchronisations {
    bytes: u64,
    zeros: u8,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// The position of the A-sync's last byte among the source's bytes.
    in_source: u64,
    /// The place in the buffer of the byte after the A-sync.
    after: u64,
}

const ZEROS: u8 = 5;
const LAST_BYTE: u8 = 0x80;

/// How regularly a source synchronises.
#[derive(Debug)]
struct Rhythm {
    distance: u64,
    tolerance: u64,
    /// The distances that differ: each from the end of one A-sync to the start of the next, in the buffer.
    odd: Vec<(u64, u64)>,
}

impl Synchronisations {
    /// The A-syncs of each source, in these parts of a buffer one after the other.
    fn of(parts: [&[u8]; 2], in_frames: bool) -> BTreeMap<Option<TraceId>, Self> {
        let mut sources = Sources(BTreeMap::new());
        if in_frames {
            let mut deframer = RecoveringDeframer::new(Framing::Buffer);
            parts.iter().for_each(|part| deframer.push(part, &mut sources));
            deframer.finish(&mut sources);
        } else {
            let source = sources.0.entry(None).or_default();
            let first = parts.first().map_or(0, |part| part.len());
            for (part, start) in parts.into_iter().zip([0, first]) {
                source.take_all(part, |index| (start + index) as u64);
            }
        }
        sources.0
    }

    /// Scans bytes at these places.
    fn take_all(&mut self, bytes: &[u8], place: impl Fn(usize) -> u64) {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            if self.zeros == 0 {
                // No A-sync ends in so few bytes, and none continues after a byte that is not zero.
                let without = |few: &&[u8]| few.last() != Some(&0);
                let passed = rest.chunks_exact(ZEROS.into()).take_while(without).count() * usize::from(ZEROS);
                self.bytes += passed as u64;
                at += passed;
            }
            if let Some(byte) = bytes.get(at) {
                self.take(*byte, place(at));
                at += 1;
            }
        }
    }

    fn take(&mut self, byte: u8, at: u64) {
        match byte {
            0 => self.zeros = self.zeros.saturating_add(1),
            LAST_BYTE if self.zeros >= ZEROS => {
                self.places.push(Place { in_source: self.bytes, after: at + 1 });
                self.zeros = 0;
            }
            _ => self.zeros = 0,
        }
        self.bytes += 1;
    }

    /// The number of bytes before the end of the first A-sync.
    fn in_front(&self) -> Option<u64> {
        Some(self.places.first()?.in_source)
    }

    /// The number of bytes from the end of the last A-sync on.
    fn after(&self) -> Option<u64> {
        Some(self.bytes - self.places.last()?.in_source)
    }

    fn steps(&self) -> impl Iterator<Item = (Place, Place)> {
        self.places.iter().copied().zip(self.places.iter().skip(1).copied())
    }

    /// The rhythm; `None` without one.
    fn rhythm(&self) -> Option<Rhythm> {
        if self.places.len() < FEWEST {
            return None;
        }
        let mut distances = self.steps().map(|(from, to)| to.in_source - from.in_source).collect::<Vec<_>>();
        distances.sort_unstable();
        let distance = *distances.get(distances.len() / 2)?;
        let mut deviations = distances.iter().map(|found| found.abs_diff(distance)).collect::<Vec<_>>();
        deviations.sort_unstable();
        // A unit ends its packet before it synchronises, so that distances vary. One distance may be anything.
        let usual = deviations.iter().rev().nth(1)?;
        let tolerance = usual * 2 + 8;
        let mut rhythm = Rhythm { distance, tolerance, odd: Vec::new() };
        rhythm.odd = self.odd(&rhythm).collect();
        (tolerance * 16 <= distance).then_some(rhythm)
    }

    /// The distances that do not fit a rhythm.
    fn odd(&self, rhythm: &Rhythm) -> impl Iterator<Item = (u64, u64)> {
        let odd = self.steps().filter(|(from, to)| !rhythm.holds(*from, *to));
        odd.map(|(from, to)| (from.after, to.after.saturating_sub(u64::from(ZEROS) + 1)))
    }

    /// Whether the source keeps its rhythm across these places, as no source does across a seam.
    fn keeps_time_over(&self, first: usize, last: usize, rhythm: &Rhythm) -> bool {
        let over = |(from, to): &(Place, Place)| {
            from.after <= first as u64 && to.after > last as u64 && rhythm.holds(*from, *to)
        };
        self.steps().any(|step| over(&step))
    }
}

impl Rhythm {
    const fn holds(&self, from: Place, to: Place) -> bool {
        (to.in_source - from.in_source).abs_diff(self.distance) <= self.tolerance
    }
}

struct Sources(BTreeMap<Option<TraceId>, Synchronisations>);

impl FrameSink for Sources {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        let Owner::Source(id) = owner else { return };
        let source = self.0.entry(Some(id)).or_default();
        source.take_all(piece.bytes, |index| piece.place(index).0);
    }

    fn discontinuity(&mut self, _: Discontinuity) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(path: &str) -> Vec<u8> {
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).expect(path)
    }

    /// A buffer that begins with a number of its newest bytes.
    fn turned(bytes: &[u8], newest: usize) -> Vec<u8> {
        let mut turned = bytes.to_vec();
        turned.rotate_right(newest);
        turned
    }

    /// How often the seam is found in a number of buffers; it is never found elsewhere.
    fn found(bytes: &[u8], in_frames: bool, step: usize) -> (usize, usize) {
        let unit = if in_frames { FRAME_BYTES } else { 1 };
        let (mut found, mut all) = (0, 0);
        for newest in (unit..bytes.len()).step_by(step) {
            all += 1;
            if let Some(seam) = seam(&turned(bytes, newest), in_frames) {
                let places = seam.first.saturating_sub(unit)..=seam.last + unit;
                assert!(places.contains(&newest), "{newest:#x}: {seam:x?}");
                found += 1;
            }
        }
        (found, all)
    }

    #[test]
    fn a_seam_is_found_without_a_program_or_not_at_all() {
        let example = read("testdata/examples/m3-etmv3/trace.bin");
        let whole = example.get(..example.len() / FRAME_BYTES * FRAME_BYTES).unwrap();
        let (hits, all) = found(whole, true, FRAME_BYTES * 17);
        assert!(hits * 10 >= all * 8, "{hits} of {all}");
        assert_eq!(seam(whole, true), None);
    }

    #[tracewalk_corpus::test]
    fn a_seam_of_hardware_is_found_in_half_of_all_places() {
        let captures = [
            ("../shared/corpus/real/TC2/cstrace.bin", true, 0..32768, FRAME_BYTES * 97),
            ("../shared/corpus/real/TC2/cstrace.bin", true, 4992..25472, FRAME_BYTES * 61),
            ("../shared/corpus/real/tc2-ptm-rstk-t32/PTM_0_2.bin", false, 0..26624, 511),
        ];
        for (path, in_frames, part, step) in captures {
            let bytes = read(path);
            let (hits, all) = found(bytes.get(part).unwrap(), in_frames, step);
            println!("{path}: {hits} of {all}");
            assert!(hits * 2 >= all, "{path}: {hits} of {all}");
            // Buffers that did not wrap, of any part of the capture, and with bytes missing or doubled.
            let half = bytes.len() / 2;
            for start in (0..half).step_by(97 * FRAME_BYTES) {
                assert_eq!(
                    seam(bytes.get(start..start + half).unwrap(), in_frames),
                    None,
                    "{path} from {start}"
                );
                let damage = start + half / 2;
                let [missing, doubled] = [damage + 64..bytes.len(), damage - 64..bytes.len()];
                for rest in [missing, doubled] {
                    let damaged = [&bytes[..damage], &bytes[rest]].concat();
                    assert_eq!(seam(&damaged, in_frames), None, "{path}, damaged at {damage}");
                }
            }
        }
    }

    #[test]
    fn bytes_taken_together_have_the_a_syncs_that_they_have_one_by_one() {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        for _ in 0..200 {
            // Mostly zeros, so that there are A-syncs of every length at every place.
            let bytes = (0..next() % 200).map(|_| match next() % 8 {
                0 => 0x80,
                1 => 0x7f,
                _ => 0,
            });
            let bytes = bytes.collect::<Vec<_>>();
            let (one, other) = bytes.split_at(next() as usize % (bytes.len() + 1));
            let mut expected = Synchronisations::default();
            (0..).zip(&bytes).for_each(|(at, byte)| expected.take(*byte, at));
            let found = Synchronisations::of([one, other], false).remove(&None).unwrap();
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
    }

    #[test]
    fn what_has_no_rhythm_has_no_seam() {
        assert_eq!(seam(&[], true), None);
        assert_eq!(seam(&[0; 4096], false), None);
        assert_eq!(seam(&[0, 0, 0, 0, 0, 0x80].repeat(1000), false), None);
        let noise = (0_u32..1 << 16).map(|index| index.wrapping_mul(2_654_435_761).to_be_bytes()[0]);
        let noise = noise.collect::<Vec<_>>();
        assert_eq!((seam(&noise, true), seam(&noise, false)), (None, None));
    }
}

//! Frames of hardware captures are found wherever the file starts, and found again after missing bytes.

use std::collections::BTreeMap;

use tracewalk::frame::{
    AlignmentRanking, Cause, Discontinuity, FrameAlignment, FrameSink, Framing, IdSet, Owner, Piece,
    RecoveringDeframer,
};
use tracewalk::ids::TraceId;

/// A capture without an FSYNC, whose first byte starts a frame.
struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    sources: IdSet,
}

/// An SWO's bytes with ITM and ETM, and a buffer's with three ETMs, two PTMs and an ITM.
fn cases() -> Vec<Case> {
    let corpus = crate::support::corpus();
    let case = |name: &'static str, sources: &[u8]| {
        let bytes = std::fs::read(corpus.join(name)).expect("the capture is readable");
        Case { name, bytes, sources: sources.iter().filter_map(|&id| TraceId::new(id)).collect() }
    };
    vec![
        case("real/stm32f105/swo.bin", &[1, 2]),
        case("real/TC2/cstrace.bin", &[0x10, 0x11, 0x12, 0x13, 0x14, 0x20]),
    ]
}

/// The sources' bytes by their place, and the discontinuities.
#[derive(Default)]
struct Reading {
    bytes: BTreeMap<u64, (TraceId, u8)>,
    discontinuities: Vec<Discontinuity>,
}

impl FrameSink for Reading {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        let Some(id) = owner.trace_id() else { return };
        let places = (0..piece.bytes.len()).map(|index| piece.place(index).0);
        self.bytes.extend(places.zip(piece.bytes.iter().map(|&byte| (id, byte))));
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        self.discontinuities.push(discontinuity);
    }
}

fn read(framing: Framing, bytes: &[u8]) -> Reading {
    let mut reading = Reading::default();
    let mut deframer = RecoveringDeframer::new(framing);
    deframer.push(bytes, &mut reading);
    deframer.finish(&mut reading);
    assert_eq!(deframer.account().total(), bytes.len() as u64);
    reading
}

impl Reading {
    /// The number of bytes that differ from `right`; `place` maps a byte's place to its place in `right`.
    fn wrong(&self, right: &Self, place: impl Fn(u64) -> u64) -> usize {
        self.bytes.iter().filter(|(at, found)| right.bytes.get(&place(**at)) != Some(found)).count()
    }
}

#[tracewalk_corpus::test]
fn whole_captures_have_no_discontinuities() {
    for Case { name, bytes, .. } in cases() {
        assert_eq!(read(Framing::Buffer, &bytes).discontinuities, [], "{name}");
    }
}

#[tracewalk_corpus::test]
fn captures_cut_at_the_front_are_found_at_their_alignment() {
    for Case { name, bytes, sources } in cases() {
        for front in 0..16 {
            let cut = &bytes[front..];
            let right = FrameAlignment::new(u8::try_from((16 - front) % 16).expect("below 16"));
            for expected in [None, Some(sources)] {
                for part in [cut, &cut[..1024]] {
                    let ranking = AlignmentRanking::of(part, expected);
                    let best = ranking.best();
                    assert_eq!(Some(best.alignment), right, "{name} from byte {front}: {best}");
                    assert!(ranking.is_clear(), "{name} from byte {front}: {best}");
                }
            }
        }
    }
}

#[tracewalk_corpus::test]
fn captures_cut_at_the_front_are_read_from_the_first_whole_frame_on() {
    for Case { name, bytes, .. } in cases() {
        let whole = read(Framing::Buffer, &bytes);
        for front in 1..16 {
            for framing in [Framing::Port, Framing::Buffer] {
                let reading = read(framing, &bytes[front..]);
                let [Discontinuity { bytes: lost, cause: Cause::Start, .. }] = reading.discontinuities[..]
                else {
                    panic!("{name} from byte {front}: {:?}", reading.discontinuities)
                };
                // If the deframer assumes that frames start with the first byte, up to two right frames may
                // be lost as well.
                let slack = if framing == Framing::Buffer { 32 } else { 0 };
                let exact = 16 - front as u64;
                assert!(
                    (exact..=exact + slack).contains(&lost),
                    "{name} from byte {front} as {framing:?}: {lost}"
                );
                assert_eq!(reading.wrong(&whole, |at| at + front as u64), 0);
                // Bytes before the first ID byte have no known owner.
                assert!(reading.bytes.len() + 200 > whole.bytes.len());
            }
        }
    }
}

#[tracewalk_corpus::test]
fn lost_bytes_cost_a_few_frames_and_hardly_a_wrong_byte() {
    for Case { name, bytes, .. } in cases() {
        let whole = read(Framing::Buffer, &bytes);
        let from_0 = Framing::PortFrom(FrameAlignment::default());
        let mut wrong = Vec::new();
        for at in (64..bytes.len() - 256).step_by(bytes.len() / 14) {
            for missing in [1, 2, 8, 13, 15, 22] {
                let damaged = [&bytes[..at], &bytes[at + missing..]].concat();
                let reading = read(from_0, &damaged);
                let lost: u64 = reading.discontinuities.iter().map(|loss| loss.bytes).sum();
                assert!((1..=128).contains(&lost), "{name}: {lost} lost instead of {missing} at {at}");
                let place = |found: u64| if found < at as u64 { found } else { found + missing as u64 };
                wrong.push(reading.wrong(&whole, place));
            }
        }
        wrong.sort_unstable();
        assert_eq!(wrong[wrong.len() * 9 / 10], 0, "{name}: {wrong:?}");
        assert!(wrong.last() <= Some(&128), "{name}: {wrong:?}");
    }
}

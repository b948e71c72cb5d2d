//! Properties of the deframer and the formatter, over random sources, frames and cuts.

pub(super) mod groups;
mod index;
mod recovery;

use std::collections::BTreeMap;
use std::string::ToString;
use std::vec::Vec;

use super::*;
use crate::ids::TraceId;
use crate::span::CaptureOffset;
use core::num::NonZeroU32;
use proptest::prelude::*;

/// Keeps everything, with the place of each byte.
#[derive(Default)]
struct Record {
    bytes: Vec<(u64, Owner, u8)>,
    discontinuities: Vec<Discontinuity>,
}

impl FrameSink for Record {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        assert!(!piece.bytes.is_empty());
        for (index, &byte) in piece.bytes.iter().enumerate() {
            self.bytes.push((piece.place(index).0, owner, byte));
        }
        let joined: Vec<u8> = piece.contiguous().flat_map(|part| part.bytes.to_vec()).collect();
        assert_eq!(joined, piece.bytes);
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        self.discontinuities.push(discontinuity);
    }
}

impl Record {
    fn by_owner(&self) -> BTreeMap<Owner, Vec<u8>> {
        let mut by_owner = BTreeMap::<_, Vec<u8>>::new();
        for &(_, owner, byte) in &self.bytes {
            by_owner.entry(owner).or_default().push(byte);
        }
        by_owner
    }
}

fn deframe(framing: Framing, input: &[u8], cuts: &[usize]) -> (Record, Tail, Account) {
    deframe_with(framing, true, input, cuts)
}

/// Deframes with or without recovery.
fn deframe_with(framing: Framing, recovers: bool, input: &[u8], cuts: &[usize]) -> (Record, Tail, Account) {
    let mut pieces = Vec::new();
    let mut rest = input;
    for &cut in cuts {
        let (piece, after) = rest.split_at(cut.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    let mut record = Record::default();
    if recovers {
        let mut deframer = RecoveringDeframer::new(framing);
        pieces.iter().for_each(|piece| deframer.push(piece, &mut record));
        let tail = deframer.finish(&mut record);
        (record, tail, deframer.account())
    } else {
        let mut deframer = Deframer::new(framing);
        pieces.iter().for_each(|piece| deframer.push(piece, &mut record));
        let tail = deframer.finish(&mut record);
        (record, tail, deframer.account())
    }
}

/// Every byte is data, lost, tail or overhead, and no byte is two of them.
fn assert_tiling(input: &[u8], record: &Record, tail: Tail, account: &Account) {
    assert_eq!(account.total(), input.len() as u64, "{account:?}");
    let mut uses = std::vec![0u8; input.len()];
    let mut claim = |at: u64| uses[usize::try_from(at).expect("a small test input")] += 1;
    record.bytes.iter().for_each(|&(at, ..)| claim(at));
    for &(at, _, byte) in &record.bytes {
        // Bit 0 of a frame's even bytes is in its last byte.
        let stood = input[usize::try_from(at).expect("a small test input")];
        assert_eq!(byte >> 1, stood >> 1, "the byte at {at} is another one");
    }
    for lost in &record.discontinuities {
        (lost.at.0..lost.at.0 + lost.bytes).for_each(&mut claim);
    }
    (tail.at.0..tail.at.0 + tail.bytes).for_each(&mut claim);
    assert!(uses.iter().all(|&uses| uses <= 1), "a byte has two uses");
    let claimed: u64 = uses.iter().map(|&uses| u64::from(uses)).sum();
    assert_eq!(claimed + account.overhead, input.len() as u64);
    assert_eq!(account.lost, record.discontinuities.iter().map(|lost| lost.bytes).sum::<u64>());
    assert_eq!(account.tail, tail.bytes);
    assert!(record.bytes.is_sorted_by_key(|&(at, ..)| at));
}

/// Bytes that look like frames and like synchronisation more often than by chance.
fn likely_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![3 => any::<u8>(), 2 => Just(0xff), 1 => Just(0x7f), 1 => Just(0), 2 => Just(0x21)];
    let piece = prop_oneof![
        4 => prop::collection::vec(byte, 1..40),
        1 => Just(FSYNC.to_vec()),
        1 => Just(FSYNC.repeat(4)),
        1 => Just(HSYNC.to_vec()),
        2 => prop::collection::vec(any::<u8>().prop_map(|byte| byte & 0xfe), 16..64),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn port_from(bytes: u8) -> Framing {
    Framing::PortFrom(FrameAlignment::new(bytes).expect("below 16"))
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![Just(Framing::Buffer), Just(Framing::Port), (0..16u8).prop_map(port_from)]
}

fn options() -> impl Strategy<Value = FormatterOptions> {
    let every = || prop::option::of((1..12u32).prop_map(|n| NonZeroU32::new(n).expect("at least 1")));
    (every(), every(), every()).prop_map(|(repeat_id_after, full_sync_every, half_sync_every)| {
        FormatterOptions { repeat_id_after, full_sync_every, half_sync_every }
    })
}

fn writes() -> impl Strategy<Value = Vec<(u8, Vec<u8>)>> {
    let id = prop_oneof![3 => 0x10..0x13u8, 1 => 1..0x70u8];
    let byte = prop_oneof![3 => any::<u8>(), 1 => Just(0xff), 1 => Just(0x7f)];
    prop::collection::vec((id, prop::collection::vec(byte, 0..40)), 0..24)
}

proptest! {
    #[test]
    fn every_byte_is_accounted_for_once(
        input in likely_bytes(),
        framing in framing(),
        cuts in prop::collection::vec(0..20usize, 0..40),
        recovery: bool,
    ) {
        let (record, tail, account) = deframe_with(framing, recovery, &input, &cuts);
        assert_tiling(&input, &record, tail, &account);
    }

    #[test]
    fn cutting_the_input_changes_nothing(
        input in likely_bytes(),
        framing in framing(),
        cuts in prop::collection::vec(0..20usize, 0..40),
        recovery: bool,
    ) {
        let (whole, whole_tail, whole_account) = deframe_with(framing, recovery, &input, &[]);
        let (cut, tail, account) = deframe_with(framing, recovery, &input, &cuts);
        prop_assert_eq!(cut.bytes, whole.bytes);
        prop_assert_eq!(cut.discontinuities, whole.discontinuities);
        prop_assert_eq!((tail, account), (whole_tail, whole_account));
    }

    #[test]
    fn what_was_formatted_comes_back(
        writes in writes(),
        options in options(),
        front in 0..16usize,
        cuts in prop::collection::vec(0..20usize, 0..40),
    ) {
        let mut input = std::vec![0x55; front];
        let mut expected = BTreeMap::<_, Vec<u8>>::new();
        let mut formatter = Formatter::new(options);
        for (id, bytes) in &writes {
            let id = TraceId::new(*id).expect("a trace source's ID");
            formatter.write(id, bytes, &mut input);
            if !bytes.is_empty() {
                expected.entry(Owner::Source(id)).or_default().extend(bytes);
            }
        }
        formatter.flush(&mut input);

        let framing = match options.full_sync_every {
            Some(_) => Framing::Port,
            None => port_from(u8::try_from(front).expect("below 16")),
        };
        let (record, tail, account) = deframe(framing, &input, &cuts);
        let mut found = record.by_owner();
        let padding = found.remove(&Owner::Padding).unwrap_or_default();
        prop_assert_eq!(found, expected);
        prop_assert!(padding.iter().all(|&byte| byte == 0));
        prop_assert_eq!(tail.bytes, 0);
        prop_assert_eq!(account.lost, front as u64);
    }

    #[test]
    fn places_answer_what_was_appended_and_forget_what_was_trimmed(
        input in likely_bytes(),
        trims in prop::collection::vec(0..600u64, 0..4),
    ) {
        use crate::span::StreamOffset;
        struct Sink(PlaceMap, Vec<u64>);
        impl FrameSink for Sink {
            fn data(&mut self, _: Owner, piece: Piece<'_>) {
                self.0.append(piece);
                self.1.extend((0..piece.bytes.len()).map(|index| piece.place(index).0));
            }
            fn discontinuity(&mut self, _: Discontinuity) {}
        }
        let mut sink = Sink(PlaceMap::new(), Vec::new());
        let mut deframer = RecoveringDeframer::new(port_from(0));
        deframer.push(&input, &mut sink);
        let Sink(mut places, expected) = sink;
        let mut start = 0;
        for trim in core::iter::once(0).chain(trims) {
            places.trim(StreamOffset(trim));
            start = start.max(trim);
            for (stream, &capture) in expected.iter().enumerate() {
                let located = places.locate(StreamOffset(stream as u64));
                prop_assert_eq!(located, (stream as u64 >= start).then_some(CaptureOffset(capture)));
            }
            prop_assert_eq!(places.locate(places.end()), None);
        }
    }
}

/// IHI 0029, 4.2: 0x70 to 0x7c, 0x7e and 0x7f name nothing.
#[test]
fn ids_that_name_nothing_are_reserved() {
    let reserved = (0..0x80).filter_map(|number| match Owner::from_id_byte(number << 1) {
        Owner::Reserved(id) => Some((number, id.get())),
        _ => None,
    });
    let expected = (0x70..=0x7c).chain([0x7e, 0x7f]).map(|number| (number, number));
    assert!(reserved.eq(expected));
}

#[test]
fn places_of_consecutive_whole_frames_are_one_entry() {
    let mut places = PlaceMap::new();
    assert_eq!(places.entries(), 0);
    places.append_contiguous(CaptureOffset(0), 100);
    places.append_contiguous(CaptureOffset(100), 7);
    assert_eq!(places.entries(), 1);
    places.append_contiguous(CaptureOffset(200), 7);
    assert_eq!(places.entries(), 2);
}

#[test]
fn discontinuities_are_reported_with_their_place_and_size() {
    let by = FrameAlignment::new(3).expect("an alignment is below 16");
    let cases = [
        (Cause::Start, "5 bytes before the first frame at offset 32"),
        (Cause::Barrier, "a barrier of four FSYNCs: the trace was cut at offset 32"),
        (
            Cause::MisplacedSync,
            "found an FSYNC inside a frame, expected it between frames: 5 bytes lost at offset 32",
        ),
        (Cause::ImpossibleId, "found ID 0x7f, expected a trace ID: 5 bytes lost at offset 32"),
        (Cause::Shifted { by }, "13 bytes missing or 3 too many (modulo 16): 5 bytes lost at offset 32"),
        (Cause::NoFrames, "found no frames in 5 bytes at offset 32"),
    ];
    for (cause, text) in cases {
        let discontinuity = Discontinuity { at: CaptureOffset(32), bytes: 5, cause };
        assert_eq!(discontinuity.to_string(), text);
    }
}

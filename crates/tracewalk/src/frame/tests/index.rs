//! An index gives the same bytes of a source as a deframer: for every source, section and cut, with frames
//! and without.

use super::*;

/// A byte of a source, or a loss, which concerns all sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Byte(u64, u8),
    Loss(Discontinuity),
}

/// One source's events.
struct Source(TraceId, Vec<Event>);

impl FrameSink for Source {
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner == Owner::Source(self.0) {
            let byte = |(index, &byte): (usize, &u8)| Event::Byte(piece.place(index).0, byte);
            self.1.extend(piece.bytes.iter().enumerate().map(byte));
            let mut appended = Vec::new();
            piece.append_to(&mut appended);
            assert_eq!(appended, piece.bytes);
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        self.1.push(Event::Loss(discontinuity));
    }
}

fn index(framing: Framing, length: u64, input: &[u8], cuts: &[usize]) -> Index {
    let mut indexer = Indexer::with_sections(framing, length);
    let mut rest = input;
    let mut record = Record::default();
    for &cut in cuts {
        let (piece, after) = rest.split_at(cut.min(rest.len()));
        indexer.push(piece, &mut record);
        rest = after;
    }
    indexer.push(rest, &mut record);
    let (index, account, tail) = indexer.finish(&mut record);
    assert_tiling(input, &record, tail, &account);
    // The index is compared with the bytes that were handed out, not with itself.
    let mut sources = Vec::new();
    for id in (0..=u8::MAX).filter_map(TraceId::new) {
        let own = record.bytes.iter().filter(|(_, owner, _)| *owner == Owner::Source(id)).count() as u64;
        assert_eq!(index.bytes_of(id), own, "{id}");
        sources.extend((own > 0).then_some((id, own)));
    }
    let mut found = index.sources().collect::<Vec<_>>();
    found.sort_unstable();
    assert_eq!((found, index.framing()), (sources, framing));
    index
}

/// Asserts that an index gives the bytes that a deframer hands out.
pub(super) fn assert_indexed_as_deframed(framing: Framing, length: u64, input: &[u8]) {
    assert_as_deframed(framing, input, &index(framing, length, input, &[]));
}

/// Compares an index with a deframer; returns the number of sections that are not mixed.
fn assert_as_deframed(framing: Framing, input: &[u8], index: &Index) -> usize {
    let ids = (0..=u8::MAX).filter_map(TraceId::new);
    for id in ids.filter(|id| index.bytes_of(*id) > 0) {
        let mut deframer = RecoveringDeframer::new(framing);
        let mut whole = Source(id, Vec::new());
        deframer.push(input, &mut whole);
        deframer.finish(&mut whole);
        let [mut at_once, mut by_sections] = [0; 2].map(|_| Source(id, Vec::new()));
        let mut extraction = index.extraction(id, index.sections());
        while extraction.advance(input, &mut at_once).is_some() {}
        assert_eq!(at_once.1, whole.1, "{id}");
        #[cfg(feature = "serde")]
        assert_eq!(written::taken(index, id, input).1, whole.1, "{id}, written and read at each place");
        for section in index.sections() {
            let before = by_sections.1.len();
            let mut extraction = index.extraction(id, section..section + 1);
            while extraction.advance(input, &mut by_sections).is_some() {}
            if let Some(bytes) = index.bytes_in(section, id) {
                assert_eq!((by_sections.1.len() - before) as u64, bytes);
            }
        }
        assert_eq!(by_sections.1, whole.1, "{id}, section by section");
    }
    let some = TraceId::new(1).expect("a trace source's ID");
    index.sections().filter(|section| index.bytes_in(*section, some).is_some()).count()
}

/// An index and the places in its sections stay the same when they are written and read.
#[cfg(feature = "serde")]
mod written {
    use super::*;

    fn written_and_read<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
        let text = serde_json::to_string(value).expect("a value without floating point or odd keys");
        serde_json::from_str(&text).expect("what was written")
    }

    pub(super) fn taken(index: &Index, id: TraceId, input: &[u8]) -> Source {
        let index = written_and_read(index);
        let mut found = Source(id, Vec::new());
        for section in index.sections() {
            let mut extraction = index.extraction(id, section..section + 1);
            while extraction.advance(input, &mut found).is_some() {
                let Some(inside) = extraction.into_inside() else { break };
                extraction = index.rest(id, written_and_read(&inside));
            }
        }
        found
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn anything_is_indexed_as_it_is_deframed(
        input in likely_bytes(),
        framing in framing(),
        length in 1..80_u64,
        cuts in prop::collection::vec(0..20usize, 0..40),
    ) {
        let in_pieces = index(framing, length, &input, &cuts);
        assert_eq!(in_pieces.sections(), index(framing, length, &input, &[]).sections());
        assert_as_deframed(framing, &input, &in_pieces);
    }

    #[test]
    fn frames_are_indexed_as_they_are_deframed(
        writes in writes(),
        options in options(),
        repeats in 1..8_usize,
        length in prop_oneof![1..400_u64, Just(1 << 16)],
        damage in prop::collection::vec((any::<usize>(), 0..20_usize, prop::collection::vec(any::<u8>(), 0..20)), 0..3),
    ) {
        let mut input = Vec::new();
        let mut formatter = Formatter::new(options);
        for (id, bytes) in writes.iter().cycle().take(writes.len() * repeats) {
            formatter.write(TraceId::new(*id).expect("a trace source's ID"), bytes, &mut input);
        }
        formatter.flush(&mut input);
        for (at, lost, noise) in damage {
            let at = at % (input.len() + 1);
            input.splice(at..input.len().min(at + lost), noise);
        }
        let framing = if options.full_sync_every.is_some() { Framing::Port } else { Framing::Buffer };
        assert_indexed_as_deframed(framing, length, &input);
    }
}

/// Frames of two sources, with a source's byte for each number.
fn two_sources(bytes: usize) -> Vec<u8> {
    let mut capture = Vec::new();
    let mut formatter = Formatter::new(FormatterOptions::default());
    for number in 0..bytes {
        let id = TraceId::new(if number % 40 < 23 { 0x10 } else { 0x11 }).expect("a trace source's ID");
        formatter.write(id, &[[0x84, 0x88, 0x41, 0x57][number % 4]], &mut capture);
    }
    formatter.flush(&mut capture);
    capture
}

#[test]
fn sound_frames_are_sections_of_frames_and_damage_is_in_one_of_its_own() {
    let mut capture = two_sources(100_000);
    let sound = index(Framing::Buffer, 4096, &capture, &[]);
    let sections = sound.sections().len();
    assert_eq!(sections, capture.len().div_ceil(4096));
    assert_eq!(assert_as_deframed(Framing::Buffer, &capture, &sound), sections);
    capture.drain(50_000..50_003);
    let damaged = index(Framing::Buffer, 4096, &capture, &[]);
    let of_frames = assert_as_deframed(Framing::Buffer, &capture, &damaged);
    assert_eq!((damaged.sections().len(), of_frames), (sections, sections - 1));
}

#[test]
fn sections_become_longer_where_they_would_become_too_many() {
    let capture = two_sources(150_000);
    let index = index(Framing::Buffer, 4, &capture, &[]);
    assert!(index.sections().len() < 1 << 14, "{}", index.sections().len());
    assert_as_deframed(Framing::Buffer, &capture, &index);
}

#[test]
fn what_is_damaged_in_too_many_places_is_one_section_from_there_on() {
    let mut capture = two_sources(200_000);
    for barrier in (0..600).rev() {
        let at = barrier * 320;
        capture.splice(at..at, FSYNC.repeat(4));
    }
    let index = index(Framing::Buffer, 64, &capture, &[]);
    let of_frames = assert_as_deframed(Framing::Buffer, &capture, &index);
    let mixed = index.sections().len() - of_frames;
    assert_eq!(mixed, 256);
}

#[test]
fn frames_of_several_parts_are_those_of_each_part() {
    let [one, other] = [0x10, 0x11].map(|id| TraceId::new(id).unwrap());
    let part = |seed: u8, damaged: bool| {
        let mut frames = Vec::new();
        let mut formatter = Formatter::new(FormatterOptions::default());
        for round in 0..40 {
            formatter.write(one, &[seed.wrapping_add(round); 21], &mut frames);
            formatter.write(other, &[seed.wrapping_mul(round); 9], &mut frames);
        }
        formatter.flush(&mut frames);
        if damaged {
            frames.drain(200..211);
        }
        frames
    };
    // More damaged parts than the deframers that are kept, in another order than in the capture.
    let parts = (0..300)
        .map(|seed: u16| part(u8::try_from(seed % 256).unwrap_or_default(), seed % 7 != 3))
        .collect::<Vec<_>>();
    let mut capture = Vec::from([0xa5; 37]);
    let mut starts = Vec::new();
    for part in &parts {
        starts.push(capture.len());
        capture.extend(part);
        capture.extend([0xff; 5]);
    }
    for length in [64, 1 << 16] {
        let mut indexer = Indexer::with_sections(Framing::Buffer, length);
        let mut record = Record::default();
        for (start, part) in starts.iter().zip(&parts).rev() {
            indexer.skip_to(CaptureOffset(*start as u64), &mut record);
            indexer.push(part, &mut record);
        }
        let (index, account, _) = indexer.finish(&mut record);
        assert_eq!(account.total(), parts.iter().map(|part| part.len() as u64).sum::<u64>());
        assert!(index.has_gaps());
        for id in [one, other] {
            let mut expected = Source(id, Vec::new());
            for (start, part) in starts.iter().zip(&parts).rev() {
                let at = CaptureOffset(*start as u64);
                let cause = Cause::Barrier;
                expected.1.push(Event::Loss(Discontinuity { at, bytes: 0, cause }));
                let mut alone = Source(id, Vec::new());
                let mut deframer = RecoveringDeframer::new(Framing::Buffer);
                deframer.push(part, &mut alone);
                deframer.finish(&mut alone);
                expected.1.extend(alone.1.into_iter().map(|event| match event {
                    Event::Byte(at, byte) => Event::Byte(at + *start as u64, byte),
                    Event::Loss(loss) => {
                        let at = CaptureOffset(loss.at.0 + *start as u64);
                        Event::Loss(Discontinuity { at, ..loss })
                    }
                }));
            }
            let mut found = Source(id, Vec::new());
            let mut extraction = index.extraction(id, index.sections());
            while extraction.advance(&capture, &mut found).is_some() {}
            let mut by_sections = Source(id, Vec::new());
            for section in index.sections() {
                let mut extraction = index.extraction(id, section..section + 1);
                while extraction.advance(&capture, &mut by_sections).is_some() {}
            }
            assert!(found.1 == expected.1, "{id} {length}");
            assert!(by_sections.1 == expected.1, "{id} {length} by sections");
            let bytes = expected.1.iter().filter(|event| matches!(event, Event::Byte(..))).count();
            assert_eq!(index.bytes_of(id), bytes as u64);
        }
        let head = index.head(100);
        assert!(head.sections().len() < index.sections().len());
        let beyond = head.sections().end..index.sections().end;
        assert!(beyond.clone().any(|section| index.bytes_in(section, one).is_some()));
        assert!(beyond.into_iter().all(|section| head.bytes_in(section, one).is_none()));
    }
}

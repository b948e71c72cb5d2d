//! Running a source's bytes through its decoder, and what comes out past whoever looks at it.
//!
//! The one place that decides how work is spread over threads: `parallel` cuts a source into segments and puts together
//! what workers found in them. What comes out does not depend on it.

mod cursor;
mod follower;
mod index;
mod itm;
mod parallel;
mod part;
mod segment;

use std::io;
use std::ops::Range;

use tracewalk::flow::Element;
use tracewalk::frame::{
    Cause, Discontinuity, FrameSink, Framing, Index, Owner, Piece, PlaceMap, RecoveringDeframer,
};
use tracewalk::ids::TraceId;
use tracewalk::source::{PacketItem, PacketStream, SourceConfig};
use tracewalk::span::{CaptureOffset, Span, StreamOffset};

pub use cursor::{Cursor, Here, HereInstruction};
pub use follower::Follower;
pub use index::{FlowIndex, Sizes, Totals};
pub use parallel::Spread;
pub use part::Gathered;

use crate::Statistics;
use crate::record::{FlowRecord, PacketRecord};

pub use itm::{ItmRecords, ItmStream};

/// One source's bytes in a capture.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    /// The capture's bytes.
    pub capture: &'a [u8],
    /// How the source's bytes lie in them.
    pub carrier: Carrier,
    /// What comes behind these bytes later. The last stretch goes on into it.
    pub rest: Option<&'a dyn Rest>,
    /// Called now and then with the number of capture bytes that are done.
    pub progress: &'a dyn Progress,
}

/// The part of a capture that is still to come.
pub trait Rest: std::fmt::Debug {
    /// Calls `take` with each piece as it comes, as long as it answers yes and something comes. An error is one of
    /// whoever waits for the results, and ends the work.
    fn each(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Ending>;
}

/// Why nothing comes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The capture ends here: a packet that is cut is damaged.
    Complete,
    /// Nobody waits any longer: a packet that is cut is not of interest.
    Open,
}

/// How a source's bytes lie in a capture.
#[derive(Clone, Debug)]
pub enum Carrier {
    /// In frames, with other sources' bytes between them.
    Frames {
        /// What stands between the frames.
        framing: Framing,
        /// Which bytes are the source's.
        id: TraceId,
    },
    /// In frames of which it is known where they are.
    Indexed {
        /// Where they are in this capture.
        index: Index,
        /// Which bytes are the source's.
        id: TraceId,
    },
    /// As stretches of the capture, in the order in which the source made them.
    Stretches(Vec<Stretch>),
}

/// A part of a capture that holds nothing but one source's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Which bytes of the capture; what lies outside is left out.
    pub bytes: Range<usize>,
    /// Whether the source made the first byte directly after the last one of the stretch before.
    pub continues: bool,
}

impl Stretch {
    /// A capture of so many bytes that is nothing but one source's.
    #[must_use]
    pub const fn all(bytes: usize) -> Self {
        Self { bytes: 0..bytes, continues: false }
    }

    /// Whether no byte of this capture is in it.
    fn is_empty_in(&self, capture: &[u8]) -> bool {
        self.bytes.start >= self.bytes.end.min(capture.len())
    }
}

/// Somebody who wants to know how far the work has come.
pub trait Progress: std::fmt::Debug {
    /// So many of the capture's bytes are done. Answers whether the work goes on; where it does not, what was found up to
    /// there is handed on as if nobody waited for more.
    fn done(&self, bytes: u64) -> bool;
}

/// Nobody does.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn done(&self, _bytes: u64) -> bool {
        true
    }
}

impl<'a> Input<'a> {
    /// The first `bytes` bytes of what is there of the capture, or all of that.
    #[must_use]
    pub fn head(self, bytes: usize) -> Self {
        let Some(capture) = self.capture.get(..bytes) else {
            return Self { rest: None, progress: &NoProgress, ..self };
        };
        // The index is of the whole.
        let carrier = match self.carrier {
            Carrier::Indexed { index, id } => Carrier::Frames { framing: index.framing(), id },
            other => other,
        };
        Self { capture, carrier, rest: None, progress: &NoProgress }
    }

    /// Decodes the source's packets and calls `look` with each. The first error of `look` ends the work.
    pub fn packets<F>(&self, config: &SourceConfig, look: F) -> io::Result<Statistics>
    where
        F: FnMut(PacketRecord<'_>) -> io::Result<()>,
    {
        let mut work = PacketWork {
            stream: PacketStream::new(config),
            places: PlaceMap::new(),
            look: Look::new(look),
            statistics: Statistics::default(),
        };
        let ending = self.feed(&mut work)?;
        let PacketWork { mut stream, mut places, mut look, mut statistics } = work;
        statistics.bytes = places.end().0;
        if ending == Ending::Open {
            stream.forget_incomplete();
        }
        stream.finish(&mut |item, span, bytes| {
            note_packet(&mut statistics, item);
            look.packet(item, span, bytes, &mut places);
        });
        look.end(statistics)
    }

    /// Calls `sink` with the source's bytes, piece by piece.
    fn feed(&self, sink: &mut impl Take) -> io::Result<Ending> {
        match &self.carrier {
            &Carrier::Frames { framing, id } => {
                let mut deframer = RecoveringDeframer::new(framing);
                let mut only = OnlySource { id, sink, bytes: Vec::new() };
                let mut push = |chunk: &[u8]| {
                    deframer.push(chunk, &mut only);
                    only.hand_on();
                    !only.sink.has_failed()
                };
                let goes_on = self.chunks(0..self.capture.len(), |_, chunk| push(chunk));
                let ending = self.each_of_rest(goes_on, |_, chunk| push(chunk))?;
                deframer.finish(&mut only);
                only.hand_on();
                Ok(ending)
            }
            Carrier::Indexed { index, id } => {
                let mut extraction = index.extraction(*id, index.sections());
                let mut only = OnlySource { id: *id, sink, bytes: Vec::new() };
                let mut goes_on = true;
                while goes_on && let Some(done) = extraction.advance(self.capture, &mut only) {
                    only.hand_on();
                    goes_on = !only.sink.has_failed() && self.progress.done(done);
                }
                Ok(if goes_on { Ending::Complete } else { Ending::Open })
            }
            Carrier::Stretches(stretches) => {
                let mut is_cut = false;
                let goes_on = stretches.iter().all(|stretch| {
                    is_cut |= !stretch.continues;
                    if stretch.is_empty_in(self.capture) {
                        return true;
                    }
                    if std::mem::take(&mut is_cut) && sink.places().end().0 > 0 {
                        sink.interrupt(Interruption::Cut);
                    }
                    self.chunks(stretch.bytes.clone(), |at, chunk| sink.take_contiguous(at, chunk))
                });
                self.each_of_rest(goes_on, |at, chunk| sink.take_contiguous(at, chunk))
            }
        }
    }

    /// Calls `work` with what comes behind the capture's bytes, as long as it goes on.
    fn each_of_rest(
        &self,
        goes_on: bool,
        mut work: impl FnMut(CaptureOffset, &[u8]) -> bool,
    ) -> io::Result<Ending> {
        if !goes_on {
            return Ok(Ending::Open);
        }
        let Some(rest) = self.rest else { return Ok(Ending::Complete) };
        let mut at = CaptureOffset(self.capture.len() as u64);
        rest.each(&mut |chunk| {
            let goes_on = work(at, chunk);
            at.0 += chunk.len() as u64;
            goes_on && self.progress.done(at.0)
        })
    }

    /// Calls `work` with a part of the capture, chunk by chunk, as long as it answers yes and the work goes on. Answers
    /// whether it does.
    fn chunks(&self, part: Range<usize>, mut work: impl FnMut(CaptureOffset, &[u8]) -> bool) -> bool {
        let mut at = CaptureOffset(part.start as u64);
        let end = part.end.min(self.capture.len());
        self.capture.get(part.start..end).unwrap_or_default().chunks(CHUNK).all(|chunk| {
            let goes_on = work(at, chunk);
            at.0 += chunk.len() as u64;
            goes_on && self.progress.done(at.0)
        })
    }
}

/// How many bytes are worked on between two reports of progress: few, because whoever counts memory finds out there.
const CHUNK: usize = 1 << 15;

/// How far an element may lie behind the newest byte. The decoder holds back at most a gap of 4 KiB.
const WINDOW: u64 = 1 << 16;

/// Why a source's bytes do not continue those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// The trace was cut there on purpose.
    Cut,
    /// Bytes were lost, and others may be wrong.
    Loss,
}

impl Interruption {
    /// What a discontinuity of the frames is to a source that had bytes before it.
    fn of(discontinuity: &Discontinuity) -> Option<Self> {
        match discontinuity.cause {
            // Before the source's first byte there is nothing to lose.
            Cause::Start => None,
            Cause::Barrier => Some(Self::Cut),
            Cause::MisplacedSync | Cause::ImpossibleId | Cause::Shifted { .. } | Cause::NoFrames => {
                Some(Self::Loss)
            }
        }
    }
}

/// Something that takes one source's bytes.
trait Take {
    fn places(&mut self) -> &mut PlaceMap;

    /// Takes the next bytes; `places` knows them already.
    fn take(&mut self, bytes: &[u8]);

    /// The next bytes do not continue those before.
    fn interrupt(&mut self, why: Interruption);

    fn has_failed(&self) -> bool;

    /// Takes the next bytes, which stand at this place and one behind the other; answers whether it wants more.
    fn take_contiguous(&mut self, at: CaptureOffset, bytes: &[u8]) -> bool {
        self.places().append_contiguous(at, bytes.len() as u64);
        self.take(bytes);
        !self.has_failed()
    }
}

/// Hands on one source's bytes of a formatted capture.
struct OnlySource<'a, S> {
    id: TraceId,
    sink: &'a mut S,
    /// What came and is not handed on yet: pieces are short, and there are many.
    bytes: Vec<u8>,
}

impl<S: Take> OnlySource<'_, S> {
    fn hand_on(&mut self) {
        let places = self.sink.places();
        places.trim(StreamOffset(places.end().0.saturating_sub(WINDOW + self.bytes.len() as u64)));
        self.sink.take(&self.bytes);
        self.bytes.clear();
    }
}

impl<S: Take> FrameSink for OnlySource<'_, S> {
    #[inline]
    fn data(&mut self, owner: Owner, piece: Piece<'_>) {
        if owner.trace_id() == Some(self.id) {
            self.sink.places().append(piece);
            piece.append_to(&mut self.bytes);
        }
    }

    fn discontinuity(&mut self, discontinuity: Discontinuity) {
        if let (Some(why), true) = (Interruption::of(&discontinuity), self.sink.places().end().0 > 0) {
            self.hand_on();
            self.sink.interrupt(why);
        }
    }
}

/// Whoever looks at records, up to the first error.
struct Look<F> {
    look: F,
    failed: Option<io::Error>,
    /// The last place of an item with bytes of its own, for those without at the end.
    last: CaptureOffset,
}

impl<F> Look<F> {
    const fn new(look: F) -> Self {
        Self { look, failed: None, last: CaptureOffset(0) }
    }

    fn locate(&mut self, span: Span, places: &mut PlaceMap) -> CaptureOffset {
        // Where the next byte stands, that a loss is in front of, may not be known yet.
        let place = if span.end > span.start { places.locate(span.start) } else { None };
        self.last = place.unwrap_or(self.last);
        self.last
    }

    fn end(self, statistics: Statistics) -> io::Result<Statistics> {
        self.failed.map_or(Ok(statistics), Err)
    }
}

impl<F: FnMut(FlowRecord) -> io::Result<()>> Look<F> {
    fn flow(&mut self, element: Element, places: &mut PlaceMap) {
        if self.failed.is_none() {
            let last = self.last;
            let at = self.locate(element.span(), places);
            if let Element::Proof(_) = element {
                // Nothing happened there.
                self.last = last;
            }
            self.failed = (self.look)(FlowRecord { element, at }).err();
        }
    }
}

impl<F: FnMut(PacketRecord<'_>) -> io::Result<()>> Look<F> {
    fn packet(&mut self, content: PacketItem<'_>, span: Span, bytes: &[u8], places: &mut PlaceMap) {
        if self.failed.is_none() {
            let at = self.locate(span, places);
            self.failed = (self.look)(PacketRecord { content, at, bytes }).err();
        }
    }
}

struct PacketWork<F> {
    stream: PacketStream,
    places: PlaceMap,
    look: Look<F>,
    statistics: Statistics,
}

impl<F: FnMut(PacketRecord<'_>) -> io::Result<()>> Take for PacketWork<F> {
    fn places(&mut self) -> &mut PlaceMap {
        &mut self.places
    }

    fn take(&mut self, bytes: &[u8]) {
        let Self { stream, places, look, statistics } = self;
        stream.push(bytes, &mut |item, span, bytes| {
            note_packet(statistics, item);
            look.packet(item, span, bytes, places);
        });
    }

    fn interrupt(&mut self, _: Interruption) {
        let Self { stream, places, look, statistics } = self;
        stream.lose_sync(&mut |item, span, bytes| {
            note_packet(statistics, item);
            look.packet(item, span, bytes, places);
        });
    }

    fn has_failed(&self) -> bool {
        self.look.failed.is_some()
    }
}

const fn note_packet(statistics: &mut Statistics, item: PacketItem<'_>) {
    match item {
        PacketItem::Packet(_) => statistics.packets += 1,
        PacketItem::Malformed(_) => statistics.malformed += 1,
        PacketItem::Unsynchronised => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::frame::{Formatter, FormatterOptions, Indexer};
    use tracewalk::program::Program;
    use tracewalk::protocol::etmv3;

    /// A-sync, I-sync at 0x100 in Thumb, and packets of one executed instruction each.
    const SOURCE: [u8; 15] = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84, 0x84];

    fn config() -> SourceConfig {
        SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").unwrap())
    }

    /// Name, place and size of each packet.
    fn packets(capture: &[u8], carrier: Carrier) -> Vec<(String, u64, usize)> {
        let mut found = Vec::new();
        let input = Input { capture, carrier, rest: None, progress: &NoProgress };
        let statistics = input.packets(&config(), |record| {
            let name = match record.content {
                PacketItem::Packet(packet) => packet.name(),
                PacketItem::Malformed(_) => "malformed",
                PacketItem::Unsynchronised => "unsynced",
            };
            found.push((name.to_owned(), record.at.0, record.bytes.len()));
            Ok(())
        });
        let bytes = found.iter().map(|(.., bytes)| *bytes as u64).sum::<u64>();
        assert_eq!(statistics.unwrap().bytes, bytes);
        found
    }

    #[test]
    fn packets_stand_where_their_first_byte_stands_in_the_capture() {
        let id = TraceId::new(2).unwrap();
        let mut capture = Vec::new();
        let mut formatter = Formatter::new(FormatterOptions::default());
        formatter.write(id, &SOURCE, &mut capture);
        formatter.flush(&mut capture);
        let found = packets(&capture, Carrier::Frames { framing: Framing::Buffer, id });
        for (name, at, _) in &found {
            let first = capture[usize::try_from(*at).unwrap()];
            let expected = match name.as_str() {
                "a_sync" => 0,
                "i_sync" => 0x08,
                _ => 0x84,
            };
            assert_eq!(first, expected, "{name} at {at}");
        }
        assert_eq!(found.len(), 5);
    }

    /// The part of a capture behind its first bytes, in pieces of one byte.
    #[derive(Debug)]
    struct Later<'a>(&'a [u8], Ending);

    impl Rest for Later<'_> {
        fn each(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Ending> {
            let _ = self.0.chunks(1).all(take);
            Ok(self.1)
        }
    }

    /// Takes nothing.
    struct Nobody;

    impl FrameSink for Nobody {
        fn data(&mut self, _: Owner, _: Piece<'_>) {}
        fn discontinuity(&mut self, _: Discontinuity) {}
    }

    #[test]
    fn it_makes_no_difference_whether_it_is_known_where_frames_are() {
        let [id, other] = [2, 3].map(|id| TraceId::new(id).unwrap());
        let mut capture = Vec::new();
        let mut formatter = Formatter::new(FormatterOptions::default());
        for round in 0..100 {
            formatter.write(id, &SOURCE, &mut capture);
            formatter.write(other, &SOURCE[..round % 15], &mut capture);
        }
        formatter.flush(&mut capture);
        for barrier in [0, 640, 1280] {
            capture.splice(barrier..barrier, [0xff, 0xff, 0xff, 0x7f].repeat(4));
        }
        let expected = packets(&capture, Carrier::Frames { framing: Framing::Buffer, id });
        assert!(expected.len() > 400, "{}", expected.len());
        for length in [1, 16, 333, 1 << 16] {
            let mut indexer = Indexer::with_sections(Framing::Buffer, length);
            indexer.push(&capture, &mut Nobody);
            let (index, ..) = indexer.finish(&mut Nobody);
            assert_eq!(packets(&capture, Carrier::Indexed { index, id }), expected);
        }
    }

    /// The places of the packets, or the error of a capture of which this much is there and the rest comes later.
    fn packets_later(capture: &[u8], carrier: &Carrier, there: usize, ending: Ending) -> Vec<(String, u64)> {
        let (head, rest) = capture.split_at(there);
        let rest = Later(rest, ending);
        let input =
            Input { capture: head, carrier: carrier.clone(), rest: Some(&rest), progress: &NoProgress };
        let mut found = Vec::new();
        let statistics = input.packets(&config(), |record| {
            let name = match record.content {
                PacketItem::Packet(packet) => packet.name(),
                PacketItem::Malformed(_) => "malformed",
                PacketItem::Unsynchronised => "unsynced",
            };
            found.push((name.to_owned(), record.at.0));
            Ok(())
        });
        assert!(statistics.is_ok());
        found
    }

    #[test]
    fn what_comes_later_is_decoded_as_if_it_had_been_there() {
        let id = TraceId::new(2).unwrap();
        let mut framed = Vec::new();
        let mut formatter = Formatter::new(FormatterOptions::default());
        formatter.write(id, &SOURCE, &mut framed);
        formatter.flush(&mut framed);
        let all = [
            (framed.clone(), Carrier::Frames { framing: Framing::Buffer, id }),
            (SOURCE.to_vec(), Carrier::Stretches(vec![Stretch::all(0)])),
        ];
        for (capture, carrier) in all {
            let whole = packets_later(&capture, &carrier, 0, Ending::Complete);
            assert_eq!(whole.len(), 5);
            for there in 0..=capture.len() {
                let carrier = match &carrier {
                    Carrier::Stretches(_) => Carrier::Stretches(vec![Stretch::all(there)]),
                    frames => frames.clone(),
                };
                assert_eq!(packets_later(&capture, &carrier, there, Ending::Complete), whole);
            }
        }
    }

    #[test]
    fn a_packet_that_is_cut_is_malformed_unless_nobody_waits_for_its_rest() {
        let carrier = Carrier::Stretches(vec![Stretch::all(0)]);
        let names = |ending| {
            let found = packets_later(&SOURCE[..10], &carrier, 0, ending);
            found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(Ending::Complete), ["a_sync", "malformed"]);
        assert_eq!(names(Ending::Open), ["a_sync"]);
    }

    #[test]
    fn whoever_waits_may_end_the_work() {
        #[derive(Debug)]
        struct Broken;
        impl Rest for Broken {
            fn each(&self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Ending> {
                assert!(take(&SOURCE));
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let carrier = Carrier::Stretches(vec![Stretch::all(0)]);
        let input = Input { capture: &[], carrier, rest: Some(&Broken), progress: &NoProgress };
        let error = input.packets(&config(), |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        // The first error of `look` ends it as well.
        let later = Later(&SOURCE, Ending::Complete);
        let input = Input { rest: Some(&later), ..input };
        let mut looked = 0;
        let error = input.packets(&config(), |_| {
            looked += 1;
            Err(io::ErrorKind::Other.into())
        });
        assert_eq!((error.unwrap_err().kind(), looked), (io::ErrorKind::Other, 1));
    }

    #[test]
    fn stretches_are_joined_only_where_they_continue() {
        // The I-sync is cut in two.
        let (first, second) = (0..8, 8..15);
        let joined = |continues| {
            Carrier::Stretches(vec![
                Stretch { bytes: first.clone(), continues: false },
                Stretch { bytes: second.clone(), continues },
            ])
        };
        let names =
            |carrier| packets(&SOURCE, carrier).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
        assert_eq!(names(joined(true)), ["a_sync", "i_sync", "p_header", "p_header", "p_header"]);
        assert_eq!(names(joined(false)), ["a_sync", "malformed", "unsynced"]);
        // What lies outside the capture is left out.
        assert_eq!(
            names(Carrier::Stretches(vec![Stretch { bytes: 10..99, continues: false }])),
            ["unsynced"]
        );
    }

    #[test]
    fn where_trace_was_cut_on_purpose_nothing_is_in_doubt() {
        const BARRIER: [u8; 16] =
            [0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f];
        let id = TraceId::new(2).unwrap();
        let mut frames = Vec::new();
        let mut formatter = Formatter::new(FormatterOptions::default());
        formatter.write(id, &SOURCE, &mut frames);
        formatter.flush(&mut frames);
        let framed = [&frames[..], &BARRIER, &frames].concat();
        let twice = SOURCE.repeat(2);
        let stretches = [0..SOURCE.len(), SOURCE.len()..twice.len()];
        let stretches = stretches.map(|bytes| Stretch { bytes, continues: false }).to_vec();
        let mut program = Program::new();
        program.add(tracewalk::ids::Address::new(0x100), &[0; 16]).unwrap();
        for (capture, carrier) in [
            (framed, Carrier::Frames { framing: Framing::Buffer, id }),
            (twice, Carrier::Stretches(stretches)),
        ] {
            let input = Input { capture: &capture, carrier, rest: None, progress: &NoProgress };
            let mut gaps = Vec::new();
            let mut note = |element: &Element| {
                if let Element::Gap(gap) = element {
                    gaps.push((gap.reason, gap.doubt));
                }
            };
            let config = config();
            let mut follower = Follower::new(&config, &program);
            // What it learned before makes no difference.
            follower.flow(&input.clone().head(20), |_| Ok(())).unwrap();
            let in_order = follower.flow(&input, |record| {
                note(&record.element);
                Ok(())
            });
            assert_eq!(in_order.unwrap().instructions, 6);
            let mut found = crate::Gaps::default();
            let take = |part: Gathered<()>| {
                assert_eq!(part.doubts, crate::Doubts::default());
                assert!(!part.doubting.is_open());
                found.add_part(&part.gaps, |at| at);
                Ok(())
            };
            follower.flow_parts(&input, Spread::over(1), &(), take).unwrap();
            assert_eq!(found.trace_lost.count, 1);
            assert_eq!(gaps, [(tracewalk::flow::GapReason::TraceLost, false)]);
        }
    }

    #[test]
    fn the_first_error_ends_the_work() {
        let carrier = Carrier::Stretches(vec![Stretch::all(SOURCE.len())]);
        let input = Input { capture: &SOURCE, carrier, rest: None, progress: &NoProgress };
        let mut seen = 0;
        let result = input.packets(&config(), |_| {
            seen += 1;
            if seen == 2 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
        });
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(seen, 2);
    }

    #[test]
    fn empty_stretches_are_the_same_in_order_and_in_parts() {
        let half = SOURCE.len() / 2;
        let stretch = |bytes: Range<usize>, continues| Stretch { bytes, continues };
        let cases = [
            (vec![stretch(0..15, false), stretch(15..15, false)], false),
            (vec![stretch(0..15, false), stretch(15..40, false)], false),
            (vec![stretch(0..half, false), stretch(3..3, false), stretch(half..15, true)], true),
            (vec![stretch(0..half, false), stretch(3..3, true), stretch(half..15, true)], false),
            (vec![stretch(0..0, false), stretch(0..half, true), stretch(half..15, true)], false),
        ];
        for (stretches, is_cut) in cases {
            let carrier = Carrier::Stretches(stretches.clone());
            let input = Input { capture: &SOURCE, carrier, rest: None, progress: &NoProgress };
            let (config, program) = (config(), Program::new());
            let in_order = Follower::new(&config, &program).flow(&input, |_| Ok(())).unwrap();
            let mut in_parts = Statistics::default();
            let mut follower = Follower::new(&config, &program);
            let add = |part: Gathered<()>| {
                in_parts.add(&part.statistics);
                Ok(())
            };
            follower.flow_parts(&input, Spread::over(1), &(), add).unwrap();
            assert_eq!(in_order, in_parts, "{stretches:?}");
            let whole = Input { carrier: Carrier::Stretches(vec![Stretch::all(15)]), ..input };
            let whole = Follower::new(&config, &program).flow(&whole, |_| Ok(())).unwrap();
            assert_eq!(in_order != whole, is_cut, "{stretches:?}");
        }
    }
}

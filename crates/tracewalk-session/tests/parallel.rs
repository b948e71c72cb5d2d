//! Threads find the same elements as one thread: for every number of threads, every way to cut, intact and damaged trace.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use tracewalk::flow::{Element, Passage};
use tracewalk::frame::{Discontinuity, FrameSink, Framing, Indexer, Owner, Piece, RecoveringDeframer};
use tracewalk::ids::TraceId;
use tracewalk::source::SourceConfig;
use tracewalk::span::{CaptureOffset, StreamOffset};
use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Spread, Stretch};
use tracewalk_analysis::sink::Part;
use tracewalk_analysis::{Doubts, Gaps, Statistics};
use tracewalk_input::capture::Container;
use tracewalk_session::{Notices, Request, Session};

use crate::support::{corpus, example};

/// A source of a capture.
struct Source {
    name: String,
    capture: Vec<u8>,
    carrier: Carrier,
    config: SourceConfig,
    code: Arc<tracewalk_analysis::Code>,
}

/// Ignores the content of the frames.
struct Nobody;

impl FrameSink for Nobody {
    fn data(&mut self, _: Owner, _: Piece<'_>) {}
    fn discontinuity(&mut self, _: Discontinuity) {}
}

/// All elements of a part, unchanged.
#[derive(Clone, Debug)]
struct Elements {
    elements: Vec<(Element, CaptureOffset)>,
}

impl Part for Elements {
    fn element(&mut self, element: &Element, at: impl FnOnce() -> CaptureOffset) {
        self.elements.push((*element, at()));
    }

    fn passage(&mut self, passage: &Passage<'_>, mut at: impl FnMut(StreamOffset) -> CaptureOffset) {
        self.elements.extend(passage.elements().map(|element| (element, at(element.span().start))));
    }
}

/// Everything that decoding found.
#[derive(Debug, PartialEq)]
struct Found {
    elements: Vec<(Element, CaptureOffset)>,
    statistics: Statistics,
    gaps: Vec<String>,
    doubts: Doubts,
}

impl Source {
    /// The sources of a description.
    fn all(path: &Path) -> Vec<Self> {
        let (mut session, _) = Session::open(Request::new(path)).expect("the capture is readable");
        let each = session.sources().to_vec().into_iter().map(|source| {
            let capture = session.input(&source, &NoProgress).capture.to_vec();
            let framed = session.contents()[source.buffer].container.value == Container::Frames;
            let carrier = match source.id.filter(|_| framed) {
                Some(id) => Carrier::Frames { framing: Framing::Buffer, id },
                None => Carrier::Stretches(vec![Stretch::all(capture.len())]),
            };
            let code = session.code(&source, None, &Notices::default()).expect("the image is readable");
            let name = format!("{} {:?}", path.display(), source.id);
            Self { name, capture, carrier, config: source.config, code }
        });
        each.collect()
    }

    /// The source's own bytes in some frames, as a capture.
    fn raw(&self, capture: &[u8]) -> Self {
        struct Only(Option<TraceId>, Vec<u8>);
        impl FrameSink for Only {
            fn data(&mut self, owner: Owner, piece: Piece<'_>) {
                if owner.trace_id() == self.0 {
                    self.1.extend_from_slice(piece.bytes);
                }
            }
            fn discontinuity(&mut self, _: Discontinuity) {}
        }
        let id = if let Carrier::Frames { id, .. } = self.carrier { Some(id) } else { None };
        let mut only = Only(id, Vec::new());
        let mut deframer = RecoveringDeframer::new(Framing::Buffer);
        deframer.push(capture, &mut only);
        deframer.finish(&mut only);
        let carrier = Carrier::Stretches(vec![Stretch::all(usize::MAX)]);
        let (config, code) = (self.config.clone(), Arc::clone(&self.code));
        Self { name: format!("{} without frames", self.name), capture: only.1, carrier, config, code }
    }

    fn input<'a>(&'a self, capture: &'a [u8], carrier: Carrier) -> Input<'a> {
        Input { capture, carrier, rest: None, progress: &NoProgress }
    }

    fn found(&self, input: &Input<'_>, spread: Spread) -> Found {
        let (mut elements, mut statistics, mut gaps) = (Vec::new(), Statistics::default(), Gaps::default());
        let mut doubts = Doubts::default();
        let empty = Elements { elements: Vec::new() };
        Follower::new(&self.config, &self.code.program)
            .flow_parts(input, spread, &empty, |part| {
                elements.extend(part.part.elements);
                statistics.add(&part.statistics);
                gaps.add_part(&part.gaps, |at| at);
                doubts.add_part(&part.doubts, |at| at);
                Ok(())
            })
            .expect("nobody stops it");
        let Gaps { no_code, undecodable, address_unknown, contradictions, trace_lost, cuts } = gaps;
        let gaps = vec![
            format!("{no_code:?}"),
            format!("{undecodable:?}"),
            format!("{address_unknown:?}"),
            format!("{contradictions:?}"),
            format!("{trace_lost:?}"),
            format!("{cuts}"),
        ];
        Found { elements, statistics, gaps, doubts }
    }

    /// Checks that `threads` find in `segments` of a number of bytes the same as one thread finds in one piece.
    fn check(&self, capture: &[u8], threads: &[usize], segments: &[usize]) {
        let input = self.input(capture, self.carrier.clone());
        let whole = self.found(&input, Spread { threads: 1, segment: usize::MAX });
        let mut in_order = Vec::new();
        let statistics = input.flow(&self.config, &self.code.program, |record| {
            in_order.push((record.element, record.at));
            Ok(())
        });
        assert!(in_order == whole.elements, "{}: in order", self.name);
        assert_eq!(statistics.expect("nobody stops it"), whole.statistics, "{}: in order", self.name);
        let carriers = std::iter::once(("", self.carrier.clone())).chain(self.indexed(capture));
        for (how, carrier) in carriers {
            let input = self.input(capture, carrier);
            for &threads in threads {
                for &segment in segments {
                    let parts = self.found(&input, Spread { threads, segment });
                    let what = format!("{}{how}: {threads} threads, segments: {segment}", self.name);
                    same(&parts, &whole, &what);
                }
            }
        }
    }

    /// The same in frames at known places, by shorter sections and by longer ones.
    fn indexed(&self, capture: &[u8]) -> impl Iterator<Item = (&'static str, Carrier)> {
        let source = match self.carrier {
            Carrier::Frames { framing, id } => Some((framing, id)),
            Carrier::Indexed { .. } | Carrier::Stretches(_) => None,
        };
        let index = move |framing, bytes| {
            let mut indexer = Indexer::with_sections(framing, bytes);
            indexer.push(capture, &mut Nobody);
            indexer.finish(&mut Nobody).0
        };
        let lengths = [(", indexed by 500", 500), (", indexed", 1 << 16)];
        source.into_iter().flat_map(move |(framing, id)| {
            lengths.map(|(how, bytes)| (how, Carrier::Indexed { index: index(framing, bytes), id }))
        })
    }
}

/// Reports the place at which two results differ, not their whole content.
fn same(found: &Found, expected: &Found, what: &str) {
    let pairs = found.elements.iter().zip(&expected.elements);
    if let Some((index, (found, expected))) =
        pairs.enumerate().find(|(_, (found, expected))| found != expected)
    {
        panic!("{what}: element {index}: found {found:?}, expected {expected:?}");
    }
    assert_eq!(found.elements.len(), expected.elements.len(), "{what}");
    assert_eq!(found.statistics, expected.statistics, "{what}");
    assert_eq!(found.gaps, expected.gaps, "{what}");
    assert_eq!(found.doubts, expected.doubts, "{what}");
}

fn examples() -> Vec<Source> {
    ["m3-etmv3", "a7-etmv3", "a15-pft"].iter().flat_map(|name| Source::all(&example(name))).collect()
}

/// The captures of the corpus that describe themselves.
fn of_corpus() -> Vec<Source> {
    let names = [
        "real/TC2",
        "real/tc2-ptm-rstk-t32",
        "synthetic/mix-a7-etmv3-alternative",
        "synthetic/mix-a7-etmv3-original",
        "synthetic/mix-a9-ptm",
        "synthetic/mix-m3-etmv3",
        "synthetic/mix-m3-etmv3-broadcast",
    ];
    names.iter().flat_map(|name| Source::all(&corpus(name))).collect()
}

#[tracewalk_corpus::test]
fn every_number_of_threads_finds_the_same() {
    for source in examples().iter().chain(&of_corpus()) {
        source.check(&source.capture, &[1, 2, 3, 7], &[300, 1024, 5000, 20_000]);
    }
}

#[tracewalk_corpus::test]
fn captures_that_repeat_are_joined_at_their_repetitions() {
    for source in examples().iter().chain(&of_corpus()) {
        let repeated = source.capture.repeat(5);
        let carrier = match &source.carrier {
            frames @ Carrier::Frames { .. } => frames.clone(),
            Carrier::Indexed { .. } | Carrier::Stretches(_) => {
                Carrier::Stretches(vec![Stretch::all(repeated.len())])
            }
        };
        let source = Source {
            name: format!("{} repeated", source.name),
            capture: Vec::new(),
            carrier,
            config: source.config.clone(),
            code: Arc::clone(&source.code),
        };
        source.check(&repeated, &[3], &[1 << 13, 1 << 15]);
    }
}

#[tracewalk_corpus::test]
fn every_synchronisation_is_a_place_to_cut() {
    const A_SYNC: [u8; 6] = [0, 0, 0, 0, 0, 0x80];
    for source in examples().iter().chain(&of_corpus()) {
        let Carrier::Stretches(_) = source.carrier else { continue };
        let capture = &source.capture;
        let starts = capture.windows(A_SYNC.len()).enumerate().filter(|(_, bytes)| *bytes == A_SYNC);
        let mut cuts = starts.map(|(at, _)| at).filter(|at| *at > 0).collect::<Vec<_>>();
        assert!(cuts.len() > 3, "{}", source.name);
        cuts.push(capture.len());
        let mut start = 0;
        let stretch = |end| Stretch { bytes: std::mem::replace(&mut start, end)..end, continues: true };
        let carrier = Carrier::Stretches(cuts.into_iter().map(stretch).collect());
        let whole = source.input(capture, source.carrier.clone());
        let whole = source.found(&whole, Spread { threads: 1, segment: usize::MAX });
        for threads in [1, 2, 3, 7] {
            let cut = source.input(capture, carrier.clone());
            let cut = source.found(&cut, Spread { threads, segment: usize::MAX });
            same(&cut, &whole, &format!("{}: {threads} threads", source.name));
        }
    }
}

/// An edit of a capture.
#[derive(Clone, Debug)]
enum Edit {
    Set(usize, u8),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
}

fn any_edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Edit::Set(at, byte)),
        (any::<usize>(), 1_usize..40).prop_map(|(at, bytes)| Edit::Remove(at, bytes)),
        (any::<usize>(), proptest::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
    ]
}

fn edited(capture: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut bytes = capture.to_vec();
    for edit in edits {
        if bytes.is_empty() {
            break;
        }
        let at = |at: usize| at % bytes.len().max(1);
        match edit {
            Edit::Set(place, byte) => {
                let at = at(*place);
                bytes[at] = *byte;
            }
            Edit::Remove(place, count) => {
                let at = at(*place);
                bytes.drain(at..(at + count).min(bytes.len() - 1).max(at));
            }
            Edit::Insert(place, inserted) => {
                let at = at(*place);
                bytes.splice(at..at, inserted.iter().copied());
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn damaged_captures_are_no_exception(
        edits in proptest::collection::vec(any_edit(), 1..12),
        start in any::<usize>(),
        threads in 2_usize..8,
        segment in 40_usize..3000,
    ) {
        for source in &examples() {
            let from = start % (source.capture.len() - 2000) / 16 * 16;
            let to = (from + 12_000).min(source.capture.len());
            let capture = edited(&source.capture[from..to], &edits);
            source.check(&capture, &[threads], &[segment]);
            let raw = source.raw(&source.capture[from..to]);
            let capture = edited(&raw.capture, &edits);
            raw.check(&capture, &[threads], &[segment]);
        }
    }
}

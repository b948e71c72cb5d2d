//! Any place of a source's flow, without decoding what stands in front of it.
//!
//! ```text
//! all bytes, once ─▶ FlowIndex: a waypoint every so many bytes: the state of decoder, lowering and flow, and how much came before
//! a place ─▶ the last waypoint in front of it ─▶ Cursor: decodes on from there
//! ```
//!
//! There are at most so many waypoints: with too many every other one goes, so that a large capture takes no more memory.
//! What a [`Cursor`](super::Cursor) shows is what [`Follower::flow`](super::Follower::flow) hands on, in the same order; only
//! [`Element::Proof`] has no step, because nothing happened there.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk::protocol::etmv3;
//! use tracewalk::source::SourceConfig;
//! use tracewalk_analysis::Position;
//! use tracewalk_analysis::drive::{Carrier, FlowIndex, Input, NoProgress, Stretch};
//!
//! let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! // Halfwords that are no branches, at 0x100 and behind.
//! let mut program = Program::new();
//! program.add(Address::new(0x100), &[0x00, 0xbf].repeat(32)).expect("nothing else is there");
//! // A-sync, I-sync at 0x100 in Thumb, and eight packets of one executed instruction each.
//! let mut capture = vec![0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00];
//! capture.extend([0x84; 8]);
//!
//! let carrier = Carrier::Stretches(vec![Stretch::all(capture.len())]);
//! let input = Input { capture: &capture, carrier, rest: None, progress: &NoProgress };
//! let index = FlowIndex::new(&input, &config, &program);
//! assert_eq!(index.totals().instructions, 8);
//!
//! let mut cursor = index.cursor();
//! assert!(cursor.seek(Position::Instructions(5)));
//! let address = |cursor: &tracewalk_analysis::drive::Cursor<'_>| {
//!     cursor.current().and_then(|here| here.instruction).map(|instruction| instruction.location.address)
//! };
//! assert_eq!(address(&cursor), Some(Address::new(0x10a)));
//! assert!(cursor.step_back());
//! assert_eq!(address(&cursor), Some(Address::new(0x108)));
//! ```

use std::collections::VecDeque;
use std::fmt;

use tracewalk::flow::{Element, EventKind};
use tracewalk::frame::{Discontinuity, FrameSink, Indexer, Owner, Piece};
use tracewalk::program::Program;
use tracewalk::source::{Checkpoint, FlowStream, SourceConfig};
use tracewalk::span::StreamOffset;

use super::part::Last;
use super::segment::{CutPlace, Cutter, Segment, Whereabouts};
use super::{Carrier, Input, WINDOW};

/// Where a source's flow can be entered.
#[derive(Clone)]
pub struct FlowIndex<'a> {
    pub(super) capture: &'a [u8],
    pub(super) carrier: Carrier,
    pub(super) config: SourceConfig,
    pub(super) program: &'a Program,
    pub(super) sizes: Sizes,
    /// Ascending; the first one is in front of the first byte.
    pub(super) waypoints: Vec<Waypoint>,
    totals: Totals,
    /// Where the last byte that was decoded is followed by nothing that was.
    pub(super) end: StreamOffset,
    complete: bool,
}

/// How much of a source's flow there is, or stands in front of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Steps: instructions, events and gaps.
    pub steps: u64,
    /// Instructions.
    pub instructions: u64,
    /// Exceptions that were taken.
    pub exceptions: u64,
    /// Cycles that were counted.
    pub cycles: u64,
    /// The greatest timestamp; 0 before the first one.
    pub time: u64,
}

/// How finely a source is divided.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// About how many bytes a segment has.
    pub segment: usize,
    /// About how many bytes a cursor decodes to take one step back.
    pub piece: usize,
    /// How many waypoints there may be.
    pub waypoints: usize,
}

impl Sizes {
    const USUAL: Self = Self { segment: 1 << 16, piece: 1 << 10, waypoints: 1 << 13 };
}

/// A place where decoding can begin.
#[derive(Clone, Debug)]
pub(super) struct Waypoint {
    /// Where the segments begin that are needed to say where its first elements stand in the capture, and how many of them
    /// stand in front of the waypoint.
    pub(super) before: CutPlace,
    pub(super) skipped: usize,
    pub(super) start: StreamOffset,
    pub(super) entry: Entry,
    /// No element in front of it stands behind so many bytes of the capture.
    pub(super) reached: u64,
}

/// All that what comes depends on.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) state: Checkpoint,
    pub(super) last: Last,
    pub(super) before: Totals,
    /// The last [`EventKind::Context`].
    pub(super) context: Option<EventKind>,
}

impl<'a> FlowIndex<'a> {
    /// The index of a source, of which everything is there: what `input` has still to come is left out. Where its progress
    /// ends the work, the index is of what was decoded by then.
    #[must_use]
    pub fn new(input: &Input<'a>, config: &SourceConfig, program: &'a Program) -> Self {
        Self::with_sizes(input, config, program, Sizes::USUAL)
    }

    /// As [`FlowIndex::new`], divided as tests want it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_sizes(input: &Input<'a>, config: &SourceConfig, program: &'a Program, sizes: Sizes) -> Self {
        let mut index = Self {
            capture: input.capture,
            carrier: indexed(input),
            config: config.clone(),
            program,
            sizes,
            waypoints: Vec::new(),
            totals: Totals::default(),
            end: StreamOffset(0),
            complete: true,
        };
        index.fill(input);
        index
    }

    fn fill(&mut self, input: &Input<'a>) {
        let mut cutter = Cutter::new(self.capture, &self.carrier, self.sizes.segment);
        let mut stream = FlowStream::new(&self.config);
        let (mut places, mut last) = (Whereabouts::default(), Last::default());
        let mut counted = Counted::default();
        // The segments that begin no more than a window in front of the next one.
        let mut recent = VecDeque::<(CutPlace, StreamOffset)>::new();
        let (mut segments, mut distance, mut reached) = (0_usize, 1_usize, 0);
        loop {
            let place = cutter.place();
            let Some(cut) = cutter.next() else { break };
            let mut segment = cut.segment();
            let start = segment.start;
            while recent.get(1).is_some_and(|(_, second)| second.0 + WINDOW <= start.0) {
                recent.pop_front();
            }
            recent.push_back((place, start));
            if segments.is_multiple_of(distance) {
                let state = stream.checkpoint(self.program);
                let entry = Entry { state, last, before: counted.totals, context: counted.context };
                let (before, skipped) = (recent[0].0.clone(), recent.len() - 1);
                self.waypoints.push(Waypoint { before, skipped, start, entry, reached });
                if self.waypoints.len() > self.sizes.waypoints {
                    let mut number = 0_usize;
                    self.waypoints.retain(|_| {
                        number += 1;
                        number % 2 == 1
                    });
                    distance *= 2;
                }
            }
            segments += 1;
            places.go_on(segment.take_places());
            let mut sink = |element: Element| {
                counted.element(&element);
                last.element(&element);
            };
            segment.feed(0..segment.bytes.len(), &mut stream, self.program, &mut sink);
            last.settle(&mut places);
            self.end = StreamOffset(start.0 + segment.bytes.len() as u64);
            reached = reached.max(segment.done);
            if !input.progress.done(segment.done) {
                self.complete = false;
                stream.forget_incomplete();
                break;
            }
        }
        stream.finish(self.program, &mut |element: Element| counted.element(&element));
        self.totals = counted.totals;
    }

    /// Everything that a cursor can come to.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether all of the source was decoded.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// In how many places decoding can begin.
    #[must_use]
    pub const fn waypoints(&self) -> usize {
        self.waypoints.len()
    }

    /// The segments of the window that begins at a waypoint, and those in front of it that say where its first elements stand.
    pub(super) fn segments(&self, waypoint: usize) -> (Vec<Segment<'_>>, Vec<Segment<'_>>) {
        let Some(from) = self.waypoints.get(waypoint) else { return (Vec::new(), Vec::new()) };
        let end = self.waypoints.get(waypoint + 1).map_or(self.end, |next| next.start);
        let mut segments = Cutter::at(self.capture, &self.carrier, self.sizes.segment, from.before.clone())
            .map(super::segment::Cut::segment);
        let before = segments.by_ref().take(from.skipped).collect();
        let is_last = waypoint + 1 == self.waypoints.len();
        let window = segments.take_while(|segment| segment.start < end || (is_last && segment.start == end));
        (before, window.collect())
    }
}

impl fmt::Debug for FlowIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config, waypoints, totals, complete, .. } = self;
        f.debug_struct("FlowIndex")
            .field("config", config)
            .field("waypoints", &waypoints.len())
            .field("totals", totals)
            .field("complete", complete)
            .finish_non_exhaustive()
    }
}

/// Counts elements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) totals: Totals,
    pub(super) context: Option<EventKind>,
}

impl Counted {
    pub(super) fn element(&mut self, element: &Element) {
        self.totals.steps += steps(element);
        match element {
            Element::Block(block) => self.totals.instructions += u64::from(block.instructions),
            Element::Event(event) => match event.kind {
                EventKind::Exception { .. } => self.totals.exceptions += 1,
                EventKind::Cycles(cycles) => self.totals.cycles = self.totals.cycles.saturating_add(cycles),
                EventKind::Timestamp(time) => self.totals.time = self.totals.time.max(time),
                EventKind::Context { .. } => self.context = Some(event.kind),
                _ => {}
            },
            Element::Gap(_) | Element::Proof(_) => {}
        }
    }
}

/// How many steps an element has.
pub(super) fn steps(element: &Element) -> u64 {
    match element {
        Element::Block(block) => block.instructions.into(),
        Element::Event(_) | Element::Gap(_) => 1,
        Element::Proof(_) => 0,
    }
}

/// How the source's bytes lie in the capture, with where frames are found out.
fn indexed(input: &Input<'_>) -> Carrier {
    /// What is in the frames is of no interest yet.
    struct Nobody;
    impl FrameSink for Nobody {
        fn data(&mut self, _: Owner, _: Piece<'_>) {}
        fn discontinuity(&mut self, _: Discontinuity) {}
    }
    match &input.carrier {
        &Carrier::Frames { framing, id } => {
            let mut indexer = Indexer::new(framing);
            indexer.push(input.capture, &mut Nobody);
            let (index, ..) = indexer.finish(&mut Nobody);
            Carrier::Indexed { index, id }
        }
        other => other.clone(),
    }
}

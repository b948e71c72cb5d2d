//! Access to any place of a source's flow, without decoding everything before it.
//!
//! ```text
//! all bytes, once ─▶ FlowIndex: a waypoint at regular distances: the state of decoder, lowering and flow, and the totals before it
//! a place ─▶ the last waypoint before it ─▶ Cursor: decodes on from there
//! ```
//!
//! The number of waypoints is bounded: when there are too many, every other one is dropped, so that a large capture takes no more
//! memory. A [`Cursor`](super::Cursor) shows the elements of [`Follower::flow`](super::Follower::flow) in the same order. Only
//! [`Element::Proof`] has no step, because nothing happens there.
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
//! // Halfwords that are no branches, at 0x100 and after.
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

use std::cell::Cell;
use std::collections::VecDeque;
use std::{fmt, io};

use serde::{Deserialize, Serialize};
use tracewalk::flow::{Element, EventKind, Passage};
use tracewalk::frame::{Discontinuity, FrameSink, Indexer, Owner, Piece};
use tracewalk::program::Program;
use tracewalk::source::{Checkpoint, SourceConfig};
use tracewalk::span::{CaptureOffset, StreamOffset};

use super::parallel::{Begun, TakeParts};
use super::part::{Gathered, Last};
use super::segment::{CutPlace, Cutter, Segment};
use super::{Carrier, Follower, Input, Progress, Spread, WINDOW};
use crate::call_stack::keep_every_other;
use crate::sink::Part;

/// The places where a source's flow can be entered.
#[derive(Clone)]
pub struct FlowIndex<'a> {
    pub(super) capture: &'a [u8],
    pub(super) carrier: Carrier,
    pub(super) config: SourceConfig,
    pub(super) program: &'a Program,
    pub(super) sizes: Sizes,
    /// Ascending; the first one is before the first byte.
    pub(super) waypoints: Vec<Waypoint>,
    pub(super) totals: Totals,
    /// The offset after the last decoded byte.
    pub(super) end: StreamOffset,
    pub(super) complete: bool,
}

/// The totals of a source's flow, or of its flow before a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
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
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
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
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Waypoint {
    /// The start of the segments that are needed to place its first elements in the capture, and the number of these segments
    /// before the waypoint.
    pub(super) before: CutPlace,
    pub(super) skipped: usize,
    pub(super) start: StreamOffset,
    pub(super) entry: Entry,
    /// The offset in the capture that no element before the waypoint exceeds.
    pub(super) reached: u64,
}

/// The state on which further decoding depends.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Entry {
    pub(super) state: Checkpoint,
    pub(super) last: Last,
    pub(super) before: Totals,
    /// The last [`EventKind::Context`].
    pub(super) context: Option<EventKind>,
}

impl<'a> FlowIndex<'a> {
    /// The index of the bytes of a source that have arrived: the [rest](Input::rest) of `input` is left out. If progress ends the
    /// work, the index covers the part that was decoded.
    #[must_use]
    pub fn new(input: &Input<'a>, config: &SourceConfig, program: &'a Program) -> Self {
        Self::by_threads(input, config, program, 1)
    }

    /// As [`FlowIndex::new`], decoded by at most `threads` threads. The index does not depend on their number.
    #[must_use]
    pub fn by_threads(
        input: &Input<'a>,
        config: &SourceConfig,
        program: &'a Program,
        threads: usize,
    ) -> Self {
        Self::with_sizes(input, config, program, (Sizes::USUAL, threads))
    }

    /// As [`FlowIndex::by_threads`], with sizes for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_sizes(
        input: &Input<'a>,
        config: &SourceConfig,
        program: &'a Program,
        (sizes, threads): (Sizes, usize),
    ) -> Self {
        let index = Self {
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
        let progress = Ending { progress: input.progress, ended: Cell::new(false) };
        let input = Input { carrier: index.carrier.clone(), rest: None, progress: &progress, ..*input };
        let spread = Spread { threads, segment: sizes.segment };
        let mut filling = Filling::new(index);
        // The consumer of the parts does not fail.
        let _ = Follower::new(config, program).parts_to(&input, spread, &Counted::default(), &mut filling);
        let Filling { index, counted, .. } = filling;
        Self { totals: counted.totals, complete: !progress.ended.get(), ..index }
    }

    /// The totals of everything that a cursor can reach.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether all of the source was decoded.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.complete
    }

    /// The number of places where decoding can begin.
    #[must_use]
    pub const fn waypoints(&self) -> usize {
        self.waypoints.len()
    }

    /// The segments of the window that begins at a waypoint, and those before it that place its first elements.
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

/// Fills an index while the source is decoded.
struct Filling<'a> {
    index: FlowIndex<'a>,
    counted: Counted,
    /// The segments that begin no more than a window before the next one.
    recent: VecDeque<(CutPlace, StreamOffset)>,
    segments: usize,
    /// How many segments there are between two waypoints.
    distance: usize,
    reached: u64,
}

impl<'a> Filling<'a> {
    fn new(index: FlowIndex<'a>) -> Self {
        let (counted, recent) = (Counted::default(), VecDeque::new());
        Self { index, counted, recent, segments: 0, distance: 1, reached: 0 }
    }
}

impl TakeParts<Counted> for Filling<'_> {
    fn part(&mut self, part: Gathered<Counted>) -> io::Result<()> {
        self.counted.add(part.part);
        Ok(())
    }

    fn segment(&mut self, begun: Begun, state: &mut dyn FnMut() -> Checkpoint) {
        let Begun { at, start, last, bytes, done } = begun;
        let Self { index, counted, recent, segments, distance, reached } = self;
        while recent.get(1).is_some_and(|(_, second)| second.0 + WINDOW <= start.0) {
            recent.pop_front();
        }
        recent.push_back((at, start));
        if segments.is_multiple_of(*distance) {
            let entry = Entry { state: state(), last, before: counted.totals, context: counted.context };
            let (before, skipped) = (recent[0].0.clone(), recent.len() - 1);
            index.waypoints.push(Waypoint { before, skipped, start, entry, reached: *reached });
            if index.waypoints.len() > index.sizes.waypoints {
                keep_every_other(&mut index.waypoints);
                *distance *= 2;
            }
        }
        *segments += 1;
        index.end = StreamOffset(start.0 + bytes);
        *reached = done.max(*reached);
    }
}

/// Passes progress on, and remembers whether it ended the work.
#[derive(Debug)]
struct Ending<'a> {
    progress: &'a dyn Progress,
    ended: Cell<bool>,
}

impl Progress for Ending<'_> {
    fn done(&self, bytes: u64) -> bool {
        let goes_on = self.progress.done(bytes);
        self.ended.set(!goes_on);
        goes_on
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

    /// Adds the totals of the elements that follow.
    fn add(&mut self, next: Self) {
        let Totals { steps, instructions, exceptions, cycles, time } = next.totals;
        let totals = &mut self.totals;
        totals.steps += steps;
        totals.instructions += instructions;
        totals.exceptions += exceptions;
        totals.cycles = totals.cycles.saturating_add(cycles);
        totals.time = totals.time.max(time);
        self.context = next.context.or(self.context);
    }
}

impl Part for Counted {
    #[inline]
    fn element(&mut self, element: &Element, _: impl FnOnce() -> CaptureOffset) {
        Self::element(self, element);
    }

    #[inline]
    fn passage(&mut self, passage: &Passage<'_>, _: impl FnMut(StreamOffset) -> CaptureOffset) {
        let totals = passage.totals();
        if passage.len() == u64::from(totals.blocks) {
            self.totals.steps += u64::from(totals.instructions);
            self.totals.instructions += u64::from(totals.instructions);
        } else {
            passage.elements().for_each(|element| Self::element(self, &element));
        }
    }
}

/// The number of a cursor's steps in an element: instructions, events and gaps.
#[must_use]
pub fn steps(element: &Element) -> u64 {
    match element {
        Element::Block(block) => block.instructions.into(),
        Element::Event(_) | Element::Gap(_) => 1,
        Element::Proof(_) => 0,
    }
}

/// How the source's bytes lie in the capture, with the places of its frames located.
pub(super) fn indexed(input: &Input<'_>) -> Carrier {
    /// Ignores the content of the frames.
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

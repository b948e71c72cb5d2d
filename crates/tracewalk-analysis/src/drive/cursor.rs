//! A place in a source's flow that can be moved.
//!
//! A cursor decodes one piece of trace at a time, and keeps the state at the start of each piece of its window, so that a step
//! back decodes one piece. To reach a place in another window, it decodes all pieces up to that place once.

use std::fmt;
use std::ops::Range;

use tracewalk::flow::{Element, EventKind};
use tracewalk::ids::{Address, Location};
use tracewalk::isa;
use tracewalk::program::Program;
use tracewalk::source::FlowStream;
use tracewalk::span::CaptureOffset;

use super::index::{Counted, Entry, FlowIndex, Totals, steps};
use super::segment::{Segment, Whereabouts};
use crate::Position;

/// A place in a source's flow: an instruction, an event or a gap.
pub struct Cursor<'i> {
    index: &'i FlowIndex<'i>,
    stream: FlowStream,
    window: Window<'i>,
    /// The piece whose elements are decoded, by its number in the window.
    piece: usize,
    elements: Vec<Placed>,
    /// The index of the element, and of the instruction in it.
    element: usize,
    within: u64,
    /// The totals before the element.
    before: Counted,
}

/// The place of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Here<'c> {
    /// The number of the step, from 0.
    pub step: u64,
    /// The element; the step is one instruction if it is a block. Its span is the trace that proves it.
    pub element: &'c Element,
    /// The offset of that trace in the capture.
    pub at: CaptureOffset,
    /// The instruction; `None` if the element is no block.
    pub instruction: Option<HereInstruction>,
    /// The current context: the last [`EventKind::Context`]; `None` if the trace has reported none.
    pub context: Option<EventKind>,
    /// The totals before the element.
    pub before: Totals,
}

/// The instruction that a cursor is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HereInstruction {
    /// The number in the source, from 0.
    pub number: u64,
    /// The place in the program.
    pub location: Location,
    /// Whether it is the last one of the block, to which the block's ending applies.
    pub is_last: bool,
}

/// An element, the place of its trace, and the totals before it, so that going back decodes nothing.
#[derive(Clone, Copy, Debug)]
struct Placed {
    element: Element,
    at: CaptureOffset,
    before: Counted,
}

/// The trace between two waypoints.
struct Window<'i> {
    /// The number of the first waypoint.
    number: usize,
    segments: Vec<Segment<'i>>,
    places: Whereabouts,
    /// The pieces that can be entered: at least the first one, and one more with each that is decoded.
    pieces: Vec<Part>,
}

/// Some bytes of a segment.
#[derive(Clone, Debug)]
struct Part {
    segment: usize,
    range: Range<usize>,
    entry: Entry,
}

/// The direction of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Backward,
}

impl FlowIndex<'_> {
    /// A cursor on the first step.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self)
    }
}

impl<'i> Cursor<'i> {
    fn new(index: &'i FlowIndex<'_>) -> Self {
        let window =
            Window { number: 0, segments: Vec::new(), places: Whereabouts::default(), pieces: Vec::new() };
        let mut cursor = Self {
            index,
            stream: FlowStream::new(&index.config),
            window,
            piece: 0,
            elements: Vec::new(),
            element: 0,
            within: 0,
            before: Counted::default(),
        };
        cursor.open(0);
        cursor.enter(0);
        cursor.skip_forward();
        cursor
    }

    /// The current place; `None` if the source has no steps.
    #[must_use]
    pub fn current(&self) -> Option<Here<'_>> {
        let Placed { element, at, .. } = self.elements.get(self.element)?;
        let Counted { totals, context } = self.before;
        let instruction = self.instruction(element).map(|location| HereInstruction {
            number: totals.instructions + self.within,
            location,
            is_last: self.within + 1 == steps(element),
        });
        let step = totals.steps + self.within;
        Some(Here { step, element, at: *at, instruction, context, before: totals })
    }

    /// Goes on to the next step; returns whether there is one.
    pub fn step(&mut self) -> bool {
        let Some(placed) = self.elements.get(self.element) else { return false };
        if self.within + 1 < steps(&placed.element) {
            self.within += 1;
            return true;
        }
        let mark = self.mark();
        self.pass();
        self.skip_forward() || self.go_back_to(mark)
    }

    /// Goes back to the step before; returns whether there is one.
    pub fn step_back(&mut self) -> bool {
        if self.within > 0 {
            self.within -= 1;
            return true;
        }
        let before = self.elements.iter().enumerate().take(self.element).rev();
        let mut found = before.map(|(index, placed)| (index, steps(&placed.element), placed.before));
        if let Some((index, count, before)) = found.find(|(_, count, _)| *count > 0) {
            (self.element, self.within, self.before) = (index, count - 1, before);
            return true;
        }
        let step = self.elements.get(self.element).and_then(|_| self.before.totals.steps.checked_sub(1));
        step.is_some_and(|step| self.seek_step(step))
    }

    /// Goes on to the first step of the next element, past a block's other instructions. Returns whether there is one; if not,
    /// the cursor stays.
    pub fn next_element(&mut self) -> bool {
        let within = self.within;
        self.to_last_of_element();
        let moved = self.step();
        if !moved {
            self.within = within;
        }
        moved
    }

    /// Goes to the first step of the current element.
    pub const fn to_first_of_element(&mut self) {
        self.within = 0;
    }

    /// Goes to the last step of the current element.
    pub fn to_last_of_element(&mut self) {
        if let Some(placed) = self.elements.get(self.element) {
            self.within = steps(&placed.element).saturating_sub(1);
        }
    }

    /// Goes to the step of this number, from 0. Returns whether there is one; if not, the cursor stays.
    pub fn seek_step(&mut self, step: u64) -> bool {
        step < self.index.totals().steps
            && self.seek_counted(|totals| totals.steps > step, |before| step - before.steps)
    }

    /// Goes to the first step that reaches `position`: the instruction with this number (from 0), the cycle count that brings
    /// the sum to this value, the first timestamp that is not smaller, or the first step whose trace starts at or after this
    /// byte of the capture. Returns whether such a step exists; if none does, the cursor stays.
    pub fn seek(&mut self, position: Position) -> bool {
        match position {
            Position::Instructions(number) => self.seek_counted(
                |totals| totals.instructions > number,
                |before| number.saturating_sub(before.instructions),
            ),
            Position::Cycles(cycles) => self.seek_counted(|totals| totals.cycles >= cycles, |_| 0),
            Position::Time(time) => self.seek_counted(|totals| totals.time >= time, |_| 0),
            Position::Capture(at) => {
                let mark = self.mark();
                let waypoints = &self.index.waypoints;
                let window = waypoints.partition_point(|waypoint| waypoint.reached <= at.0).saturating_sub(1);
                self.open(window);
                self.enter(0);
                self.search(|placed| (placed.at >= at).then_some(0)) || self.go_back_to(mark)
            }
        }
    }

    /// Goes to the exception of this number, from 0, that was taken. Returns whether there is one; if not, the cursor stays.
    pub fn seek_exception(&mut self, number: u64) -> bool {
        number < self.index.totals().exceptions
            && self.seek_counted(|totals| totals.exceptions > number, |_| 0)
    }

    /// Goes on to the next time that the instruction at an address ran. Returns whether it did; if not, the cursor stays.
    ///
    /// Decodes everything up to there.
    pub fn next_at(&mut self, address: Address) -> bool {
        self.find(Direction::Forward, address)
    }

    /// Goes back to the previous time that the instruction at an address ran. Returns whether it did; if not, the cursor stays.
    ///
    /// Decodes everything from there on.
    pub fn previous_at(&mut self, address: Address) -> bool {
        self.find(Direction::Backward, address)
    }

    fn find(&mut self, direction: Direction, address: Address) -> bool {
        let mark = self.mark();
        loop {
            let moved = match direction {
                Direction::Forward => self.step(),
                Direction::Backward => self.step_back(),
            };
            if !moved {
                return self.go_back_to(mark);
            }
            let Some(placed) = self.elements.get(self.element) else { continue };
            let here = self.current().and_then(|here| here.instruction).map(|here| here.location.address);
            if here == Some(address) {
                return true;
            }
            // The rest of a block that does not hold the address need not be looked at one by one.
            match placed.element {
                Element::Block(block) if address >= block.start && address < block.end => {}
                Element::Block(block) if direction == Direction::Forward => {
                    self.within = u64::from(block.instructions) - 1;
                }
                _ => self.within = 0,
            }
        }
    }

    /// Goes to the first step after which `reached` is true. In a block it continues by `within` instructions.
    fn seek_counted(&mut self, reached: impl Fn(&Totals) -> bool, within: impl Fn(&Totals) -> u64) -> bool {
        if !reached(&self.index.totals()) {
            return false;
        }
        let waypoints = &self.index.waypoints;
        let is_before = |entry: &Entry| !reached(&entry.before);
        let window = waypoints.partition_point(|waypoint| is_before(&waypoint.entry)).saturating_sub(1);
        if window != self.window.number {
            self.open(window);
        }
        let piece = self.window.pieces.partition_point(|piece| is_before(&piece.entry)).saturating_sub(1);
        // The elements of the piece may be decoded already.
        if self.piece == piece && window == self.window.number && !self.elements.is_empty() {
            self.rewind();
        } else {
            self.enter(piece);
        }
        loop {
            while let Some(placed) = self.elements.get(self.element) {
                let mut after = self.before;
                after.element(&placed.element);
                if reached(&after.totals) {
                    self.within = within(&self.before.totals);
                    return true;
                }
                self.pass();
            }
            if !self.enter_next() {
                return false;
            }
        }
    }

    /// Goes on to the first element, from the current one, for which `wanted` returns an instruction.
    fn search(&mut self, wanted: impl Fn(&Placed) -> Option<u64>) -> bool {
        loop {
            while let Some(placed) = self.elements.get(self.element) {
                if let Some(within) = wanted(placed).filter(|_| steps(&placed.element) > 0) {
                    self.within = within;
                    return true;
                }
                self.pass();
            }
            if !self.enter_next() {
                return false;
            }
        }
    }

    /// The place of the current instruction in the program.
    fn instruction(&self, element: &Element) -> Option<Location> {
        let Element::Block(block) = element else { return None };
        let program = view(self.index.program, self.before.context);
        let mut at = Location::new(block.start, block.isa);
        if self.within + 1 == u64::from(block.instructions) {
            return Some(Location::new(block.last, block.isa));
        }
        for _ in 0..self.within {
            let bytes = isa::classify(program.code(at.address)?, at.address, at.isa).ok()?.bytes;
            at = at.after(bytes.into());
        }
        Some(at)
    }

    /// Passes the current element.
    fn pass(&mut self) {
        if let Some(placed) = self.elements.get(self.element) {
            self.before.element(&placed.element);
            self.element += 1;
        }
        self.within = 0;
    }

    /// Goes on to an element with steps, from the current one. Returns whether there is one.
    fn skip_forward(&mut self) -> bool {
        self.search(|_| Some(0))
    }

    fn mark(&self) -> Option<u64> {
        self.current().map(|here| here.step)
    }

    /// Returns to the step `mark` after a search without result.
    fn go_back_to(&mut self, mark: Option<u64>) -> bool {
        if let Some(step) = mark {
            self.seek_step(step);
        }
        false
    }

    /// Goes to the window after a waypoint.
    fn open(&mut self, number: usize) {
        let (before, mut segments) = self.index.segments(number);
        let mut places = Whereabouts::default();
        for mut segment in before {
            places.add(segment.take_places());
        }
        for segment in &mut segments {
            places.add(segment.take_places());
        }
        let entry = self.index.waypoints.get(number).map(|waypoint| waypoint.entry.clone());
        let size = self.index.sizes.piece;
        let first = segments.first().zip(entry);
        let pieces =
            first.map(|(segment, entry)| Part { segment: 0, range: 0..segment.bytes.len().min(size), entry });
        self.window = Window { number, segments, places, pieces: pieces.into_iter().collect() };
        self.elements.clear();
        self.piece = 0;
    }

    /// Goes to the first element of a piece of the window, and decodes it.
    fn enter(&mut self, piece: usize) {
        self.elements.clear();
        (self.piece, self.element, self.within) = (piece, 0, 0);
        let Window { segments, places, pieces, number } = &mut self.window;
        let Some(Part { segment: at, range, entry }) = pieces.get(piece).cloned() else { return };
        let Some(segment) = segments.get(at) else { return };
        self.before = Counted { totals: entry.before, context: entry.context };
        let program = self.index.program;
        self.stream.go_on_from(&entry.state, program);
        let (mut counted, mut last, elements) = (self.before, entry.last, &mut self.elements);
        let mut sink = |element: Element| {
            let before = counted;
            counted.element(&element);
            let at = last.place(element.span(), places);
            last.element(&element);
            elements.push(Placed { element, at, before });
        };
        segment.feed(range.clone(), &mut self.stream, program, &mut sink);
        let next = match range.end < segment.bytes.len() {
            true => Some((at, range.end)),
            false => (at + 1 < segments.len()).then_some((at + 1, 0)),
        };
        match next {
            Some((at, start)) if pieces.len() == piece + 1 => {
                last.settle(places);
                let state = self.stream.checkpoint(program);
                let bytes = segments.get(at).map_or(0, |segment| segment.bytes.len());
                let range = start..start.saturating_add(self.index.sizes.piece.max(1)).min(bytes);
                let entry = Entry { state, last, before: counted.totals, context: counted.context };
                pieces.push(Part { segment: at, range, entry });
            }
            Some(_) => {}
            None if *number + 1 == self.index.waypoints.len() => {
                if !self.index.is_complete() {
                    self.stream.forget_incomplete();
                }
                self.stream.finish(program, &mut sink);
            }
            None => {}
        }
    }

    /// Goes to the first element of the next piece; returns whether there is one.
    fn enter_next(&mut self) -> bool {
        if self.piece + 1 < self.window.pieces.len() {
            self.enter(self.piece + 1);
            return true;
        }
        if self.window.number + 1 < self.index.waypoints.len() {
            self.open(self.window.number + 1);
            self.enter(0);
            return true;
        }
        false
    }

    /// Goes back to the first element of the piece.
    fn rewind(&mut self) {
        (self.element, self.within) = (0, 0);
        if let Some(Part { entry, .. }) = self.window.pieces.get(self.piece) {
            self.before = Counted { totals: entry.before, context: entry.context };
        }
    }
}

/// The program as a context sees it.
fn view(program: &Program, context: Option<EventKind>) -> &Program {
    match context {
        Some(EventKind::Context { context_id, vmid, .. }) => program.view(program.view_in(context_id, vmid)),
        _ => program,
    }
}

impl fmt::Debug for Cursor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("current", &self.current()).finish_non_exhaustive()
    }
}

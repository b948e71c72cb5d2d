//! A part of a source's trace: from one place to another.
//!
//! Analyses also follow everything before the window, to know the calls at its start; they report only the execution in it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tracewalk::flow::{Block, Element, Ending, Event, EventKind};
use tracewalk::ids::{Address, Location};
use tracewalk::isa::classify;
use tracewalk::program::ViewId;
use tracewalk::span::CaptureOffset;

use crate::analysis::Repeated;
use crate::by_number::ByNumber;
use crate::place::{ExceptionName, Found, Place, Position};
use crate::{Code, CodeInContext};

/// The part of a trace that is reported; without an end, up to the trace's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first place in the window.
    pub from: Option<Place>,
    /// The first place after the window.
    pub to: Option<Place>,
}

/// The position of an element relative to a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before the window.
    Before,
    /// In the window.
    Inside,
    /// After the window, like all further elements.
    After,
}

/// Decides which of a source's elements are in a window. A block that contains a position belongs to the part before it; a block
/// in which something happens has to be [divided](Windowed::divide) there.
#[derive(Clone, Debug)]
pub struct Windowed {
    from: Option<Bound>,
    to: Option<Bound>,
    /// The program in the current context.
    code: CodeInContext,
    phase: Phase,
    instructions: u64,
    cycles: u64,
    time: Option<u64>,
    at: Option<CaptureOffset>,
    /// Whether a passage has a happening that an end of the window waits for.
    touched: ByNumber<bool>,
}

/// The number of times that a place of a window occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// The place that was searched.
    pub place: Place,
    /// How often the place occurred; for the window's end, after its start.
    pub times: u64,
    /// Whether the place occurred often enough.
    pub is_reached: bool,
}

/// An end of a window.
#[derive(Clone, Debug)]
enum Bound {
    Position(Position),
    Happening { place: Place, nth: u64, times: u64, watched: Watched },
}

/// The condition that an element is compared with.
#[derive(Clone, Debug)]
enum Watched {
    /// The instructions of each view, and those of the current view.
    Instructions {
        views: BTreeMap<ViewId, Vec<Address>>,
        seen: Vec<Address>,
    },
    Exception(ExceptionName),
}

impl Window {
    /// Whether the window depends on the places of elements in the capture.
    #[must_use]
    pub fn needs_places(&self) -> bool {
        self.places().any(|place| matches!(place.position(), Some(Position::Capture(_))))
    }

    /// Begins with a source's first element, of this program.
    #[must_use]
    pub fn begin(&self, code: &Arc<Code>) -> Windowed {
        let bound = |place: &Option<Place>| place.as_ref().map(|place| Bound::new(place, code));
        let (from, to) = (bound(&self.from), bound(&self.to));
        let code = CodeInContext::new(Arc::clone(code));
        let (phase, touched) = (Phase::Before, ByNumber::default());
        Windowed { from, to, code, phase, instructions: 0, cycles: 0, time: None, at: None, touched }
    }

    /// The ends of the window.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.from.iter().chain(&self.to)
    }
}

impl Bound {
    fn new(place: &Place, code: &Code) -> Self {
        let (what, nth) = match place {
            Place::Position(position) => return Self::Position(*position),
            Place::Happening { what, nth } => (what, nth.get()),
        };
        let watched = match what.find(code) {
            Ok(Found::Exception(name)) => Watched::Exception(name),
            Ok(Found::Instructions(views)) => {
                let seen = views.get(&ViewId::default()).cloned().unwrap_or_default();
                Watched::Instructions { views, seen }
            }
            // The event never happens in this program.
            Err(_) => Watched::Instructions { views: BTreeMap::new(), seen: Vec::new() },
        };
        Self::Happening { place: place.clone(), nth, times: 0, watched }
    }

    /// The view of the program changes.
    fn change_view(&mut self, view: ViewId) {
        if let Self::Happening { watched: Watched::Instructions { views, seen }, .. } = self {
            *seen = views.get(&view).cloned().unwrap_or_default();
        }
    }

    /// Notes an element if it is what an end of the window waits for.
    fn see(&mut self, element: &Element, code: &CodeInContext) {
        let Self::Happening { times, watched, .. } = self else { return };
        let happens = match (element, watched) {
            (Element::Block(block), Watched::Instructions { seen, .. }) => {
                seen.binary_search(&block.start).is_ok()
            }
            (Element::Event(event), Watched::Exception(name)) => match event.kind {
                EventKind::Exception { exception, .. } => name.is(exception, &code.whole().interrupts),
                _ => false,
            },
            _ => false,
        };
        *times += u64::from(happens);
    }

    /// Whether something happens in an element, at its start or further on.
    fn touches(&self, element: &Element, code: &CodeInContext) -> bool {
        let Self::Happening { watched, .. } = self else { return false };
        match (element, watched) {
            (Element::Block(block), Watched::Instructions { .. }) => {
                self.first_of(&(block.start.get()..block.end.get())).is_some()
            }
            (Element::Event(event), Watched::Exception(name)) => match event.kind {
                EventKind::Exception { exception, .. } => name.is(exception, &code.whole().interrupts),
                _ => false,
            },
            _ => false,
        }
    }

    fn happened(&self) -> Option<Happened> {
        match self {
            Self::Position(_) => None,
            Self::Happening { place, nth, times, .. } => {
                Some(Happened { place: place.clone(), times: *times, is_reached: times >= nth })
            }
        }
    }

    /// The first address that is waited for among these.
    fn first_of(&self, addresses: &Range<u64>) -> Option<u64> {
        let Self::Happening { watched: Watched::Instructions { seen, .. }, .. } = self else { return None };
        let first = seen.partition_point(|address| address.get() < addresses.start);
        seen.get(first).map(|address| address.get()).filter(|address| *address < addresses.end)
    }
}

impl Windowed {
    /// The phase of the next element, whose proof begins at `at`.
    pub fn element(&mut self, element: &Element, at: CaptureOffset) -> Phase {
        if let Element::Event(event) = element
            && let EventKind::Timestamp(time) = event.kind
            && time != 0
        {
            self.time = Some(time);
        }
        self.at = Some(at);
        self.see(element);
        if self.phase == Phase::Before && self.from.as_ref().is_none_or(|from| self.has_reached(from, at)) {
            self.phase = Phase::Inside;
        }
        if self.phase == Phase::Inside && self.to.as_ref().is_some_and(|to| self.has_reached(to, at)) {
            self.phase = Phase::After;
        }
        match element {
            Element::Block(block) => self.instructions += u64::from(block.instructions),
            Element::Event(event) => {
                if let EventKind::Cycles(cycles) = event.kind {
                    self.cycles = self.cycles.saturating_add(cycles);
                }
            }
            Element::Gap(_) | Element::Proof(_) => {}
        }
        self.phase
    }

    /// The phase of all of these elements; `None` if it is not the same for all, if an end of the window divides them, or if
    /// they contain a happening that an end waits for.
    #[inline]
    #[must_use]
    pub fn ahead(&mut self, repeated: &Repeated<'_>) -> Option<Phase> {
        let instructions = self.instructions + u64::from(repeated.totals().instructions);
        // An element at the end itself would be after it.
        let is_before = |bound: &Bound| match bound {
            Bound::Position(Position::Instructions(count)) => instructions < *count,
            Bound::Position(_) => false,
            // The event has not happened yet, and does not happen in these elements.
            Bound::Happening { .. } => true,
        };
        let phase = match self.phase {
            Phase::Before if self.from.as_ref().is_some_and(is_before) => Phase::Before,
            Phase::Inside if self.to.as_ref().is_none_or(is_before) => Phase::Inside,
            Phase::After => Phase::After,
            Phase::Before | Phase::Inside => return None,
        };
        let waits = |bound: &Option<Bound>| matches!(bound, Some(Bound::Happening { .. }));
        // Happenings are also counted after the window, for [`Windowed::happened`].
        let is_touched = (waits(&self.from) || waits(&self.to)) && self.touches(repeated);
        (!is_touched).then_some(phase)
    }

    /// Whether these elements contain a happening that an end of the window waits for.
    fn touches(&mut self, repeated: &Repeated<'_>) -> bool {
        let Self { from, to, code, touched, .. } = self;
        let bounds = || [&*from, &*to].into_iter().flatten();
        let is_touched = |element| bounds().any(|bound| bound.touches(&element, code));
        touched.get(repeated, || repeated.elements().any(is_touched))
    }

    /// Takes elements for which [`Windowed::ahead`] returned a phase.
    #[inline]
    pub fn pass(&mut self, repeated: &Repeated<'_>) {
        self.instructions += u64::from(repeated.totals().instructions);
        for element in repeated.elements() {
            if let Element::Event(Event { kind: EventKind::Cycles(cycles), .. }) = element {
                self.cycles = self.cycles.saturating_add(cycles);
            }
        }
    }

    /// Divides a block at the place of a possible happening that an end of the window waits for; with `exactly`, also at the
    /// place at which a number of instructions ends. Ask the window about the first part before dividing the second one further.
    #[must_use]
    pub fn divide(&self, block: &Block, exactly: bool) -> Option<(Block, Block)> {
        let bounds = || [&self.from, &self.to].into_iter().flatten();
        let first_of = |addresses: Range<u64>| bounds().filter_map(|bound| bound.first_of(&addresses)).min();
        let end = block.end.get();
        let mut address = first_of(block.start.get() + 1..end);
        let count = bounds().filter(|_| exactly).filter_map(|bound| match bound {
            Bound::Position(Position::Instructions(count)) => count.checked_sub(self.instructions),
            _ => None,
        });
        let count = count.filter(|count| (1..u64::from(block.instructions)).contains(count)).min();
        if address.is_none() && count.is_none() {
            return None;
        }
        self.divide_where(block, |at, passed| {
            // No instruction starts at an address that was passed over.
            if address.is_some_and(|address| address < at.get()) {
                address = first_of(at.get()..end);
            }
            address == Some(at.get()) || count == Some(u64::from(passed))
        })
    }

    /// Divides a block after its first `instructions` instructions, if it has more.
    #[must_use]
    pub fn divide_after(&self, block: &Block, instructions: u32) -> Option<(Block, Block)> {
        self.divide_where(block, |_, passed| passed == instructions)
    }

    /// Divides a block at its first instruction that is wanted, by address and number of instructions before it.
    fn divide_where(
        &self,
        block: &Block,
        mut is_wanted: impl FnMut(Address, u32) -> bool,
    ) -> Option<(Block, Block)> {
        let mut at = Location::new(block.start, block.isa);
        for passed in 1..block.instructions {
            let last = at.address;
            let bytes = self.code.program.code(at.address)?;
            at = at.after(classify(bytes, at.address, at.isa).ok()?.bytes.into());
            if is_wanted(at.address, passed) {
                let head = Block {
                    end: at.address,
                    instructions: passed,
                    last,
                    ending: Ending::Interrupted,
                    ..*block
                };
                let tail = Block { start: at.address, instructions: block.instructions - passed, ..*block };
                return Some((head, tail));
            }
        }
        None
    }

    /// The number of times that the happenings at the window's start and end occurred; `None` for a position.
    #[must_use]
    pub fn happened(&self) -> [Option<Happened>; 2] {
        [&self.from, &self.to].map(|bound| bound.as_ref().and_then(Bound::happened))
    }

    /// How far the elements have come, in the unit of `position`; `None` if the trace does not have the unit.
    #[must_use]
    pub fn reached(&self, position: Position) -> Option<Position> {
        match position {
            Position::Instructions(_) => Some(Position::Instructions(self.instructions)),
            Position::Cycles(_) => (self.cycles > 0).then_some(Position::Cycles(self.cycles)),
            Position::Time(_) => self.time.map(Position::Time),
            Position::Capture(_) => self.at.map(Position::Capture),
        }
    }

    /// Counts a happening.
    fn see(&mut self, element: &Element) {
        if self.code.element(element) {
            let view = self.code.view();
            [&mut self.from, &mut self.to].into_iter().flatten().for_each(|bound| bound.change_view(view));
            self.touched = ByNumber::default();
        }
        // A happening that opens the window does not also end it.
        let ends = self.phase == Phase::Inside || self.from.is_none();
        if let Some(from) = &mut self.from {
            from.see(element, &self.code);
        }
        if let Some(to) = self.to.as_mut().filter(|_| ends) {
            to.see(element, &self.code);
        }
    }

    fn has_reached(&self, bound: &Bound, at: CaptureOffset) -> bool {
        match bound {
            Bound::Happening { nth, times, .. } => times >= nth,
            Bound::Position(Position::Instructions(count)) => self.instructions >= *count,
            Bound::Position(Position::Cycles(count)) => self.cycles >= *count,
            Bound::Position(Position::Time(time)) => self.time.is_some_and(|now| now >= *time),
            Bound::Position(Position::Capture(place)) => at >= *place,
        }
    }
}

impl fmt::Display for Window {
    /// `from 2000 instructions to 3000 instructions`; empty for the whole trace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.from, &self.to) {
            (None, None) => Ok(()),
            (Some(from), None) => write!(f, "from {from} on"),
            (None, Some(to)) => write!(f, "up to {to}"),
            (Some(from), Some(to)) => write!(f, "from {from} to {to}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::Happening;
    use crate::samples::{block, event, irq, page, pages, taken, within};

    fn phases(window: &Window, elements: &[Element]) -> Vec<Phase> {
        let mut windowed = window.begin(&pages());
        let places = (0..).map(|at| CaptureOffset(at * 10));
        elements.iter().zip(places).map(|(element, at)| windowed.element(element, at)).collect()
    }

    #[test]
    fn a_window_holds_what_begins_in_it() {
        use Phase::{After, Before, Inside};
        let blocks = [
            block(0x100, 0x108, taken()),
            block(0x100, 0x108, taken()),
            block(0x100, 0x108, taken()),
            block(0x100, 0x108, taken()),
        ];
        let window = |from: Position, to: Position| Window { from: Some(from.into()), to: Some(to.into()) };
        let (count, byte) = (Position::Instructions, |at| Position::Capture(CaptureOffset(at)));
        assert_eq!(phases(&Window::default(), &blocks), [Inside; 4]);
        assert_eq!(phases(&window(count(3), count(9)), &blocks), [Before, Inside, Inside, After]);
        assert_eq!(phases(&window(byte(10), byte(11)), &blocks), [Before, Inside, After, After]);
        assert_eq!(
            phases(&Window { from: None, to: Some(count(4).into()) }, &blocks),
            [Inside, After, After, After]
        );
        let timed = [
            event(EventKind::Timestamp(5)),
            event(EventKind::Cycles(3)),
            event(EventKind::Timestamp(0)),
            event(EventKind::Timestamp(9)),
        ];
        assert_eq!(
            phases(&window(Position::Time(5), Position::Time(6)), &timed),
            [Inside, Inside, Inside, After]
        );
        assert_eq!(
            phases(&Window { from: Some(Position::Cycles(1).into()), to: None }, &timed),
            [Before, Before, Inside, Inside]
        );
    }

    #[test]
    fn a_window_knows_how_far_the_trace_went_in_what_it_counts() {
        let mut windowed = Window::default().begin(&pages());
        let elements = [block(0x100, 0x108, taken()), event(EventKind::Timestamp(5))];
        for (element, at) in elements.iter().zip([7, 9]) {
            windowed.element(element, CaptureOffset(at));
        }
        let reached = [
            (Position::Instructions(0), Some(Position::Instructions(4))),
            (Position::Cycles(0), None),
            (Position::Time(0), Some(Position::Time(5))),
            (Position::Capture(CaptureOffset(0)), Some(Position::Capture(CaptureOffset(9)))),
        ];
        for (position, expected) in reached {
            assert_eq!(windowed.reached(position), expected);
        }
        assert_eq!(Position::Cycles(3).is_before(Position::Cycles(3)), Some(false));
        assert_eq!(Position::Cycles(3).is_before(Position::Time(4)), None);
    }

    #[test]
    fn a_window_says_what_it_is() {
        let window = Window { from: Some(Position::Cycles(5).into()), to: Some(Position::Time(9).into()) };
        assert_eq!(window.to_string(), "from 5 cycles to timestamp 9");
        assert_eq!(Window::default().to_string(), "");
    }

    fn place(what: Happening, nth: u64) -> Place {
        Place::Happening { what, nth: std::num::NonZeroU64::new(nth).unwrap() }
    }

    fn function(name: &str) -> Happening {
        Happening::Function { name: name.to_owned(), offset: 0 }
    }

    #[test]
    fn a_window_opens_and_ends_where_something_happens() {
        use Phase::{After, Before, Inside};
        let swap =
            |times| (0..times).flat_map(|_| [within("main", 0, 4, taken()), within("swap", 0, 4, taken())]);
        let elements = swap(3).collect::<Vec<_>>();
        let window = |from, to| Window { from: Some(from), to };
        let second = window(place(function("swap"), 2), None);
        assert_eq!(phases(&second, &elements), [Before, Before, Before, Inside, Inside, Inside]);
        // The call that opens the window does not end it.
        let once = window(place(function("swap"), 1), Some(place(function("swap"), 1)));
        assert_eq!(phases(&once, &elements), [Before, Inside, Inside, After, After, After]);
        let up_to = Window { from: None, to: Some(place(function("main"), 2)) };
        assert_eq!(phases(&up_to, &elements), [Inside, Inside, After, After, After, After]);
        let never = window(place(function("swap"), 4), None);
        let mut windowed = never.begin(&pages());
        for element in &elements {
            assert_eq!(windowed.element(element, CaptureOffset(0)), Before);
        }
        let [from, to] = windowed.happened();
        assert_eq!((from.map(|from| (from.times, from.is_reached)), to), (Some((3, false)), None));
        let interrupt = place(Happening::Exception(ExceptionName::Number(15)), 1);
        let elements = [within("main", 0, 4, taken()), irq(15, None, "swap"), within("swap", 0, 4, taken())];
        assert_eq!(phases(&window(interrupt, None), &elements), [Before, Inside, Inside]);
    }

    #[test]
    fn a_block_is_divided_where_something_happens_in_it() {
        let at = |offset: u32| place(Happening::Address(Address::from(page("main") + offset)), 1);
        let Element::Block(block) = within("main", 0, 0x10, taken()) else { unreachable!() };
        let divide = |window: Window| {
            let (head, tail) = window.begin(&pages()).divide(&block, true)?;
            assert_eq!(head.instructions + tail.instructions, block.instructions);
            assert_eq!((head.start, tail.end, tail.ending), (block.start, block.end, block.ending));
            assert_eq!((head.end, head.ending), (tail.start, Ending::Interrupted));
            Some((tail.start.low_word() - page("main"), head.instructions))
        };
        let from = |place| Window { from: Some(place), to: None };
        assert_eq!(divide(from(at(6))), Some((6, 3)));
        assert_eq!(divide(Window { from: Some(at(8)), to: Some(at(4)) }), Some((4, 2)));
        assert_eq!(divide(from(at(0))), None, "it begins there");
        assert_eq!(divide(from(at(0x10))), None, "it ends there");
        assert_eq!(divide(from(at(7))), None, "no instruction starts there");
        assert_eq!(divide(Window { from: Some(at(7)), to: Some(at(8)) }), Some((8, 4)));
    }
}

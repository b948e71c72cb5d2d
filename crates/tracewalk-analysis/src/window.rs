//! A part of a source's trace: from one position to another.
//!
//! Analyses follow everything before the window as well, so that they know its calls; they report only what is in it.

use std::fmt;

use tracewalk::flow::{Element, EventKind};
use tracewalk::span::CaptureOffset;

/// A place in a source's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Behind so many instructions.
    Instructions(u64),
    /// Behind so many cycles.
    Cycles(u64),
    /// At the first timestamp that is not smaller.
    Time(u64),
    /// At this byte of the capture.
    Capture(CaptureOffset),
}

/// What is looked at; without an end, up to the trace's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The first position that is in it.
    pub from: Option<Position>,
    /// The first position behind it.
    pub to: Option<Position>,
}

/// Where an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// In front of the window.
    Before,
    /// In the window.
    Inside,
    /// Behind the window, and so is all that follows.
    After,
}

/// Tells which of a source's elements are in a window. A block that a position falls into counts to what is before it.
#[derive(Clone, Copy, Debug)]
pub struct Windowed {
    window: Window,
    phase: Phase,
    instructions: u64,
    cycles: u64,
    time: Option<u64>,
    at: Option<CaptureOffset>,
}

impl Position {
    /// Whether it is in front of another one; `None` where they count different things.
    #[must_use]
    pub const fn is_before(self, other: Self) -> Option<bool> {
        match (self, other) {
            (Self::Instructions(one), Self::Instructions(other))
            | (Self::Cycles(one), Self::Cycles(other))
            | (Self::Time(one), Self::Time(other))
            | (Self::Capture(CaptureOffset(one)), Self::Capture(CaptureOffset(other))) => Some(one < other),
            _ => None,
        }
    }

    /// Whether nothing is in front of it.
    #[must_use]
    pub const fn is_beginning(self) -> bool {
        let (Self::Instructions(count)
        | Self::Cycles(count)
        | Self::Time(count)
        | Self::Capture(CaptureOffset(count))) = self;
        count == 0
    }
}

impl Window {
    /// Begins with a source's first element.
    #[must_use]
    pub const fn begin(self) -> Windowed {
        Windowed { window: self, phase: Phase::Before, instructions: 0, cycles: 0, time: None, at: None }
    }
}

impl Windowed {
    /// Where the next element is, whose proof begins at `at`.
    pub fn element(&mut self, element: &Element, at: CaptureOffset) -> Phase {
        if let Element::Event(event) = element
            && let EventKind::Timestamp(time) = event.kind
            && time != 0
        {
            self.time = Some(time);
        }
        self.at = Some(at);
        let Window { from, to } = self.window;
        if self.phase == Phase::Before && from.is_none_or(|from| self.has_reached(from, at)) {
            self.phase = Phase::Inside;
        }
        if self.phase == Phase::Inside && to.is_some_and(|to| self.has_reached(to, at)) {
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

    /// How far the elements went so far, counted in what `position` counts; `None` where they have none of it.
    #[must_use]
    pub fn reached(&self, position: Position) -> Option<Position> {
        match position {
            Position::Instructions(_) => Some(Position::Instructions(self.instructions)),
            Position::Cycles(_) => (self.cycles > 0).then_some(Position::Cycles(self.cycles)),
            Position::Time(_) => self.time.map(Position::Time),
            Position::Capture(_) => self.at.map(Position::Capture),
        }
    }

    fn has_reached(&self, position: Position, at: CaptureOffset) -> bool {
        match position {
            Position::Instructions(count) => self.instructions >= count,
            Position::Cycles(count) => self.cycles >= count,
            Position::Time(time) => self.time.is_some_and(|now| now >= time),
            Position::Capture(place) => at >= place,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instructions(count) => write!(f, "{count} instructions"),
            Self::Cycles(count) => write!(f, "{count} cycles"),
            Self::Time(time) => write!(f, "timestamp {time}"),
            Self::Capture(at) => write!(f, "byte {at}"),
        }
    }
}

impl fmt::Display for Window {
    /// `from 2000 instructions to 3000 instructions`; nothing where it is everything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.from, self.to) {
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
    use crate::samples::{block, event, taken};

    fn phases(window: Window, elements: &[Element]) -> Vec<Phase> {
        let mut windowed = window.begin();
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
        let window = |from, to| Window { from: Some(from), to: Some(to) };
        let (count, byte) = (Position::Instructions, |at| Position::Capture(CaptureOffset(at)));
        assert_eq!(phases(Window::default(), &blocks), [Inside; 4]);
        assert_eq!(phases(window(count(3), count(9)), &blocks), [Before, Inside, Inside, After]);
        assert_eq!(phases(window(byte(10), byte(11)), &blocks), [Before, Inside, After, After]);
        assert_eq!(phases(Window { from: None, to: Some(count(4)) }, &blocks), [Inside, After, After, After]);
        let timed = [
            event(EventKind::Timestamp(5)),
            event(EventKind::Cycles(3)),
            event(EventKind::Timestamp(0)),
            event(EventKind::Timestamp(9)),
        ];
        assert_eq!(
            phases(window(Position::Time(5), Position::Time(6)), &timed),
            [Inside, Inside, Inside, After]
        );
        assert_eq!(
            phases(Window { from: Some(Position::Cycles(1)), to: None }, &timed),
            [Before, Before, Inside, Inside]
        );
    }

    #[test]
    fn a_window_knows_how_far_the_trace_went_in_what_it_counts() {
        let mut windowed = Window::default().begin();
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
        let window = Window { from: Some(Position::Cycles(5)), to: Some(Position::Time(9)) };
        assert_eq!(window.to_string(), "from 5 cycles to timestamp 9");
        assert_eq!(Window::default().to_string(), "");
    }
}

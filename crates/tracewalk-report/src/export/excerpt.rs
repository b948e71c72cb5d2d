//! A part of a trace: from one place to another, or N instructions around one.

use std::io;
use std::sync::Arc;

use tracewalk::flow::Element;
use tracewalk::span::CaptureOffset;

use super::tail::Tail;
use tracewalk_analysis::analysis::{FlowSink, Repeated};
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, Phase, Place, Section, Window, Windowed};

/// The part of each source to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The part itself.
    pub window: Window,
    /// The number of instructions before it.
    pub before: u64,
    /// The most instructions of the part.
    pub at_most: Option<u64>,
}

/// Passes on the records of a part of each source. Blocks that reach over its ends are divided.
#[derive(Debug)]
pub struct Excerpt<E> {
    inner: E,
    selection: Selection,
    windowed: Windowed,
    /// The instructions that may precede the part.
    tail: Tail,
    phase: Phase,
    /// The number of instructions of the part that may still follow.
    left: Option<u64>,
}

impl Selection {
    /// From one place to another.
    #[must_use]
    pub const fn of(window: Window) -> Self {
        Self { window, before: 0, at_most: None }
    }

    /// A number of instructions before a place, and from it on.
    #[must_use]
    pub const fn around(place: Place, before: u64, after: u64) -> Self {
        Self { window: Window { from: Some(place), to: None }, before, at_most: Some(after) }
    }
}

impl<E: Sink<FlowRecord>> Excerpt<E> {
    /// Passes the part on to `inner`.
    pub fn new(inner: E, selection: Selection) -> Self {
        let windowed = selection.window.begin(&Arc::new(Code::unknown()));
        let (tail, left) = (Tail::new(selection.before), selection.at_most);
        Self { inner, selection, windowed, tail, phase: Phase::Before, left }
    }

    /// Takes a record that no end of the window divides.
    fn whole(&mut self, record: FlowRecord) -> io::Result<()> {
        let phase = self.windowed.element(&record.element, record.at);
        let before = std::mem::replace(&mut self.phase, phase);
        if phase == Phase::Before {
            self.tail.record(record);
            return Ok(());
        }
        if before == Phase::Before {
            self.tail.release(&mut self.inner)?;
        }
        if phase == Phase::After || self.left == Some(0) {
            return Ok(());
        }
        self.limited(record)
    }

    /// Passes on a record of the part, up to the limit of instructions.
    fn limited(&mut self, mut record: FlowRecord) -> io::Result<()> {
        if let (Element::Block(block), Some(left)) = (&mut record.element, &mut self.left) {
            let at_most = u32::try_from(*left).unwrap_or(u32::MAX);
            if let Some((head, _)) = self.windowed.divide_after(block, at_most) {
                *block = head;
            }
            *left = left.saturating_sub(block.instructions.into());
        }
        self.inner.record(record)
    }
}

impl<E: Sink<FlowRecord>> Sink<FlowRecord> for Excerpt<E> {
    fn begin(&mut self) -> io::Result<()> {
        self.inner.begin()
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.windowed = self.selection.window.begin(&section.code);
        self.tail.section(section);
        (self.phase, self.left) = (Phase::Before, self.selection.at_most);
        self.inner.section(section)
    }

    fn record(&mut self, mut record: FlowRecord) -> io::Result<()> {
        while let Element::Block(block) = &record.element
            && let Some((head, tail)) = self.windowed.divide(block, true)
        {
            self.whole(FlowRecord { element: Element::Block(head), ..record })?;
            record.element = Element::Block(tail);
        }
        self.whole(record)
    }

    fn left_out(&mut self, instructions: u64) {
        self.inner.left_out(instructions);
    }

    fn shows_itm(&self) -> bool {
        self.inner.shows_itm()
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        match self.phase {
            Phase::Before => self.tail.itm(record),
            Phase::Inside if self.left != Some(0) => self.inner.itm(record)?,
            Phase::Inside | Phase::After => {}
        }
        Ok(())
    }

    fn cut(&mut self, at: CaptureOffset) -> io::Result<()> {
        self.inner.cut(at)
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.inner.end_section()
    }

    fn finish(&mut self, complete: bool) -> io::Result<()> {
        self.inner.finish(complete)
    }
}

impl<E: FlowSink> FlowSink for Excerpt<E> {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        let ahead = self.windowed.ahead(repeated).filter(|phase| *phase == self.phase);
        let instructions = u64::from(repeated.totals().instructions);
        match ahead {
            Some(Phase::Before) if self.selection.before == 0 => {}
            Some(Phase::Inside) if self.left.is_none_or(|left| left > instructions) => {
                self.left = self.left.map(|left| left - instructions);
                self.inner.passage(repeated)?;
            }
            Some(Phase::After) => {}
            _ => return repeated.records().try_for_each(|record| self.record(record)),
        }
        self.windowed.pass(repeated);
        Ok(())
    }

    fn needs_places(&self) -> bool {
        self.inner.needs_places() || self.selection.window.needs_places()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Runs;
    use tracewalk::flow::EventKind;
    use tracewalk::ids::Address;
    use tracewalk_analysis::Position;
    use tracewalk_analysis::place::Happening;
    use tracewalk_analysis::samples::{event, irq, page, pages, taken, within};

    fn runs(selection: Selection) -> String {
        let elements = [
            within("main", 0, 8, taken()),
            within("sort", 0, 8, taken()),
            event(EventKind::ExceptionReturn),
            within("sort", 0, 8, taken()),
            irq(15, None, "swap"),
            within("swap", 0, 8, taken()),
        ];
        let section = Section { id: None, protocol: "mtb", number: 1, code: pages() };
        let mut out = Vec::new();
        let mut exporter = Excerpt::new(Runs::new(&mut out), selection);
        exporter.section(&section).unwrap();
        for element in elements {
            exporter.record(FlowRecord { element, at: CaptureOffset(0) }).unwrap();
        }
        exporter.end_section().unwrap();
        let text = String::from_utf8(out).unwrap().replace(" t32", "");
        text.lines().skip(1).collect::<Vec<_>>().join(", ")
    }

    fn nth(what: Happening, nth: u64) -> Place {
        Place::Happening { what, nth: nth.try_into().unwrap() }
    }

    fn at(function: &str, offset: u32) -> Place {
        Place::first(Happening::Address(Address::from(page(function) + offset)))
    }

    fn sort(count: u64) -> Place {
        nth(Happening::Function { name: "sort".to_owned(), offset: 0 }, count)
    }

    #[test]
    fn a_part_is_cut_at_instructions() {
        let part = |from: Option<Place>, to: Option<Place>| runs(Selection::of(Window { from, to }));
        assert_eq!(part(Some(sort(2)), None), "R 200 208, X 15 -, R 300 308");
        assert_eq!(part(Some(at("main", 4)), Some(sort(2))), "R 104 108, R 200 208, T");
        assert_eq!(part(Some(at("main", 2)), Some(at("main", 6))), "R 102 106");
        let counted = |count: u64| Some(Position::Instructions(count).into());
        assert_eq!(part(counted(2), counted(5)), "R 104 108, R 200 202");
        assert_eq!(part(Some(sort(3)), None), "");
        let interrupt = || Place::first(Happening::Exception(tracewalk_analysis::place::ExceptionName::Any));
        assert_eq!(part(Some(interrupt()), None), "X 15 -, R 300 308");
        assert_eq!(part(Some(sort(2)), Some(interrupt())), "R 200 208");
    }

    #[test]
    fn so_many_instructions_stand_around_a_place() {
        let around = |place, before, after| runs(Selection::around(place, before, after));
        assert_eq!(around(sort(2), 3, 2), "R 202 208, T, R 200 204");
        assert_eq!(around(sort(1), 99, 1), "R 100 108, R 200 202");
        assert_eq!(around(sort(2), 0, 6), "R 200 208, X 15 -, R 300 304");
        assert_eq!(around(at("sort", 4), 1, 1), "R 202 206");
    }
}

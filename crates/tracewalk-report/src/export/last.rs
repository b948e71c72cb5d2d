//! Only the end of a trace: the last N instructions and the events between them.

use std::io;

use tracewalk::span::CaptureOffset;

use super::tail::Tail;
use tracewalk_analysis::Section;
use tracewalk_analysis::analysis::{FlowSink, Repeated};
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;

/// Holds records back and passes on those of the last instructions of each source.
#[derive(Debug)]
pub struct LastInstructions<E> {
    inner: E,
    tail: Tail,
    /// The end of the section, if the trace does not end there.
    cut: Option<CaptureOffset>,
}

impl<E: Sink<FlowRecord>> LastInstructions<E> {
    /// Passes the last `instructions` instructions on to `inner`.
    pub const fn new(inner: E, instructions: u64) -> Self {
        Self { inner, tail: Tail::new(instructions), cut: None }
    }
}

impl<E: Sink<FlowRecord>> Sink<FlowRecord> for LastInstructions<E> {
    fn finish(&mut self, complete: bool) -> io::Result<()> {
        self.inner.finish(complete)
    }

    fn begin(&mut self) -> io::Result<()> {
        self.inner.begin()
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.tail.section(section);
        self.inner.section(section)
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        self.tail.record(record);
        Ok(())
    }

    fn left_out(&mut self, instructions: u64) {
        self.inner.left_out(instructions);
    }

    fn shows_itm(&self) -> bool {
        self.inner.shows_itm()
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        self.tail.itm(record);
        Ok(())
    }

    fn cut(&mut self, at: CaptureOffset) -> io::Result<()> {
        self.cut = Some(at);
        Ok(())
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.tail.release(&mut self.inner)?;
        self.cut.take().map_or(Ok(()), |at| self.inner.cut(at))?;
        self.inner.end_section()
    }
}

impl<E: FlowSink> FlowSink for LastInstructions<E> {
    fn passage(&mut self, repeated: &Repeated<'_>) -> io::Result<()> {
        self.tail.passage(repeated);
        Ok(())
    }

    fn needs_places(&self) -> bool {
        self.inner.needs_places()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Runs;
    use std::sync::Arc;
    use tracewalk::flow::{Element, EventKind};
    use tracewalk::ids::Address;
    use tracewalk::program::Program;
    use tracewalk_analysis::Code;
    use tracewalk_analysis::samples::{block, event, taken};

    fn last(count: u64, elements: &[Element]) -> String {
        let mut program = Program::new();
        program.add(Address::new(0x100), &[0; 0x400]).unwrap();
        let code = Code { program: Arc::new(program), ..Code::unknown() };
        let section = Section { id: None, protocol: "mtb", number: 1, code: Arc::new(code) };
        let mut out = Vec::new();
        let mut exporter = LastInstructions::new(Runs::new(&mut out), count);
        exporter.section(&section).unwrap();
        for &element in elements {
            exporter.record(FlowRecord { element, at: CaptureOffset(0) }).unwrap();
        }
        exporter.end_section().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_last_instructions_are_counted_exactly_and_events_between_them_stay() {
        let elements = [
            block(0x100, 0x108, taken()),
            event(EventKind::ExceptionReturn),
            block(0x200, 0x208, taken()),
            event(EventKind::ExceptionReturn),
            block(0x300, 0x304, taken()),
        ];
        assert_eq!(last(1, &elements), "S -\nR 302 304 t32\n");
        assert_eq!(last(4, &elements), "S -\nR 204 208 t32\nT\nR 300 304 t32\n");
        assert_eq!(last(6, &elements), "S -\nT\nR 200 208 t32\nT\nR 300 304 t32\n");
        assert_eq!(last(99, &elements), "S -\nR 100 108 t32\nT\nR 200 208 t32\nT\nR 300 304 t32\n");
        assert_eq!(last(0, &elements), "S -\n");
    }
}

//! Only the end of a trace: the last so many instructions and what happened between them.

use std::collections::VecDeque;
use std::io;

use tracewalk::flow::{Block, Element, Event, EventKind};
use tracewalk::ids::Location;
use tracewalk::isa::classify;
use tracewalk::span::CaptureOffset;

use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, CodeInContext, Doubting, Section};

/// Holds records back and passes on those of the last instructions of each source.
#[derive(Debug)]
pub struct LastInstructions<E> {
    inner: E,
    instructions: u64,
    section: Option<Section>,
    held: VecDeque<Held>,
    /// How many instructions `held` has.
    holding: u64,
    /// The last change of context that was dropped, where code depends on it.
    context: Option<FlowRecord>,
    /// What is in doubt behind those that were dropped.
    doubting: Doubting,
    /// Where the section ends, if the trace does not.
    cut: Option<CaptureOffset>,
}

/// Something that is held back.
#[derive(Debug)]
enum Held {
    Flow(FlowRecord),
    Itm(ItmRecord),
}

/// More records than this are not held, so that memory stays bounded in a trace of events without instructions.
const MOST_RECORDS: usize = 1 << 20;

impl<E: Sink<FlowRecord>> LastInstructions<E> {
    /// Passes the last `instructions` instructions on to `inner`.
    pub const fn new(inner: E, instructions: u64) -> Self {
        Self {
            inner,
            instructions,
            section: None,
            held: VecDeque::new(),
            holding: 0,
            context: None,
            doubting: Doubting::new(),
            cut: None,
        }
    }

    /// Drops what is older than the last instructions, in whole records.
    fn drop_old(&mut self) {
        while let Some(oldest) = self.held.front() {
            let count = instructions(oldest);
            let kept = self.holding - count < self.instructions
                // What happened in front of the first instruction that is kept.
                || (count == 0 && self.holding == self.instructions && self.instructions != 0);
            if kept && self.held.len() <= MOST_RECORDS {
                break;
            }
            self.holding -= count;
            let dropped = match self.held.pop_front() {
                Some(Held::Flow(record)) => Some(record),
                Some(Held::Itm(_)) | None => None,
            };
            if let Some(dropped) = &dropped {
                self.doubting.element(&dropped.element, || dropped.at);
            }
            let is_context = |record: &FlowRecord| {
                matches!(record.element, Element::Event(Event { kind: EventKind::Context { .. }, .. }))
            };
            let depends = || {
                self.section.as_ref().is_some_and(|section| section.code.program.scopes().next().is_some())
            };
            if let Some(context) = dropped.filter(is_context).filter(|_| depends()) {
                self.context = Some(context);
            }
        }
    }
}

impl<E: Sink<FlowRecord>> Sink<FlowRecord> for LastInstructions<E> {
    fn begin(&mut self) -> io::Result<()> {
        self.inner.begin()
    }

    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.section = Some(section.clone());
        self.inner.section(section)
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        let record = Held::Flow(record);
        self.holding += instructions(&record);
        self.held.push_back(record);
        self.drop_old();
        Ok(())
    }

    fn left_out(&mut self, instructions: u64) {
        self.inner.left_out(instructions);
    }

    fn shows_itm(&self) -> bool {
        self.inner.shows_itm()
    }

    fn itm(&mut self, record: &ItmRecord) -> io::Result<()> {
        self.held.push_back(Held::Itm(record.clone()));
        self.drop_old();
        Ok(())
    }

    fn cut(&mut self, at: CaptureOffset) -> io::Result<()> {
        self.cut = Some(at);
        Ok(())
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.inner.go_on(std::mem::take(&mut self.doubting));
        let mut code = self.section.take().map(|section| CodeInContext::new(section.code));
        if let (Some(code), Some(context)) = (&mut code, self.context.take()) {
            code.element(&context.element);
            self.inner.record(context)?;
        }
        let mut surplus = std::mem::take(&mut self.holding).saturating_sub(self.instructions);
        for held in self.held.drain(..) {
            let mut record = match held {
                Held::Flow(record) => record,
                Held::Itm(record) => {
                    self.inner.itm(&record)?;
                    continue;
                }
            };
            if let Some(code) = &mut code {
                code.element(&record.element);
            }
            if let (Element::Block(block), Some(code)) = (&mut record.element, code.as_deref()) {
                let skip = surplus.min(block.instructions.saturating_sub(1).into());
                skip_instructions(block, skip, code);
                surplus = 0;
            }
            self.inner.record(record)?;
        }
        self.cut.take().map_or(Ok(()), |at| self.inner.cut(at))?;
        self.inner.end_section()
    }
}

const fn instructions(held: &Held) -> u64 {
    match held {
        Held::Flow(FlowRecord { element: Element::Block(block), .. }) => block.instructions as u64,
        Held::Flow(_) | Held::Itm(_) => 0,
    }
}

/// Takes the first `count` instructions off a block that has more.
fn skip_instructions(block: &mut Block, count: u64, code: &Code) {
    for _ in 0..count {
        let at = Location::new(block.start, block.isa);
        let bytes = code.program.code(at.address).unwrap_or_default();
        // Flow has been through this code, so it can be classified.
        let Ok(instruction) = classify(bytes, at.address, at.isa) else { return };
        block.start = at.after(instruction.bytes.into()).address;
        block.instructions -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Runs;
    use std::sync::Arc;
    use tracewalk::ids::Address;
    use tracewalk::program::Program;
    use tracewalk::span::CaptureOffset;
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

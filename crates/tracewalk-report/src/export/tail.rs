//! The newest part of a trace, held back: the last N instructions and the events between them.

mod held;

use std::collections::VecDeque;
use std::io;

use tracewalk::flow::{Block, Element, Event, EventKind};
use tracewalk::ids::Location;
use tracewalk::isa::classify;

use tracewalk_analysis::analysis::Repeated;
use tracewalk_analysis::record::{FlowRecord, ItmRecord};
use tracewalk_analysis::sink::Sink;
use tracewalk_analysis::{Code, CodeInContext, Doubt, Section};

use held::Held;

/// The records of the last instructions.
#[derive(Debug)]
pub(super) struct Tail {
    instructions: u64,
    section: Option<Section>,
    held: VecDeque<Held>,
    /// The number of instructions in `held`.
    holding: u64,
    /// The last change of context that was dropped, if code depends on it.
    context: Option<FlowRecord>,
    /// The doubt after the dropped records.
    doubt: Doubt,
}

/// The most records that are held, so that memory stays bounded for a trace of events without instructions.
const MOST_RECORDS: usize = 1 << 20;

impl Tail {
    /// A tail of this number of instructions.
    pub(super) const fn new(instructions: u64) -> Self {
        Self {
            instructions,
            section: None,
            held: VecDeque::new(),
            holding: 0,
            context: None,
            doubt: Doubt::new(),
        }
    }

    /// A source's records follow.
    pub(super) fn section(&mut self, section: &Section) {
        *self = Self { section: Some(section.clone()), ..Self::new(self.instructions) };
    }

    /// Takes a record.
    pub(super) fn record(&mut self, record: FlowRecord) {
        let record = Held::from(record);
        self.holding += record.instructions();
        self.held.push_back(record);
        self.drop_old();
    }

    /// Takes a passage: blocks, exceptions and their returns, and cycles.
    pub(super) fn passage(&mut self, repeated: &Repeated<'_>) {
        if repeated.totals().instructions > 0 {
            let kept = Held::Passage(repeated.keep());
            self.holding += kept.instructions();
            self.held.push_back(kept);
            self.drop_old();
        } else {
            repeated.records().for_each(|record| self.record(record));
        }
    }

    /// Splits the first passage, so that it is dropped up to the first instruction that is kept.
    fn take_apart(&mut self) {
        self.holding = 0;
        for held in std::mem::take(&mut self.held) {
            match held {
                Held::Passage(passage) => passage.records().for_each(|record| self.record(record)),
                other => {
                    self.holding += other.instructions();
                    self.held.push_back(other);
                    self.drop_old();
                }
            }
        }
    }

    /// Takes a report of an ITM.
    pub(super) fn itm(&mut self, record: &ItmRecord) {
        self.held.push_back(Held::Itm(Box::new(record.clone())));
        self.drop_old();
    }

    /// Drops records older than the last instructions.
    fn drop_old(&mut self) {
        while let Some(oldest) = self.held.front() {
            let count = oldest.instructions();
            let after = self.holding - count;
            let kept = after < self.instructions
                // Events before the first instruction that is kept; it may be the end of a passage.
                || ((count == 0 || matches!(oldest, Held::Passage(_)))
                    && after == self.instructions
                    && self.instructions != 0);
            if kept && self.held.len() <= MOST_RECORDS {
                break;
            }
            self.holding -= count;
            let dropped = self.held.pop_front().and_then(Held::into_flow);
            if let Some(dropped) = &dropped {
                self.doubt.element(&dropped.element, || dropped.at);
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

    /// Hands on the records that are held.
    pub(super) fn release(&mut self, sink: &mut impl Sink<FlowRecord>) -> io::Result<()> {
        self.take_apart();
        sink.go_on(std::mem::take(&mut self.doubt));
        let mut code = self.section.take().map(|section| CodeInContext::new(section.code));
        if let (Some(code), Some(context)) = (&mut code, self.context.take()) {
            code.element(&context.element);
            sink.record(context)?;
        }
        let mut surplus = std::mem::take(&mut self.holding).saturating_sub(self.instructions);
        for held in self.held.drain(..) {
            let mut record = match held {
                Held::Itm(record) => {
                    sink.itm(&record)?;
                    continue;
                }
                Held::Block(block) => block.into(),
                Held::Other(record) => *record,
                Held::Passage(_) => continue,
            };
            if let Some(code) = &mut code {
                code.element(&record.element);
            }
            if let (Element::Block(block), Some(code)) = (&mut record.element, code.as_deref()) {
                let skip = surplus.min(block.instructions.saturating_sub(1).into());
                skip_instructions(block, skip, code);
                surplus = 0;
            }
            sink.record(record)?;
        }
        Ok(())
    }
}

/// Removes the first `count` instructions of a block that has more.
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

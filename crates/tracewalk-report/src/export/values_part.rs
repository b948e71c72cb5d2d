//! A part of flow with values: from one place to another, around a place, or the last instructions.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tracewalk::flow::{Block, Element};
use tracewalk::span::CaptureOffset;
use tracewalk_analysis::record::FlowRecord;
use tracewalk_analysis::values::{Proven, Step, ValueSink, ValueSummary};
use tracewalk_analysis::{Code, Phase, Section, Windowed};

use super::Selection;

/// Hands on the last instructions of each source.
pub struct LastValues<'a> {
    inner: &'a mut dyn ValueSink,
    tail: Tail,
}

/// Hands on a part of each source.
pub struct ValuesExcerpt<'a> {
    inner: &'a mut dyn ValueSink,
    selection: Selection,
    windowed: Windowed,
    tail: Tail,
    phase: Phase,
    /// The number of instructions of the part that may still follow.
    left: Option<u64>,
    /// The part of the last block whose instructions are still to come.
    rest: Option<Block>,
}

/// What is handed on.
#[derive(Debug)]
enum Held {
    Element(FlowRecord),
    Step(CaptureOffset, Step, Proven),
}

impl Held {
    const fn instructions(&self) -> u64 {
        matches!(self, Self::Step(_, Step::Instruction(_), _)) as u64
    }

    fn hand_on(&self, sink: &mut dyn ValueSink) -> io::Result<()> {
        match self {
            Self::Element(record) => sink.element(record),
            Self::Step(at, step, proven) => sink.step(*at, step, proven),
        }
    }
}

/// The last instructions, and what stands between them.
#[derive(Debug)]
struct Tail {
    most: u64,
    held: VecDeque<Held>,
    instructions: u64,
}

impl Tail {
    const fn new(most: u64) -> Self {
        Self { most, held: VecDeque::new(), instructions: 0 }
    }

    fn push(&mut self, held: Held, sink: &mut dyn ValueSink) {
        self.instructions += held.instructions();
        self.held.push_back(held);
        while let Some(oldest) = self.held.front()
            && self.instructions - oldest.instructions() >= self.most
        {
            self.instructions -= oldest.instructions();
            if let Held::Element(record) = oldest {
                sink.pass(record);
            }
            self.held.pop_front();
        }
    }

    fn release(&mut self, sink: &mut dyn ValueSink) -> io::Result<()> {
        self.instructions = 0;
        self.held.drain(..).try_for_each(|held| held.hand_on(sink))
    }
}

impl<'a> LastValues<'a> {
    /// Hands on the last `instructions` instructions to `inner`.
    pub fn new(inner: &'a mut dyn ValueSink, instructions: u64) -> Self {
        Self { inner, tail: Tail::new(instructions) }
    }
}

impl ValueSink for LastValues<'_> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.inner.section(section)
    }

    fn element(&mut self, record: &FlowRecord) -> io::Result<()> {
        self.tail.push(Held::Element(*record), self.inner);
        Ok(())
    }

    fn pass(&mut self, record: &FlowRecord) {
        self.inner.pass(record);
    }

    fn step(&mut self, at: CaptureOffset, step: &Step, proven: &Proven) -> io::Result<()> {
        self.tail.push(Held::Step(at, *step, proven.clone()), self.inner);
        Ok(())
    }

    fn end_section(&mut self, summary: &ValueSummary) -> io::Result<()> {
        self.tail.release(self.inner)?;
        self.inner.end_section(summary)
    }
}

impl<'a> ValuesExcerpt<'a> {
    /// Hands on the part to `inner`.
    pub fn new(inner: &'a mut dyn ValueSink, selection: Selection) -> Self {
        let windowed = selection.window.begin(&Arc::new(Code::unknown()));
        let (tail, left) = (Tail::new(selection.before), selection.at_most);
        Self { inner, selection, windowed, tail, phase: Phase::Before, left, rest: None }
    }

    fn take(&mut self, held: Held) -> io::Result<()> {
        match self.phase {
            Phase::Before => self.tail.push(held, self.inner),
            Phase::Inside if self.left != Some(0) => {
                self.tail.release(self.inner)?;
                self.left = self.left.map(|left| left - held.instructions());
                held.hand_on(self.inner)?;
            }
            Phase::Inside | Phase::After => {}
        }
        Ok(())
    }
}

impl ValueSink for ValuesExcerpt<'_> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.windowed = self.selection.window.begin(&section.code);
        self.tail = Tail::new(self.selection.before);
        (self.phase, self.left, self.rest) = (Phase::Before, self.selection.at_most, None);
        self.inner.section(section)
    }

    fn element(&mut self, record: &FlowRecord) -> io::Result<()> {
        match record.element {
            Element::Block(block) => self.rest = Some(block),
            _ => self.phase = self.windowed.element(&record.element, record.at),
        }
        self.take(Held::Element(*record))
    }

    fn pass(&mut self, record: &FlowRecord) {
        self.inner.pass(record);
    }

    fn step(&mut self, at: CaptureOffset, step: &Step, proven: &Proven) -> io::Result<()> {
        if let (Step::Instruction(_), Some(rest)) = (step, self.rest.take()) {
            let (first, rest) = match self.windowed.divide_after(&rest, 1) {
                Some((first, rest)) => (first, Some(rest)),
                None => (rest, None),
            };
            self.rest = rest;
            self.phase = self.windowed.element(&Element::Block(first), at);
        }
        self.take(Held::Step(at, *step, proven.clone()))
    }

    fn end_section(&mut self, summary: &ValueSummary) -> io::Result<()> {
        self.inner.end_section(summary)
    }
}

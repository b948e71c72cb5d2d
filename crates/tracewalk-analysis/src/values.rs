//! What was in registers and memory: joins a source's flow and the prover of [`tracewalk_values`].
//!
//! The prover sees many instructions before it states anything, so elements wait here for the instructions before them.

mod near;
mod search;

use std::collections::VecDeque;
use std::io;

use tracewalk::directive::BeginReason;
use tracewalk::flow::{Element, Event, EventKind};
use tracewalk::ids::{Address, Location};
use tracewalk::program::Program;
use tracewalk::span::CaptureOffset;
use tracewalk_values::Walk;

use crate::Section;
use crate::analysis::FlowSink;
use crate::record::FlowRecord;
use crate::section::CodeInContext;
use crate::sink::Sink;

pub use near::Near;
pub use search::{Possible, Search, Searching};
pub use tracewalk_values::{
    Base, Effect, End, Image, Instruction, Origin, Profile, Proven, ProvenAccess, Register, Registers, Step,
    Summary, Transfer, Values,
};

/// What is known of a source's processor without its path.
#[derive(Clone, Debug)]
pub struct ValueSetup {
    /// Constants and memory.
    pub image: Image,
    /// The kind of processor.
    pub profile: Profile,
    /// Whether it is an ARMv7-M, whose EXC_RETURN has few values.
    pub is_armv7m: bool,
    /// Whether the trace states for each instruction if its condition held.
    pub states_conditions: bool,
    /// How a program begins; used if the path begins there.
    pub begin: Option<Begin>,
    /// The processor when it halted; used if the path ends there.
    pub halt: Option<Halt>,
}

/// How a program begins.
#[derive(Clone, Debug)]
pub struct Begin {
    /// The first instruction.
    pub at: Address,
    /// The registers.
    pub registers: Registers,
    /// The bytes of variables that were loaded with the program.
    pub variables: Vec<(u64, Vec<u8>)>,
}

/// A halted processor.
#[derive(Clone, Debug)]
pub struct Halt {
    /// The next instruction; `None` if that is where the path ends in any case.
    pub at: Option<Address>,
    /// Registers and memory.
    pub end: End,
    /// No branch was taken after the end of the path.
    pub is_straight: bool,
}

/// What the values of a source rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueSummary {
    /// How much was proven.
    pub proven: Summary,
    /// The path begins where the program does.
    pub from_begin: bool,
    /// Registers and memory of the halted processor; `None` if there are none.
    pub halt: Option<HaltUse>,
}

/// Whether registers and memory of the halted processor were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltUse {
    /// They were.
    Used,
    /// The processor was not halted where the path ends, at this address if that is known.
    Elsewhere {
        /// Where the path ends.
        path: Option<Address>,
        /// Where the processor was halted.
        halted: Address,
    },
    /// They contradict the path.
    Contradicts,
}

/// Receives a source's flow with values.
pub trait ValueSink {
    /// The output begins.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn begin(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// A source's records follow.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn section(&mut self, section: &Section) -> io::Result<()>;

    /// An element. Its steps follow one by one: the instructions of a block, or an exception's.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn element(&mut self, record: &FlowRecord) -> io::Result<()>;

    /// An element that is not shown, which elements and steps after it may depend on.
    fn pass(&mut self, record: &FlowRecord);

    /// A step of the last element, and what is proven of it.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn step(&mut self, at: CaptureOffset, step: &Step, proven: &Proven) -> io::Result<()>;

    /// The source has no more records.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn end_section(&mut self, summary: &ValueSummary) -> io::Result<()>;

    /// All sources have been passed, to their ends if `complete`.
    ///
    /// # Errors
    ///
    /// If an output cannot be written.
    fn finish(&mut self, _complete: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Proves the values of one source's flow, and hands them on.
pub struct Proving<'a> {
    setup: Option<ValueSetup>,
    code: Option<CodeInContext>,
    walk: Walk,
    values: Option<Values>,
    /// The reason why the trace begins, while nothing has run.
    begins: Option<BeginReason>,
    from_begin: bool,
    notes_registers: bool,
    steps: Vec<Step>,
    waiting: Waiting<'a>,
}

/// Elements that wait for their steps.
struct Waiting<'a> {
    sink: &'a mut dyn ValueSink,
    /// Elements, each with the number of its steps that are still to come, and whether it was handed on.
    elements: VecDeque<(FlowRecord, usize, bool)>,
    error: Option<io::Error>,
}

impl<'a> Proving<'a> {
    /// Proves values of a source that is set up like this.
    pub fn new(setup: ValueSetup, sink: &'a mut dyn ValueSink) -> Self {
        let walk = Walk::new(setup.states_conditions, setup.profile == Profile::M);
        let waiting = Waiting { sink, elements: VecDeque::new(), error: None };
        Self {
            setup: Some(setup),
            code: None,
            walk,
            values: None,
            begins: None,
            from_begin: false,
            notes_registers: false,
            steps: Vec::new(),
            waiting,
        }
    }

    /// The same with the registers before each step.
    pub(crate) fn with_registers(self) -> Self {
        Self { notes_registers: true, ..self }
    }

    /// The path has its first instruction.
    fn begin(&mut self, at: Option<Address>) {
        let Some(setup) = &mut self.setup else { return };
        let mut image = std::mem::take(&mut setup.image);
        let is_enabled = self.begins == Some(BeginReason::Enabled);
        let begin = setup.begin.as_ref().filter(|begin| is_enabled && Some(begin.at) == at);
        self.from_begin = begin.is_some();
        let mut registers = [None; 32];
        if let Some(begin) = begin {
            registers = begin.registers;
            for (address, bytes) in &begin.variables {
                image.add_initial(*address, bytes);
            }
        }
        let values = Values::new(image, setup.profile, &registers);
        let values = if setup.is_armv7m { values.on_armv7m() } else { values };
        self.values = Some(if self.notes_registers { values.with_registers() } else { values });
    }

    fn hand_on(&mut self) {
        let Some(values) = &mut self.values else { return };
        for step in self.steps.drain(..) {
            values.push(step, &mut |step: &Step, proven: &Proven| self.waiting.step(step, proven));
        }
    }

    /// Whether the halted processor is at the end of the path; walks on to it if nothing else can have happened.
    fn reaches(&mut self, halt: &Halt, place: Option<Location>) -> bool {
        let Some(at) = halt.at else { return true };
        let Some(mut place) = place else { return false };
        if place.address == at {
            return true;
        }
        let Some(code) = self.code.as_ref().filter(|_| halt.is_straight) else { return false };
        let on = straight(&code.program, &mut place, at);
        let Some(on) = on else { return false };
        self.steps.extend(on);
        self.hand_on();
        true
    }

    fn end(&mut self) -> io::Result<()> {
        if self.values.is_none() {
            self.begin(None);
        }
        let place = self.walk.finish(&mut self.steps);
        self.hand_on();
        let halt = self.setup.take().and_then(|setup| setup.halt);
        let mut used = halt.as_ref().map(|halt| {
            let reaches = self.reaches(halt, place);
            match halt.at.filter(|_| !reaches) {
                Some(halted) => HaltUse::Elsewhere { path: place.map(|place| place.address), halted },
                None => HaltUse::Used,
            }
        });
        let end = halt.filter(|_| used == Some(HaltUse::Used)).map(|halt| halt.end);
        let Some(values) = self.values.take() else { return Ok(()) };
        let waiting = &mut self.waiting;
        let proven =
            values.finish(end.as_ref(), &mut |step: &Step, proven: &Proven| waiting.step(step, proven));
        waiting.flush();
        if proven.end_contradicts {
            used = Some(HaltUse::Contradicts);
        }
        waiting.sink.end_section(&ValueSummary { proven, from_begin: self.from_begin, halt: used })?;
        waiting.error.take().map_or(Ok(()), Err)
    }
}

/// The steps from a place to an address without a branch that is taken.
fn straight(program: &Program, place: &mut Location, to: Address) -> Option<Vec<Step>> {
    /// The most instructions without a branch.
    const MOST: usize = 4096;
    let mut steps = Vec::new();
    while place.address != to {
        let instruction = Walk::read_on(program, *place)?;
        if steps.len() == MOST || place.address > to {
            return None;
        }
        *place = place.after(instruction.bytes.into());
        steps.push(Step::Instruction(Instruction { next: Some(*place), ..instruction }));
    }
    Some(steps)
}

impl Waiting<'_> {
    fn step(&mut self, step: &Step, proven: &Proven) {
        self.flush();
        // Steps after the last element are of no element.
        let Some((record, steps, _)) = self.elements.front_mut() else { return };
        *steps -= 1;
        let at = record.at;
        if self.error.is_none() {
            self.error = self.sink.step(at, step, proven).err();
        }
        self.flush();
    }

    /// Hands on the elements that are next, and removes those that have no more steps.
    fn flush(&mut self) {
        while let Some((record, steps, handed_on)) = self.elements.front_mut() {
            if !*handed_on && self.error.is_none() {
                self.error = self.sink.element(record).err();
            }
            *handed_on = true;
            if *steps > 0 {
                return;
            }
            self.elements.pop_front();
        }
    }
}

impl Sink<FlowRecord> for Proving<'_> {
    fn section(&mut self, section: &Section) -> io::Result<()> {
        self.code = Some(CodeInContext::new(section.code.clone()));
        self.waiting.sink.section(section)
    }

    fn record(&mut self, record: FlowRecord) -> io::Result<()> {
        let Some(code) = &mut self.code else { return Ok(()) };
        code.element(&record.element);
        match record.element {
            Element::Event(Event { kind: EventKind::TraceOn(reason), .. }) if self.values.is_none() => {
                self.begins = Some(reason);
            }
            Element::Block(block) if self.values.is_none() => self.begin(Some(block.start)),
            Element::Event(Event {
                kind: EventKind::Exception { .. } | EventKind::ExceptionReturn, ..
            })
            | Element::Gap(_)
                if self.values.is_none() =>
            {
                self.begin(None);
            }
            _ => {}
        }
        let Some(code) = &self.code else { return Ok(()) };
        let steps = self.walk.element(&record.element, &code.program, &mut self.steps);
        self.waiting.elements.push_back((record, steps, false));
        self.hand_on();
        self.waiting.error.take().map_or(Ok(()), Err)
    }

    fn end_section(&mut self) -> io::Result<()> {
        self.end()
    }
}

impl FlowSink for Proving<'_> {}

//! The path of a program, in steps that do not depend on the form of the trace.
//!
//! Traces cut the same path into different blocks: by periodic synchronisation, by timestamps, by protocol. A step is as long as
//! possible, and ends only if execution does not continue at the next address.
use std::sync::Arc;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use tracewalk::flow::{Element, EventKind, GapReason};
use tracewalk::ids::{Address, Exception, Isa};
use tracewalk::program::Scope;

use crate::analysis::Repeated;
use crate::call_stack::{CallStack, Frame, FrameKind, Interruption, Unobserved};
use crate::{Code, CodeInContext};

/// A part of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Instructions that ran in the order of their addresses.
    Run(Run),
    /// An exception was taken.
    Exception(Option<Exception>),
    /// Execution reached code that no image holds.
    Missing(Address),
    /// Unknown code ran.
    Lost,
}

/// Instructions that ran in the order of their addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The first instruction.
    pub start: Address,
    /// The address after the last instruction.
    pub end: Address,
    /// The instruction set.
    pub isa: Isa,
    /// The contexts in which the code is visible.
    pub scope: Scope,
}

/// Follows flow and reports its steps.
#[derive(Debug)]
pub struct Walk {
    calls: CallStack<()>,
    ignore_interrupts: bool,
    run: Option<Run>,
    /// How many steps are complete.
    steps: u64,
}

/// The step of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The element belongs to the step of this number, from 0.
    OfStep(u64),
    /// The element does not belong to the path.
    Apart,
}

impl Walk {
    /// Begins a path.
    #[must_use]
    pub fn new(code: Arc<Code>, ignore_interrupts: bool) -> Self {
        Self { calls: CallStack::new(code), ignore_interrupts, run: None, steps: 0 }
    }

    /// Takes the next element; calls `complete` with each step that is complete.
    pub fn element(&mut self, element: &Element, complete: impl FnMut(Step)) -> Part {
        let in_interrupt = self.ignore_interrupts && self.is_in_interrupt();
        self.calls.element(element, &mut Unobserved);
        self.walk(element, in_interrupt, complete)
    }

    /// Takes repeated elements; calls `complete` with each step that is complete.
    pub fn passage(&mut self, repeated: &Repeated<'_>, mut complete: impl FnMut(Step)) {
        if self.ignore_interrupts {
            // Whether an element belongs to an interrupt depends on the stack at that element.
            for element in repeated.elements() {
                self.element(&element, &mut complete);
            }
            return;
        }
        self.calls.passage(repeated, &mut Unobserved);
        for element in repeated.elements() {
            self.walk(&element, false, &mut complete);
        }
    }

    /// Takes an element that the call stack has taken.
    fn walk(&mut self, element: &Element, in_interrupt: bool, mut complete: impl FnMut(Step)) -> Part {
        let step = match element {
            Element::Block(block) => {
                // The last block of a handler belongs to the handler, although the stack has left it.
                if in_interrupt {
                    return Part::Apart;
                }
                let scope = self.code().scope_at(block.start);
                let goes_on =
                    |run: &&mut Run| (run.end, run.isa, run.scope) == (block.start, block.isa, scope);
                let Some(run) = self.run.as_mut().filter(goes_on) else {
                    self.finish(complete);
                    self.run = Some(Run { start: block.start, end: block.end, isa: block.isa, scope });
                    return Part::OfStep(self.steps);
                };
                run.end = block.end;
                return Part::OfStep(self.steps);
            }
            Element::Event(event) => match event.kind {
                EventKind::Exception { exception, .. } => {
                    if in_interrupt || (self.ignore_interrupts && self.is_in_interrupt()) {
                        return Part::Apart;
                    }
                    Step::Exception(exception.map(in_every_trace))
                }
                EventKind::TraceOn(_) if self.steps > 0 || self.run.is_some() => Step::Lost,
                _ => return Part::Apart,
            },
            Element::Proof(_) => return Part::Apart,
            Element::Gap(gap) => match gap.reason {
                GapReason::NoCode(at) | GapReason::Undecodable(at, _) => Step::Missing(at.address),
                _ => Step::Lost,
            },
        };
        self.finish(&mut complete);
        complete(step);
        self.steps += 1;
        Part::OfStep(self.steps - 1)
    }

    /// The path ends here.
    pub fn finish(&mut self, mut complete: impl FnMut(Step)) {
        if let Some(run) = self.run.take() {
            complete(Step::Run(run));
            self.steps += 1;
        }
    }

    /// How many steps are complete.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// The program as the current context sees it.
    #[must_use]
    pub const fn code(&self) -> &CodeInContext {
        self.calls.code()
    }

    /// The functions that are running, outermost first.
    pub fn frames(&self) -> impl DoubleEndedIterator<Item = &Frame<()>> {
        self.calls.frames()
    }

    fn is_in_interrupt(&self) -> bool {
        let handled = self.calls.frames().filter_map(|frame| match &frame.kind {
            FrameKind::Exception(interruption) => Some(interruption),
            FrameKind::Root | FrameKind::Call { .. } => None,
        });
        let is_interrupt = |it: &Interruption| !it.exception.is_some_and(Exception::is_synchronous);
        handled.chain(self.calls.taken()).any(is_interrupt)
    }
}

/// A digest of a path: a number for every [`CHUNK`] steps, by which two paths of any length are compared.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    chunks: Vec<u64>,
    hasher: DefaultHasher,
    steps: u64,
}

/// The exception as traces of each protocol can state it. For A and R profile, ETMv3 and PFT distinguish calls, ETMv4 distinguishes
/// faults of data (IHI 0014Q, table 7.12; IHI 0064).
const fn in_every_trace(exception: Exception) -> Exception {
    let class = match exception {
        Exception::Ar(8) => 0,
        Exception::Ar(1) => 1,
        Exception::Ar(2 | 3 | 10) => 2,
        Exception::Ar(9) => 3,
        Exception::Ar(4) => 4,
        Exception::Ar(11) | Exception::ArType(6) => 11,
        Exception::Ar(12) | Exception::ArType(7 | 10) => 12,
        Exception::Ar(14) => 14,
        Exception::Ar(15) => 15,
        other => return other,
    };
    Exception::ArType(class)
}

/// The number of steps that a digest's number covers.
pub const CHUNK: u64 = 1 << 12;

impl Digest {
    /// The next step.
    pub fn add(&mut self, step: Step) {
        step.hash(&mut self.hasher);
        self.steps += 1;
        if self.steps.is_multiple_of(CHUNK) {
            self.chunks.push(std::mem::take(&mut self.hasher).finish());
        }
    }

    /// There are no more steps.
    pub fn finish(&mut self) {
        if !self.steps.is_multiple_of(CHUNK) {
            self.chunks.push(std::mem::take(&mut self.hasher).finish());
        }
    }

    /// The first step of the stretch of [`CHUNK`] steps in which the paths differ; `None` if they are the same.
    #[must_use]
    pub fn differs_in(&self, other: &Self) -> Option<u64> {
        let longest = self.chunks.len().max(other.chunks.len());
        let index = (0..longest).find(|index| self.chunks.get(*index) != other.chunks.get(*index))?;
        Some(index as u64 * CHUNK)
    }
}

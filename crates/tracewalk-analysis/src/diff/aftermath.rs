//! One of two paths around the point at which they part.

use std::sync::Arc;

use tracewalk::flow::{Block, Element, EventKind, GapReason};
use tracewalk::ids::{Address, Exception, Location};
use tracewalk::program::Scope;

use super::Parting;
use super::path::{Part, Walk};
use crate::call_stack::{FrameKind, FunctionId};
use crate::{Code, CodePlace};

/// Follows a path up to the point at which it parts from another one, and a little further.
#[derive(Debug)]
pub struct Aftermath {
    walk: Walk,
    parting: Parting,
    /// The number of instructions that both paths have in common.
    pub common: u64,
    /// The last instruction that both have executed.
    pub last: Option<CodePlace>,
    /// The functions that were running then, outermost first.
    pub stack: Vec<Called>,
    /// The next functions and instructions of this path.
    pub next: Vec<Next>,
    parted: bool,
}

/// A function that is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Called {
    /// The function.
    pub function: FunctionId,
    /// The instruction that called it, if one did.
    pub site: Option<CodePlace>,
    /// Set if the function handles an exception.
    pub handles: Option<Option<Exception>>,
}

/// The next event on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Instructions ran, the first of them here.
    Ran {
        /// The first instruction.
        start: CodePlace,
        /// The number of instructions up to the next event.
        instructions: u32,
    },
    /// An exception was taken.
    Exception(Option<Exception>),
    /// Execution was lost.
    Lost,
    /// Execution reached code that no image holds.
    Missing(Address),
    /// The trace ends.
    End,
}

/// The number of next events that are kept.
const MOST_NEXT: usize = 5;

impl Aftermath {
    /// Whether the trace merely ends at the point at which the paths part.
    #[must_use]
    pub fn ends(&self) -> bool {
        matches!(self.next.first(), Some(Next::End) | None)
    }

    /// Begins a path.
    #[must_use]
    pub fn new(code: Arc<Code>, ignore_interrupts: bool, parting: Parting) -> Self {
        Self {
            walk: Walk::new(code, ignore_interrupts),
            parting,
            common: 0,
            last: None,
            stack: Vec::new(),
            next: Vec::new(),
            parted: false,
        }
    }

    /// Takes the next element. Returns whether more are needed.
    pub fn element(&mut self, element: &Element) -> bool {
        // The step before the one that differs may be complete only with the next element.
        let is_near = !self.parted && self.walk.steps() + 1 >= self.parting.step;
        let stack = if is_near { self.running() } else { Vec::new() };
        let Part::OfStep(step) = self.walk.element(element, |_| {}) else { return true };
        if self.parted {
            self.did(element);
        } else if let Element::Block(block) = element {
            self.block(block, step, stack);
        } else if step >= self.parting.step {
            self.part(stack);
            self.did(element);
        }
        self.next.len() < MOST_NEXT
    }

    /// The trace ends here.
    pub fn finish(&mut self) {
        if self.next.len() >= MOST_NEXT {
            return;
        }
        if !self.parted {
            let stack = self.running();
            self.part(stack);
        }
        self.next.push(Next::End);
    }

    fn block(&mut self, block: &Block, step: u64, stack: Vec<Called>) {
        let end = match self.parting.inside.filter(|_| step == self.parting.step) {
            Some(inside) => inside.max(block.start).min(block.end),
            None if step >= self.parting.step => block.start,
            None => block.end,
        };
        if end == block.end {
            self.common += u64::from(block.instructions);
            self.last = Some(self.walk.code().place(block.last));
            return;
        }
        // The other path left in the middle of this block, or before it.
        let mut common = 0;
        let mut at = Location::new(block.start, block.isa);
        while at.address < end && common < block.instructions {
            self.last = Some(self.walk.code().place(at.address));
            at.address = self.walk.code().after(at);
            common += 1;
        }
        self.common += u64::from(common);
        let stack = if common > 0 { self.running() } else { stack };
        self.part(stack);
        let start = self.walk.code().place(at.address);
        self.next.push(Next::Ran { start, instructions: block.instructions - common });
    }

    fn part(&mut self, stack: Vec<Called>) {
        self.parted = true;
        self.stack = stack;
    }

    fn did(&mut self, element: &Element) {
        let next = match element {
            Element::Block(block) => {
                let start = self.walk.code().place(block.start);
                Next::Ran { start, instructions: block.instructions }
            }
            Element::Event(event) => match event.kind {
                EventKind::Exception { exception, .. } => Next::Exception(exception),
                _ => Next::Lost,
            },
            Element::Gap(gap) => match gap.reason {
                GapReason::NoCode(at) => Next::Missing(at.address),
                _ => Next::Lost,
            },
            Element::Proof(_) => return,
        };
        self.next.push(next);
    }

    fn running(&self) -> Vec<Called> {
        // For very deep recursion, the innermost part is enough.
        let frames = self.walk.frames().rev().take(MOST_FRAMES).collect::<Vec<_>>();
        let callers = frames.iter().skip(1).map(|frame| Some(frame.function)).chain([None]);
        let called = frames.iter().zip(callers).map(|(frame, caller)| Called {
            function: frame.function,
            site: match frame.kind {
                FrameKind::Call { site, .. } => {
                    let scope = caller.map_or(Scope::EVERYWHERE, FunctionId::scope);
                    site.map(|address| CodePlace { address, scope })
                }
                FrameKind::Root | FrameKind::Exception(_) => None,
            },
            handles: match frame.kind {
                FrameKind::Exception(it) => Some(it.exception),
                FrameKind::Root | FrameKind::Call { .. } => None,
            },
        });
        let mut called = called.collect::<Vec<_>>();
        called.reverse();
        called
    }
}

/// How many functions of a stack are reported.
const MOST_FRAMES: usize = 64;

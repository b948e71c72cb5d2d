//! The elements of program flow → the steps of a path.

use tracewalk::flow::{Block, BranchKind, Element, Ending, EventKind};
use tracewalk::ids::{Address, ContextId, Exception, Isa, Location};
use tracewalk::isa::{self, Class};
use tracewalk::program::Program;

use crate::path::{Instruction, Step};

/// Turns elements of flow into steps.
///
/// A step is complete only when its successor is known: each element completes the last step of the one before.
#[derive(Debug, Default)]
pub struct Walk {
    /// The trace states for each instruction whether its condition held.
    states_conditions: bool,
    /// The processor is of M profile, which has T32 alone.
    is_m_profile: bool,
    /// A step whose successor is still unknown.
    pending: Option<Step>,
    /// The last element was an exception, which returns there.
    exception: Option<Option<Address>>,
    /// The last element was a return from an exception.
    has_returned: bool,
    context: Option<ContextId>,
    has_begun: bool,
    /// The place at which the path goes on, if it is known.
    place: Option<Location>,
}

impl Walk {
    /// A walk along a trace that states for each instruction whether its condition held, as ETMv3 does, or not.
    #[must_use]
    pub fn new(states_conditions: bool, is_m_profile: bool) -> Self {
        Self { states_conditions, is_m_profile, ..Self::default() }
    }

    /// Takes the next element. Complete steps are appended to `steps`. Returns the number of steps that the element has.
    pub fn element(&mut self, element: &Element, program: &Program, steps: &mut Vec<Step>) -> usize {
        match element {
            Element::Block(block) => self.block(block, program, steps),
            Element::Gap(_) => self.gap(steps),
            Element::Event(event) => match event.kind {
                EventKind::TraceOn(_) if self.has_begun => self.gap(steps),
                EventKind::Exception { exception, preferred_return, handler } => {
                    // A fault may be that a branch went to an address that is not of Thumb.
                    let is_fault = exception.is_none_or(|exception| matches!(exception, Exception::M(3..=6)));
                    self.exception(preferred_return, handler, is_fault, steps)
                }
                EventKind::ExceptionReturn => {
                    self.complete(None, steps);
                    self.pending = Some(Step::ExceptionReturn { next: None });
                    (self.exception, self.has_returned, self.place) = (None, true, None);
                    1
                }
                EventKind::Context { context_id: Some(context), .. } => {
                    let changes = self.context.is_some_and(|known| known != context);
                    self.context = Some(context);
                    if changes { self.gap(steps) } else { 0 }
                }
                // A transaction that fails takes back what it did.
                EventKind::Transaction(_) => self.gap(steps),
                _ => 0,
            },
            Element::Proof(_) => 0,
        }
    }

    /// The path ends. Returns where it would go on, if that is known.
    pub fn finish(&mut self, steps: &mut Vec<Step>) -> Option<Location> {
        self.complete(None, steps);
        self.place
    }

    fn gap(&mut self, steps: &mut Vec<Step>) -> usize {
        self.complete(None, steps);
        steps.push(Step::Gap);
        (self.exception, self.has_returned, self.place, self.has_begun) = (None, false, None, true);
        1
    }

    /// Completes the pending step.
    fn complete(&mut self, next: Option<Location>, steps: &mut Vec<Step>) {
        match self.pending.take() {
            Some(Step::Instruction(instruction)) => {
                steps.push(Step::Instruction(Instruction { next, ..instruction }));
            }
            Some(Step::ExceptionReturn { .. }) => {
                steps.push(Step::ExceptionReturn { next: next.map(|next| next.address) });
            }
            Some(other) => steps.push(other),
            None => {}
        }
    }

    fn exception(
        &mut self,
        returns_to: Option<Address>,
        handler: Option<Location>,
        is_fault: bool,
        steps: &mut Vec<Step>,
    ) -> usize {
        // The processor had gone on to the place where the exception returns to.
        let isa = self.place.map(|place| place.isa).or(self.is_m_profile.then_some(Isa::T32));
        let next = returns_to.zip(isa).map(|(address, isa)| Location::new(address, isa));
        self.complete(next.filter(|_| !self.has_returned && !is_fault), steps);
        // A second exception before the handler's first instruction took its place.
        let is_late = self.exception.is_some_and(|before| before == returns_to);
        steps.push(Step::Exception { returns_to, is_tail_chained: self.has_returned || is_late });
        (self.exception, self.has_returned, self.place) = (Some(returns_to), false, handler);
        self.has_begun = true;
        1
    }

    fn block(&mut self, block: &Block, program: &Program, steps: &mut Vec<Step>) -> usize {
        let start = Location::new(block.start, block.isa);
        // Elements that are in doubt may have been left out.
        let is_elsewhere = self.place.is_some_and(|place| place != start);
        let gaps = if is_elsewhere { self.gap(steps) } else { 0 };
        self.complete(Some(start), steps);
        (self.exception, self.has_returned, self.has_begun) = (None, false, true);
        let mut at = start;
        for index in 0..block.instructions {
            let is_last = index + 1 == block.instructions;
            let executed = self.states_conditions.then_some(true);
            let Some((instruction, classified)) = read(program, at, executed) else {
                // What the block has and the program has not is unknown.
                steps.push(Step::Gap);
                self.place = None;
                return gaps + index as usize + 1;
            };
            let following = at.after(instruction.bytes.into());
            if !is_last {
                steps.push(Step::Instruction(Instruction { next: Some(following), ..instruction }));
                at = following;
                continue;
            }
            let executed = match block.ending {
                Ending::Interrupted => instruction.executed,
                Ending::ConditionFailed => Some(false),
                Ending::Branch { taken, .. } => Some(taken),
            };
            self.place = match (block.ending, classified) {
                (Ending::Branch { kind: BranchKind::Indirect, taken: true, .. }, _) => None,
                (Ending::Branch { kind: BranchKind::Direct, taken: true, .. }, Class::Direct(target)) => {
                    Some(target)
                }
                _ => Some(following),
            };
            self.pending = Some(Step::Instruction(Instruction { executed, ..instruction }));
        }
        gaps + block.instructions as usize
    }

    /// The instruction at a place, apart from any path.
    #[must_use]
    pub fn read(program: &Program, at: Location) -> Option<Instruction> {
        read(program, at, None).map(|(instruction, _)| instruction)
    }

    /// The instruction at a place after the end of the trace, as one that does not branch; `None` if it always does.
    #[must_use]
    pub fn read_on(program: &Program, at: Location) -> Option<Instruction> {
        let (instruction, class) = read(program, at, None)?;
        let code = program.code(at.address)?;
        let is_conditional = isa::classify(code, at.address, at.isa).ok()?.conditional;
        match class {
            Class::Direct(_) | Class::Indirect if is_conditional => {
                Some(Instruction { executed: Some(false), ..instruction })
            }
            Class::Direct(_) | Class::Indirect => None,
            _ => Some(instruction),
        }
    }
}

/// The instruction at a place.
fn read(program: &Program, at: Location, executed: Option<bool>) -> Option<(Instruction, Class)> {
    let code = program.code(at.address)?;
    let classified = isa::classify(code, at.address, at.isa).ok()?;
    let bytes = classified.bytes;
    let code = match (code, bytes) {
        ([a, b, ..], 2) => u16::from_le_bytes([*a, *b]).into(),
        ([a, b, c, d, ..], _) if at.isa.is_thumb() => {
            u32::from(u16::from_le_bytes([*a, *b])) << 16 | u32::from(u16::from_le_bytes([*c, *d]))
        }
        ([a, b, c, d, ..], _) => u32::from_le_bytes([*a, *b, *c, *d]),
        _ => return None,
    };
    Some((Instruction { at, code, bytes, executed, next: None }, classified.class))
}

//! A path with its program at hand: what an encoder asks about the steps around the one that it stands at.
//!
//! Steps come in and go out, so that a path need not fit into memory: whoever encodes piece by piece keeps [`AHEAD`] steps
//! behind the one that it stands at, and [`BEFORE`] in front of it.

use tracewalk::ids::{Address, ContextId, Isa, Location, Profile};
use tracewalk::isa::{self, Class, Instruction};
use tracewalk::program::Program;

use crate::path::{Executed, State, Step, Taken};
use crate::trace::EncodeError;

/// How many steps are looked at behind the one that is encoded: the next instruction, behind a few exceptions, or the next
/// time that an address is executed.
pub(crate) const AHEAD: usize = 1 << 16;

/// How many are looked at in front of it: the last instruction.
pub(crate) const BEFORE: usize = 1 << 10;

#[derive(Clone, Debug)]
pub(crate) struct Story<'a> {
    /// The steps that are at hand.
    steps: Vec<Step>,
    /// How many came before them.
    gone: usize,
    program: &'a Program,
    /// What of the program the current context sees.
    seen: &'a Program,
}

/// Where execution went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Went {
    /// Here.
    To(Location),
    /// Nowhere: a return gave way to another exception.
    TailChained,
    /// The path ends.
    End,
}

impl<'a> Story<'a> {
    /// In front of the first step.
    pub(crate) fn new(program: &'a Program) -> Self {
        Self { steps: Vec::new(), gone: 0, program, seen: program }
    }

    /// The next steps of the path.
    pub(crate) fn add(&mut self, steps: &[Step]) {
        self.steps.extend_from_slice(steps);
    }

    /// How many steps the path has, as far as it came.
    pub(crate) const fn len(&self) -> usize {
        self.gone + self.steps.len()
    }

    /// Lets go of what is not looked at any more when the step at `index` is next. Moving the rest has to pay.
    pub(crate) fn forget_before(&mut self, index: usize) {
        let done = index.saturating_sub(self.gone + BEFORE).min(self.steps.len());
        if done > AHEAD {
            self.steps.drain(..done);
            self.gone += done;
        }
    }

    /// The step at `index`, if it is at hand.
    pub(crate) fn step(&self, index: usize) -> Option<&Step> {
        self.steps.get(index.checked_sub(self.gone)?)
    }

    /// The step before the one at `index`.
    pub(crate) fn before(&self, index: usize) -> Option<&Step> {
        self.step(index.checked_sub(1)?)
    }

    /// Another context ID holds from here on.
    pub(crate) fn enter(&mut self, context_id: ContextId) {
        self.seen = self.program.view(self.program.view_in(Some(context_id), None));
    }

    /// What the program says about an instruction that was executed.
    pub(crate) fn instruction(&self, executed: &Executed) -> Result<Instruction, EncodeError> {
        executed.classify(self.seen).ok_or(EncodeError::NoCode { at: executed.address })
    }

    /// What the program says about a place where execution was about to go on.
    pub(crate) fn instruction_at(&self, location: Location) -> Option<Instruction> {
        isa::classify(self.seen.code(location.address)?, location.address, location.isa).ok()
    }

    /// Where execution went on behind the instruction that is the step at `index`.
    pub(crate) fn went(&self, index: usize) -> Went {
        for (index, step) in self.steps_behind(index) {
            match step {
                Step::Access(_) | Step::ContextId(_) | Step::State(_) | Step::ExceptionReturn => {}
                Step::Instruction(executed) => return Went::To(executed.location()),
                Step::Exception(taken) => {
                    return self.resumes(index, taken).map_or(Went::TailChained, Went::To);
                }
            }
        }
        Went::End
    }

    /// Whether the instruction that is the step at `index` returned from an exception.
    pub(crate) fn returns(&self, index: usize) -> bool {
        matches!(self.next_event(index), Some(Step::ExceptionReturn))
    }

    /// What happened behind the step at `index`, apart from what its instruction did.
    fn next_event(&self, index: usize) -> Option<&Step> {
        let mut behind = self.steps_behind(index).map(|(_, step)| step);
        behind.find(|step| happens(step))
    }

    /// The state that an exception or a return from one, the step at `index`, leads to, if the path says it.
    pub(crate) fn state_behind(&self, index: usize) -> Option<State> {
        let next = self
            .steps_behind(index)
            .find(|(_, step)| !matches!(step, Step::Access(_) | Step::ContextId(_) | Step::ExceptionReturn));
        match next {
            Some((_, Step::State(state))) => Some(*state),
            _ => None,
        }
    }

    /// Whether an exception comes directly behind the instruction that is the step at `index`.
    pub(crate) fn is_interrupted(&self, index: usize) -> bool {
        matches!(self.next_event(index), Some(Step::Exception(_)))
    }

    /// The first instruction executed behind the step at `index`.
    pub(crate) fn next_executed(&self, index: usize) -> Option<&Executed> {
        self.steps_behind(index).find_map(|(_, step)| match step {
            Step::Instruction(executed) => Some(executed),
            _ => None,
        })
    }

    /// The preferred return address of the exception that is the step at `index`.
    pub(crate) fn resumes(&self, index: usize, taken: &Taken) -> Option<Location> {
        taken.preferred_return.map(|address| Location::new(address, self.isa_at(index, address)))
    }

    /// The first instruction of the handler of the exception that is the step at `index`.
    pub(crate) fn handler(&self, index: usize, taken: &Taken) -> Location {
        let entered = self.next_executed(index).filter(|executed| executed.address == taken.handler);
        let before = || self.steps_before(index).find_map(|(_, step)| executed(step));
        let usual = match taken.exception.profile() {
            Profile::M => Isa::T32,
            Profile::Ar if before().is_some_and(|executed| executed.isa == Isa::A64) => Isa::A64,
            Profile::Ar => Isa::A32,
        };
        Location::new(taken.handler, entered.map_or(usual, |executed| executed.isa))
    }

    /// The instruction set at an address that execution may come back to, at the step at `index`. A record does not say
    /// it: where the instruction before did not branch to a computed address that tells, or the exception whose handler
    /// begins there, or else the instruction that is executed there later or was before, or the one executed last.
    fn isa_at(&self, index: usize, address: Address) -> Isa {
        let before = self.steps_before(index);
        let last = before.clone().find_map(|(_, step)| executed(step));
        let directly = before.clone().find(|(_, step)| happens(step));
        match directly {
            // Another exception came before the handler's first instruction.
            Some((index, Step::Exception(taken))) if taken.handler == address => {
                return self.handler(index, taken).isa;
            }
            Some((_, Step::Instruction(executed))) => {
                if let Ok(instruction) = self.instruction(executed) {
                    match instruction.class {
                        Class::Direct(target) if executed.passed => return target.isa,
                        Class::Indirect if executed.passed => {}
                        _ => return executed.isa,
                    }
                }
            }
            _ => {}
        }
        let later = self.steps_behind(index).filter_map(|(_, step)| executed(step));
        let mut earlier = before.filter_map(|(_, step)| executed(step));
        let is_there = |executed: &Executed| executed.address == address;
        let there = later.into_iter().find(is_there).or_else(|| earlier.find(is_there));
        there.or(last).map_or(Isa::default(), |executed| executed.isa)
    }

    /// What comes behind the step at `index`, with its place in the path.
    fn steps_behind(&self, index: usize) -> impl Iterator<Item = (usize, &Step)> + Clone {
        let behind = self.steps.iter().skip((index + 1).saturating_sub(self.gone));
        ((index + 1).max(self.gone)..).zip(behind)
    }

    /// What came before the step at `index`, the newest first, with its place in the path.
    fn steps_before(&self, index: usize) -> impl Iterator<Item = (usize, &Step)> + Clone {
        let before = self.steps.get(..index.saturating_sub(self.gone)).unwrap_or(&self.steps);
        (0..index).rev().zip(before.iter().rev())
    }
}

/// Whether the step is more than what it says of the one before or after it.
fn happens(step: &Step) -> bool {
    !matches!(step, Step::Access(_) | Step::ContextId(_) | Step::State(_))
}

fn executed(step: &Step) -> Option<Executed> {
    match step {
        Step::Instruction(executed) => Some(*executed),
        _ => None,
    }
}

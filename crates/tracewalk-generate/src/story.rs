//! A path together with its program: answers an encoder's questions about the steps before and after the
//! current one.

use tracewalk::ids::{Address, ContextId, Isa, Location, Profile};
use tracewalk::isa::{self, Class, Instruction};
use tracewalk::program::Program;

use crate::path::{Executed, Path, State, Step, Taken};
use crate::trace::EncodeError;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Story<'a> {
    path: &'a Path,
    program: &'a Program,
    /// The part of the program that the current context sees.
    seen: &'a Program,
}

/// Where execution continued.
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
    pub(crate) fn new(path: &'a Path, program: &'a Program) -> Self {
        Self { path, program, seen: program }
    }

    /// Switches to another context ID.
    pub(crate) fn enter(&mut self, context_id: ContextId) {
        self.seen = self.program.view(self.program.view_in(Some(context_id), None));
    }

    pub(crate) fn all(&self) -> &'a [Step] {
        &self.path.steps
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = (usize, &'a Step)> + use<'a> {
        self.path.steps.iter().enumerate()
    }

    /// Decodes an executed instruction.
    pub(crate) fn instruction(&self, executed: &Executed) -> Result<Instruction, EncodeError> {
        executed.classify(self.seen).ok_or(EncodeError::NoCode { at: executed.address })
    }

    /// Decodes the instruction at a place where execution was about to continue.
    pub(crate) fn instruction_at(&self, location: Location) -> Option<Instruction> {
        isa::classify(self.seen.code(location.address)?, location.address, location.isa).ok()
    }

    /// Where execution continued after the instruction that is the step at `index`.
    pub(crate) fn went(&self, index: usize) -> Went {
        for (index, step) in self.steps_after(index) {
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
        let next = self.steps_after(index).find(|(_, step)| happens(step));
        matches!(next, Some((_, Step::ExceptionReturn)))
    }

    /// The state that the step at `index`, an exception or a return from one, leads to, if the path states
    /// it.
    pub(crate) fn state_after(&self, index: usize) -> Option<State> {
        let next = self
            .steps_after(index)
            .find(|(_, step)| !matches!(step, Step::Access(_) | Step::ContextId(_) | Step::ExceptionReturn));
        match next {
            Some((_, Step::State(state))) => Some(*state),
            _ => None,
        }
    }

    /// Whether an exception comes directly after the instruction that is the step at `index`.
    pub(crate) fn is_interrupted(&self, index: usize) -> bool {
        let next = self.steps_after(index).find(|(_, step)| happens(step));
        matches!(next, Some((_, Step::Exception(_))))
    }

    /// The first instruction executed after the step at `index`.
    pub(crate) fn next_executed(&self, index: usize) -> Option<&'a Executed> {
        self.steps_after(index).find_map(|(_, step)| match step {
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
        let before = || self.path.steps.iter().take(index).rev().find_map(executed);
        let nearest = || before().or_else(|| self.next_executed(index).copied());
        let usual = match taken.exception.profile() {
            Profile::M => Isa::T32,
            Profile::Ar if nearest().is_some_and(|executed| executed.isa == Isa::A64) => Isa::A64,
            Profile::Ar => Isa::A32,
        };
        Location::new(taken.handler, entered.map_or(usual, |executed| executed.isa))
    }

    /// The instruction set at an address that execution may come back to, at the step at `index`. A record
    /// does not contain the instruction set. It is taken from the exception whose handler begins there, or
    /// from the instruction before unless that branched to a computed address. Otherwise it is that of the
    /// instruction executed there later or earlier, and as a last resort of the instruction executed last.
    fn isa_at(&self, index: usize, address: Address) -> Isa {
        let before = self.path.steps.iter().enumerate().take(index).rev();
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
        let later = self.steps_after(index).filter_map(|(_, step)| executed(step));
        let mut earlier = before.filter_map(|(_, step)| executed(step));
        let is_there = |executed: &Executed| executed.address == address;
        let there = later.into_iter().find(is_there).or_else(|| earlier.find(is_there));
        there.or(last).map_or(Isa::default(), |executed| executed.isa)
    }

    fn steps_after(&self, index: usize) -> impl Iterator<Item = (usize, &'a Step)> + Clone + use<'a> {
        self.path.steps.iter().enumerate().skip(index + 1)
    }
}

/// Whether the step is more than an annotation of the step before or after it.
fn happens(step: &Step) -> bool {
    !matches!(step, Step::Access(_) | Step::ContextId(_) | Step::State(_))
}

fn executed(step: &Step) -> Option<Executed> {
    match step {
        Step::Instruction(executed) => Some(*executed),
        _ => None,
    }
}

//! The path that a program took: the instructions it executed, and what happened between them.

use tracewalk::ids::{Address, ContextId, Exception, Isa, Location};
use tracewalk::isa::{self, Instruction, Unclassified};
use tracewalk::program::Program;

use crate::record::{Line, Record, Run};

/// What one processor executed, from its first instruction on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// In the order in which they happened.
    pub steps: Vec<Step>,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An instruction was executed, or passed over because its condition failed.
    Instruction(Executed),
    /// The last instruction accessed memory.
    Access(Access),
    /// The last instruction set the Context ID register.
    ContextId(ContextId),
    /// An exception was taken.
    Exception(Taken),
    /// The last instruction returned from an exception.
    ExceptionReturn,
}

/// An executed instruction.
///
/// An instruction that raised an undefined instruction exception or made a supervisor call counts as executed, as
/// trace units count it. One that aborted does not: it is tried again later, or skipped by the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Where it stands.
    pub address: Address,
    /// The instruction set.
    pub isa: Isa,
    /// Its size, 2 or 4.
    pub bytes: u8,
    /// Whether its condition held. A conditional branch that was not taken has failed.
    pub passed: bool,
}

/// An exception that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Which one.
    pub exception: Exception,
    /// Where execution should resume; `None` where the exception took the place of a return from another one
    /// (tail-chaining), which has nothing to resume.
    pub preferred_return: Option<Address>,
    /// The first instruction of the handler.
    pub handler: Address,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Its address.
    pub address: Address,
    /// Its size in bytes: 1, 2, 4 or 8.
    pub bytes: u8,
    /// Set for a store.
    pub store: bool,
    /// What was loaded or stored; `None` where that is not known, as for device registers.
    pub value: Option<u64>,
}

/// Why a record does not fit its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpandError {
    /// The program has no code at an address that was executed.
    NoCode {
        /// The address.
        at: Address,
    },
    /// Instructions at this address do not end where the run ends.
    RunEndsInside {
        /// The instruction's address.
        at: Address,
    },
    /// The record says something about an instruction that is not in the last run.
    NotInRun {
        /// The instruction's address.
        at: Address,
    },
}

impl std::fmt::Display for ExpandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoCode { at } => write!(f, "the record executes {at}, where the program has no code"),
            Self::RunEndsInside { at } => {
                write!(f, "a run of the record ends inside the instruction at {at}")
            }
            Self::NotInRun { at } => {
                write!(f, "the record names an instruction at {at} that its run does not hold")
            }
        }
    }
}

impl std::error::Error for ExpandError {}

impl Executed {
    /// Where it stands, and its instruction set.
    #[must_use]
    pub const fn location(&self) -> Location {
        Location::new(self.address, self.isa)
    }

    /// The address behind it.
    #[must_use]
    pub const fn end(&self) -> Address {
        self.address.plus(self.bytes as u32)
    }

    /// What the program says about it; `None` where the program has no code there.
    #[must_use]
    pub fn classify(&self, program: &Program) -> Option<Instruction> {
        isa::classify(program.code(self.address)?, self.address, self.isa).ok()
    }
}

impl Path {
    /// The path that `record` describes, with the sizes of its instructions from what each context sees of `program`.
    pub fn expand(record: &Record, program: &Program) -> Result<Self, ExpandError> {
        let mut steps = Vec::new();
        let mut seen = program;
        let mut lines = record.lines.iter().peekable();
        while let Some(line) = lines.next() {
            match line {
                Line::Run(run) => {
                    let mut details = Vec::new();
                    while let Some(detail) = lines.peek().and_then(|line| detail(line)) {
                        details.push(detail);
                        lines.next();
                    }
                    expand_run(run, &details, seen, &mut steps)?;
                    for (_, step) in &details {
                        if let Step::ContextId(context_id) = step {
                            seen = program.view(program.view_in(Some(*context_id), None));
                        }
                    }
                }
                Line::Exception(taken) => steps.push(Step::Exception(*taken)),
                Line::ExceptionReturn => steps.push(Step::ExceptionReturn),
                Line::Access { instruction, .. } | Line::ContextId { instruction, .. } => {
                    return Err(ExpandError::NotInRun { at: *instruction });
                }
            }
        }
        Ok(Self { steps })
    }

    /// The executed instructions.
    pub fn instructions(&self) -> impl Iterator<Item = &Executed> {
        self.steps.iter().filter_map(|step| match step {
            Step::Instruction(executed) => Some(executed),
            _ => None,
        })
    }
}

/// A line that belongs to an instruction of the run before it.
fn detail(line: &Line) -> Option<(Address, Step)> {
    match line {
        Line::Access { instruction, access } => Some((*instruction, Step::Access(*access))),
        Line::ContextId { instruction, context_id } => Some((*instruction, Step::ContextId(*context_id))),
        Line::Run(_) | Line::Exception(_) | Line::ExceptionReturn => None,
    }
}

fn expand_run(
    run: &Run,
    details: &[(Address, Step)],
    program: &Program,
    steps: &mut Vec<Step>,
) -> Result<(), ExpandError> {
    let mut details = details.iter().peekable();
    let mut failed = run.failed.iter().peekable();
    let mut at = run.start;
    while at != run.end {
        let code = program.code(at).ok_or(ExpandError::NoCode { at })?;
        let instruction = isa::classify(code, at, run.isa).map_err(|why| match why {
            Unclassified::Truncated | Unclassified::Jazelle => ExpandError::NoCode { at },
        })?;
        if u32::from(instruction.bytes) > run.end.bytes_since(at) {
            return Err(ExpandError::RunEndsInside { at });
        }
        let passed = failed.next_if_eq(&&at).is_none();
        steps.push(Step::Instruction(Executed {
            address: at,
            isa: run.isa,
            bytes: instruction.bytes,
            passed,
        }));
        while let Some((_, step)) = details.next_if(|(instruction, _)| *instruction == at) {
            steps.push(*step);
        }
        at = at.plus(u32::from(instruction.bytes));
    }
    let left_over = failed.next().copied().or_else(|| details.next().map(|(at, _)| *at));
    left_over.map_or(Ok(()), |at| Err(ExpandError::NotInRun { at }))
}

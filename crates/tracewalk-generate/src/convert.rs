//! A path ↔ its record. The record omits everything about an instruction that the program itself states.
//!
//! ```
//! use tracewalk::ids::Address;
//! use tracewalk::program::Program;
//! use tracewalk_generate::path::Path;
//! use tracewalk_generate::record::Record;
//! use tracewalk_generate::record::Profile;
//!
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x01, 0x38, 0xfd, 0xd1, 0x70, 0x47])?; // 1: subs r0, #1; bne 1b; bx lr
//! let record = "# tracewalk record 1\nP m\nR 100 104 t32\nR 100 104 t32 !102\n";
//! let path = Path::expand(&Record::parse(record)?, &program)?;
//! assert_eq!(path.instructions().count(), 4);
//! assert_eq!(Record::of_path(Profile::M, &path).to_string(), record);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use tracewalk::ids::{Address, Location};
use tracewalk::isa;
use tracewalk::program::Program;

use crate::path::{Executed, Path, Step};
use crate::record::{Line, Profile, Record, Run};

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
            Self::NoCode { at } => write!(f, "the record executes {at}, at which the program has no code"),
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

impl Path {
    /// The path that `record` describes. The sizes of instructions come from the part of `program` that each
    /// context sees.
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
                Line::State(state) => steps.push(Step::State(*state)),
                Line::Access { instruction, .. } | Line::ContextId { instruction, .. } => {
                    return Err(ExpandError::NotInRun { at: *instruction });
                }
            }
        }
        Ok(Self { steps })
    }
}

impl Record {
    /// The compact form of a path.
    #[must_use]
    pub fn of_path(profile: Profile, path: &Path) -> Self {
        let mut lines = Vec::new();
        let mut current = None::<Run>;
        // Accesses and context IDs of the current run's instructions; they are written after the run.
        let mut details = Vec::new();
        let mut last = Address::default();
        for step in &path.steps {
            match step {
                Step::Instruction(executed) => {
                    if !current
                        .as_ref()
                        .is_some_and(|run| run.end == executed.address && run.isa == executed.isa)
                    {
                        lines.extend(current.take().map(Line::Run));
                        lines.append(&mut details);
                    }
                    let run = current.get_or_insert_with(|| Run {
                        start: executed.address,
                        end: executed.address,
                        isa: executed.isa,
                        failed: Vec::new(),
                    });
                    run.end = executed.end();
                    if !executed.passed {
                        run.failed.push(executed.address);
                    }
                    last = executed.address;
                }
                Step::Access(access) => details.push(Line::Access { instruction: last, access: *access }),
                Step::ContextId(context_id) => {
                    details.push(Line::ContextId { instruction: last, context_id: *context_id });
                }
                Step::Exception(_) | Step::ExceptionReturn | Step::State(_) => {
                    lines.extend(current.take().map(Line::Run));
                    lines.append(&mut details);
                    lines.push(match step {
                        Step::Exception(taken) => Line::Exception(*taken),
                        Step::State(state) => Line::State(*state),
                        _ => Line::ExceptionReturn,
                    });
                }
            }
        }
        lines.extend(current.map(Line::Run));
        lines.append(&mut details);
        Self { profile, lines }
    }
}

/// A line that belongs to an instruction of the run before it.
fn detail(line: &Line) -> Option<(Address, Step)> {
    match line {
        Line::Access { instruction, access } => Some((*instruction, Step::Access(*access))),
        Line::ContextId { instruction, context_id } => Some((*instruction, Step::ContextId(*context_id))),
        Line::Run(_) | Line::Exception(_) | Line::ExceptionReturn | Line::State(_) => None,
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
        let instruction = isa::classify(code, at, run.isa).map_err(|_| ExpandError::NoCode { at })?;
        let left = Location::new(run.end, run.isa).bytes_since(at);
        if u64::from(instruction.bytes) > left {
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
        at = Location::new(at, run.isa).after(instruction.bytes.into()).address;
    }
    let left_over = failed.next().copied().or_else(|| details.next().map(|(at, _)| *at));
    left_over.map_or(Ok(()), |at| Err(ExpandError::NotInRun { at }))
}

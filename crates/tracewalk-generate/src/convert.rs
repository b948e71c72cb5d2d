//! A path ↔ its record: the record leaves out what the program says of each instruction.

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

impl Path {
    /// The path that `record` describes, with the sizes of its instructions from what each context sees of `program`.
    pub fn expand(record: &Record, program: &Program) -> Result<Self, ExpandError> {
        let mut expander = Expander::new(program);
        let mut steps = Vec::new();
        for line in &record.lines {
            expander.line(line.clone(), &mut steps)?;
        }
        expander.finish(&mut steps)?;
        Ok(Self { steps })
    }
}

/// Makes a path of a record's lines, one by one.
#[derive(Clone, Debug)]
pub struct Expander<'a> {
    program: &'a Program,
    /// What of the program the current context sees.
    seen: &'a Program,
    /// The last run, and what its instructions did: more may follow.
    run: Option<(Run, Vec<(Address, Step)>)>,
}

impl<'a> Expander<'a> {
    /// In front of the first line.
    #[must_use]
    pub const fn new(program: &'a Program) -> Self {
        Self { program, seen: program, run: None }
    }

    /// Takes the next line, and appends the steps that are certain now.
    pub fn line(&mut self, line: Line, steps: &mut Vec<Step>) -> Result<(), ExpandError> {
        if let Some((at, step)) = detail(&line) {
            let (_, details) = self.run.as_mut().ok_or(ExpandError::NotInRun { at })?;
            details.push((at, step));
            return Ok(());
        }
        self.finish(steps)?;
        match line {
            Line::Run(run) => self.run = Some((run, Vec::new())),
            Line::Exception(taken) => steps.push(Step::Exception(taken)),
            Line::ExceptionReturn => steps.push(Step::ExceptionReturn),
            Line::State(state) => steps.push(Step::State(state)),
            // Details, which were taken above.
            Line::Access { .. } | Line::ContextId { .. } => {}
        }
        Ok(())
    }

    /// No line follows: appends the steps of the last run.
    pub fn finish(&mut self, steps: &mut Vec<Step>) -> Result<(), ExpandError> {
        let Some((run, details)) = self.run.take() else { return Ok(()) };
        expand_run(&run, &details, self.seen, steps)?;
        for (_, step) in &details {
            if let Step::ContextId(context_id) = step {
                self.seen = self.program.view(self.program.view_in(Some(*context_id), None));
            }
        }
        Ok(())
    }
}

impl Record {
    /// The compact form of a path.
    #[must_use]
    pub fn of_path(profile: Profile, path: &Path) -> Self {
        let mut compactor = Compactor::default();
        let mut lines = Vec::new();
        for step in &path.steps {
            compactor.step(step, &mut lines);
        }
        compactor.finish(&mut lines);
        Self { profile, lines }
    }
}

/// Makes a record's lines of a path's steps, one by one.
#[derive(Clone, Debug, Default)]
pub struct Compactor {
    run: Option<Run>,
    /// What instructions of the run did: to be written behind it.
    details: Vec<Line>,
    last: Address,
}

impl Compactor {
    /// Takes the next step, and appends the lines that are certain now.
    pub fn step(&mut self, step: &Step, lines: &mut Vec<Line>) {
        match step {
            Step::Instruction(executed) => {
                let goes_on = |run: &Run| run.end == executed.address && run.isa == executed.isa;
                if !self.run.as_ref().is_some_and(goes_on) {
                    self.finish(lines);
                }
                let run = self.run.get_or_insert_with(|| Run {
                    start: executed.address,
                    end: executed.address,
                    isa: executed.isa,
                    failed: Vec::new(),
                });
                run.end = executed.end();
                if !executed.passed {
                    run.failed.push(executed.address);
                }
                self.last = executed.address;
            }
            Step::Access(access) => {
                self.details.push(Line::Access { instruction: self.last, access: *access });
            }
            Step::ContextId(context_id) => {
                self.details.push(Line::ContextId { instruction: self.last, context_id: *context_id });
            }
            Step::Exception(taken) => {
                self.finish(lines);
                lines.push(Line::Exception(*taken));
            }
            Step::ExceptionReturn => {
                self.finish(lines);
                lines.push(Line::ExceptionReturn);
            }
            Step::State(state) => {
                self.finish(lines);
                lines.push(Line::State(*state));
            }
        }
    }

    /// No step follows: appends the lines of the last run.
    pub fn finish(&mut self, lines: &mut Vec<Line>) {
        lines.extend(self.run.take().map(Line::Run));
        lines.append(&mut self.details);
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

//! The parts of a report.

use std::collections::{BTreeMap, BTreeSet};

use tracewalk::ids::Address;

use super::super::collected::SourceSummary;
use super::super::instructions::Instruction;
use super::super::losses::Losses;
use super::super::runs::RunSet;
use super::super::tally::Totals;
use crate::programs::ProgramId;

/// A report of coverage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The programs, in the order in which they were given.
    pub programs: Vec<ReportedProgram>,
    /// The linked functions, by program and address.
    pub functions: Vec<Function>,
    /// The places that source lines were compiled into.
    pub copies: Vec<Copy>,
    /// The instructions, by program and address.
    pub instructions: Vec<Counted>,
    /// The source files, by name.
    pub files: Vec<File>,
    /// Everything together.
    pub totals: Totals,
    /// The runs, by name, if the coverage keeps them apart; [`Line::runs`] has their indices.
    pub runs: Vec<RunSummary>,
    /// Whether every capture was decoded to its end. [`Report::of`] sets `true`.
    pub complete: bool,
}

/// A program and its coverage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedProgram {
    /// The program's identity.
    pub id: ProgramId,
    /// The names of its images.
    pub images: BTreeSet<String>,
    /// The sources that were traced.
    pub sources: Vec<SourceSummary>,
    /// The losses of all sources.
    pub losses: Losses,
    /// Whether any source records every condition.
    pub conditions_recorded: bool,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// The run's name.
    pub name: String,
    /// The number of lines that ran in it.
    pub lines: u64,
    /// The number of lines that ran in no other run.
    pub alone: u64,
}

/// A function as it was linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The index of its program.
    pub program: usize,
    /// The name; `None` for code that ran and belongs to no function.
    pub name: Option<String>,
    /// The linker's name.
    pub symbol: String,
    /// The first address.
    pub start: Address,
    /// The address after it, as a number that may be 2^32.
    pub end: u64,
    /// The index of the file that it is written in, if that is known.
    pub file: Option<usize>,
    /// The line at which its code begins.
    pub line: Option<u32>,
    /// How often its first instruction ran.
    pub entered: u64,
    /// The instructions, as indices into [`Report::instructions`].
    pub instructions: Vec<usize>,
    /// Totals of its instructions and their lines. [`Totals::functions`] is the function itself.
    pub totals: Totals,
}

/// A place that source lines were compiled into: a function, or one inlined in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Copy {
    /// The index of the linked function.
    pub function: usize,
    /// The calls that were inlined, from the linked function inwards.
    pub inlined: Vec<InlinedCall>,
}

/// An inlined call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InlinedCall {
    /// The function that was inlined.
    pub function: Option<String>,
    /// The file of the call.
    pub file: Option<String>,
    /// The line of the call.
    pub line: Option<u32>,
}

/// An instruction in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The instruction and its counts.
    pub instruction: Instruction,
    /// How often it took effect as part of a statement.
    pub effects: u64,
    /// The index of the copy that it belongs to.
    pub copy: usize,
    /// The two outcomes, if the instruction has a condition.
    pub branch: Option<Branch>,
}

/// The outcomes of an instruction with a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The condition passed: a branch was taken.
    pub taken: OutcomeCount,
    /// The condition failed.
    pub not_taken: OutcomeCount,
}

/// How often a condition had one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeCount {
    /// At least this often: not every trace records it.
    Seen(u64),
    /// Never.
    Never,
    /// No trace records it.
    Unrecorded,
}

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The name, by the debugging information.
    pub name: String,
    /// The lines that have code, in order.
    pub lines: Vec<Line>,
    /// The functions written in it, as indices into [`Report::functions`].
    pub functions: Vec<usize>,
    /// Totals of the code that was compiled from it.
    pub totals: Totals,
    /// The MD5 hashes of the texts that it was compiled from, as far as the debugging information has them.
    pub checksums: BTreeSet<[u8; 16]>,
    /// Why the source on disk is not, or may not be, the one that was compiled. [`Report::of`] reads no files and leaves it
    /// `None`.
    pub stale: Option<Stale>,
}

/// Why a source file is not, or may not be, the one that was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// The file's checksum differs from the debugging information's.
    Checksum,
    /// The file has fewer lines than the program has line numbers for.
    Shorter,
    /// The file changed after the program was built or traced, and the debugging information has no checksum.
    Newer,
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line number, from 1.
    pub number: u32,
    /// How often it ran: all copies together.
    pub count: u64,
    /// The line's state.
    pub state: LineState,
    /// The runs in which it ran, as indices into [`Report::runs`].
    pub runs: RunSet,
    /// The places that it was compiled into.
    pub copies: Vec<LineCopy>,
}

/// The state of a line, or of one of its copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineState {
    /// Each instruction of the line ran, in at least one copy.
    Covered,
    /// The line ran, but no copy ran completely. It counts as covered in [`Totals::lines`].
    Partly,
    /// Execution passed the line, and its conditions failed.
    Skipped,
    /// Execution never reached the line.
    Unreached,
    /// Execution passed the line, but no trace records whether its conditions passed.
    Unrecorded,
}

/// A line in one of the places that it was compiled into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCopy {
    /// The copy, as an index into [`Report::copies`].
    pub copy: usize,
    /// How often it ran there.
    pub count: u64,
    /// The line's state there.
    pub state: LineState,
    /// The line's instructions there, as indices into [`Report::instructions`].
    pub instructions: Vec<usize>,
}

impl LineState {
    /// A short name for line formats.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Covered => "covered",
            Self::Partly => "partly",
            Self::Skipped => "skipped",
            Self::Unreached => "unreached",
            Self::Unrecorded => "unrecorded",
        }
    }

    /// Whether the line counts as covered in [`Totals::lines`]: at least one of its instructions ran.
    #[must_use]
    pub const fn is_covered(self) -> bool {
        matches!(self, Self::Covered | Self::Partly)
    }
}

impl OutcomeCount {
    /// How often it was seen; `None` if no trace records it.
    #[must_use]
    pub const fn seen(self) -> Option<u64> {
        match self {
            Self::Seen(count) => Some(count),
            Self::Never => Some(0),
            Self::Unrecorded => None,
        }
    }
}

impl Branch {
    /// Both outcomes, the taken one first.
    #[must_use]
    pub const fn outcomes(&self) -> [OutcomeCount; 2] {
        [self.taken, self.not_taken]
    }
}

impl Report {
    /// Renames the source files for which `rename` returns a name.
    pub fn rename_files(&mut self, rename: impl Fn(&str) -> Option<String>) {
        let inlined = self.copies.iter_mut().flat_map(|copy| &mut copy.inlined);
        let names = inlined
            .filter_map(|call| call.file.as_mut())
            .chain(self.files.iter_mut().map(|file| &mut file.name));
        for name in names {
            if let Some(renamed) = rename(name) {
                *name = renamed;
            }
        }
        let mut files = std::mem::take(&mut self.files).into_iter().enumerate().collect::<Vec<_>>();
        files.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
        let moved = files.iter().enumerate().map(|(to, (from, _))| (*from, to)).collect::<BTreeMap<_, _>>();
        for function in &mut self.functions {
            function.file = function.file.and_then(|file| moved.get(&file).copied());
        }
        self.files = files.into_iter().map(|(_, file)| file).collect();
    }

    /// The files whose source is not, or may not be, the one that was compiled, in order, with the reason.
    pub fn stale(&self) -> impl Iterator<Item = (&File, Stale)> {
        self.files.iter().filter_map(|file| Some((file, file.stale?)))
    }

    /// The instructions of a line that have conditions, in the order of its copies and their addresses.
    pub fn branches<'a>(&'a self, line: &'a Line) -> impl Iterator<Item = (&'a Counted, Branch)> {
        let indices = line.copies.iter().flat_map(|copy| &copy.instructions);
        indices.filter_map(|&index| {
            let counted = self.instructions.get(index)?;
            Some((counted, counted.branch?))
        })
    }
}

//! Coverage: which of a program's instructions, branches, lines and functions ran, without instrumentation.
//!
//! ```text
//! elements of a source  ── Recorder ──▶ Part      counted by block: nothing is done for each instruction
//! parts                 ── merge ─────▶ Coverage  of several sources, captures, runs
//! Coverage + code       ── Report ────▶ instructions, branches, lines, functions, files
//! ```
//!
//! A count belongs to a block and the way it ended. Only a report, made once at the end, asks which instructions a block
//! has, which of them are conditional and where they come from.
//!
//! What a trace does not tell is kept apart from what did not happen. ETMv3 tells of every instruction whether its
//! condition passed; PFT and MTB tell it of branches alone. Where only the latter saw a conditional instruction, whether
//! it took effect is *untold*: it counts neither as covered nor as uncovered.

mod blocks;
mod code;
mod collected;
mod difference;
mod instructions;
mod losses;
mod once;
mod passages;
mod paths;
mod recorder;
mod report;
mod runs;
mod saved;
mod saved_lines;
mod tally;
mod tracefile;
mod undo;

pub use blocks::{BlockCounter, BlockCounts, BlockKey, Conditions, Outcome};
pub use collected::{Coverage, Part, ProgramCoverage, SourceSummary};
pub use difference::{
    DiffPath, Difference, FileDiff, FileDifference, Hunk, HunkLine, RevisionError, RevisionErrorKind,
    Revisions, SourceDiff, TextOf,
};
pub use instructions::{Branching, Instruction, Passes};
pub use losses::{Losses, Lost};
pub use paths::common_folder;
pub use recorder::{RecordedPart, Recorder};
pub use report::{
    Branch, Copy, Counted, Every, File, Filter, Function, InlinedCall, Line, LineCopy, LineState,
    OutcomeCount, ProgramInput, Report, ReportedProgram, RunSummary, Stale,
};
pub use runs::{RunSet, Runs};
pub use saved::keeps_runs;
pub use tally::{Metric, Tally, Totals};
pub use tracefile::{TracedFile, TracedFunction, TracedLine, Tracefile};

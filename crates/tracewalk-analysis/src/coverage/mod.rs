//! Coverage: which of a program's instructions, branches, lines and functions ran, without instrumentation.
//!
//! ```text
//! flow of a source       ── Recorder ──▶ Part      counted by block and passage: nothing is done for each instruction
//! parts                 ── merge ─────▶ Coverage  of several sources, captures, runs
//! Coverage + code       ── Report ────▶ instructions, branches, lines, functions, files
//! ```
//!
//! A count belongs to a block and its ending. Only the report, made once at the end, looks up the instructions of a block, their
//! conditions and their source lines.
//!
//! Unknown is kept apart from not covered. ETMv3 records for every instruction whether its condition passed; PFT and MTB do so
//! only for branches. If only PFT or MTB traced a conditional instruction, its effect is *unrecorded*: the instruction counts neither
//! as covered nor as uncovered.
//!
//! ```
//! use tracewalk_analysis::Doubtful;
//! use tracewalk_analysis::coverage::{Conditions, Recorder};
//!
//! # use tracewalk::{ids::Address, program::Program, protocol::etmv3, source::SourceConfig};
//! # use tracewalk_analysis::drive::{Carrier, Follower, Input, NoProgress, Stretch};
//! # let config = SourceConfig::Etmv3(etmv3::Config::for_core("cortex-m3").expect("a known core"));
//! # let mut program = Program::new();
//! # program.add(Address::new(0x100), &[0x00, 0xbf, 0x00, 0xbf])?;
//! # let trace = [0, 0, 0, 0, 0, 0x80, 0x08, 0x21, 0x01, 0x01, 0x00, 0x00, 0x84, 0x84];
//! # let carrier = Carrier::Stretches(vec![Stretch::all(trace.len())]);
//! # let input = Input { capture: &trace, carrier, rest: None, progress: &NoProgress };
//! // `config`, `program` and `input` are made as in the example of `drive`.
//! // A trace of two instructions.
//! let mut recorder = Recorder::new(Conditions::OfEvery, Doubtful::Drop);
//! let statistics = Follower::new(&config, &program).flow(&input, |record| {
//!     recorder.element(&record.element, false);
//!     Ok(())
//! })?;
//! let part = recorder.finish("capture.bin", "-", "etmv3", statistics.bytes);
//! assert_eq!(part.source.instructions, 2);
//! let (block, count) = part.blocks.first_key_value().expect("a block");
//! assert_eq!((block.start, block.end, *count), (Address::new(0x100), Address::new(0x104), 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod code;
mod collected;
mod difference;
mod instructions;
mod limits;
mod losses;
mod paths;
mod recorder;
mod report;
mod runs;
mod saved;
mod tally;
mod tracefile;

pub use blocks::{BlockCounter, BlockCounts, BlockKey, Conditions, Outcome};
pub use collected::{Coverage, Part, ProgramCoverage, SourceSummary};
pub use difference::{
    DiffPath, Difference, FileDiff, FileDifference, Hunk, HunkLine, RevisionError, RevisionErrorKind,
    Revisions, SourceDiff, TextOf,
};
pub use instructions::{Branching, Instruction, Passes};
pub use limits::{Limit, LimitMeasure, ParseLimitError, Unmet};
pub use losses::{Losses, Lost};
pub use paths::common_folder;
pub use recorder::Recorder;
pub use report::{
    Branch, Copy, Counted, Every, File, Filter, Function, InlinedCall, Line, LineCopy, LineState,
    OutcomeCount, ProgramInput, Report, ReportedProgram, RunSummary, Stale,
};
pub use runs::{RunSet, Runs};
pub use saved::keeps_runs;
pub use tally::{Metric, Tally, Totals};
pub use tracefile::{TracedFile, TracedFunction, TracedLine, Tracefile};

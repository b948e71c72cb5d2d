//! The coverage of instructions, lines, functions and files.
//!
//! ```text
//! an instruction belongs to the linked function around it, and to a line of the function that the compiler made it from
//! a copy of a line: its instructions in one linked function, inlined through the same calls
//! a copy's count: that of its instruction that took effect most often
//! a line's count: those of its copies together
//! ```

mod build;
mod files;
mod model;
mod placed;
mod tables;

pub use build::{Every, Filter, ProgramInput};
pub use model::{
    Branch, Copy, Counted, File, Function, InlinedCall, Line, LineCopy, LineState, OutcomeCount, Report,
    ReportedProgram, RunSummary, Stale,
};

#[cfg(test)]
mod tests;

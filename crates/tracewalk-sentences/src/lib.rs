//! Notices and errors of a session → sentences: what is wrong, where, and which option of the command helps.
//!
//! A session's [`Notice`]s and errors are data. Whoever shows them to people asks here, so that a problem is called the same in the command, in
//! Python and in C.
#![forbid(unsafe_code)]

mod captures;
mod following;
mod names;
mod opening;
mod remedies;

use tracewalk_analysis::clock::Unit;
use tracewalk_session::{GatherError, Notice, OpenError, RunError};

pub use captures::row;
pub use names::{as_option, itm_name, quoted, source_name};
use remedies::remedy;

/// The sentence that says what a notice is about, and which option helps.
#[must_use]
pub fn sentence(notice: &Notice) -> String {
    opening::sentence(notice).or_else(|| following::sentence(notice)).unwrap_or_else(|| {
        // A newer session may have notices that nobody has put into words.
        match notice.at {
            Some(at) => format!("{}, first at {at}", notice.kind),
            None => notice.kind.to_string(),
        }
    })
}

/// The sentence that says why a capture cannot be opened, and what to try.
#[must_use]
pub fn of_open(error: &OpenError) -> String {
    match remedy(error) {
        Some(remedy) => format!("{error}; {remedy}"),
        None => error.to_string(),
    }
}

/// The sentence that says why work on a source ended, and what to try.
#[must_use]
pub fn of_run(error: &RunError) -> String {
    match error {
        RunError::Image(error) => of_open(&error.clone().into()),
        RunError::Open(error) => of_open(error),
        RunError::NoProgram => format!("{error}; {NO_PROGRAM}"),
        other => other.to_string(),
    }
}

/// The sentence that says why nothing was found of a capture, and what to try.
#[must_use]
pub fn of_gather(error: &GatherError) -> String {
    match error {
        GatherError::Open(error) => of_open(error),
        GatherError::Run(error) => of_run(error),
        // A newer session may have reasons that nobody has put into words.
        other => {
            format!("tracewalk has a defect that this capture brought to light ({}); report it", other.name())
        }
    }
}

/// That a trace has nothing to measure in this unit, and how it would have.
#[must_use]
pub const fn not_measured(unit: Unit) -> NotMeasured {
    let (missing, switch) = match unit {
        Unit::Cycles => ("cycle counts", "cycle-accurate tracing (ETMCR bit 12)"),
        Unit::Time => ("timestamps", "timestamping (ETMCR bit 28)"),
        Unit::Instructions => ("instructions", "tracing"),
    };
    NotMeasured { missing, switch }
}

/// What a trace lacks to measure by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotMeasured {
    /// What it has not.
    pub missing: &'static str,
    /// What is to be switched on when capturing.
    pub switch: &'static str,
}

/// What to try where there is no program to follow.
pub const NO_PROGRAM: &str = "give the ELF file that was running with --image";

/// The README's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Notices and errors of a session → sentences: what is wrong, where, and which option of the command helps.
//!
//! A session's [`Notice`]s and errors go in as data; one sentence comes out for each, with the option to try. All front ends (the command,
//! Python, C) ask here, so a problem has the same words everywhere.
//!
//! ```
//! use tracewalk_sentences::{of_open, sentence};
//! use tracewalk_session::{OpenError, Notice, NoticeKind};
//!
//! let notice = Notice::from(NoticeKind::NoProgram { source: None });
//! assert_eq!(
//!     sentence(&notice),
//!     "the source: without the program, only what the trace alone proves is known; add it with --image FILE"
//! );
//! assert!(of_open(&OpenError::NoMtbPacket).ends_with("; check --container, or give --registers FILE"));
//! ```
#![forbid(unsafe_code)]

/// The address of a page of the documents.
#[macro_export]
macro_rules! page {
    ($name:literal) => {
        concat!("https://github.com/tracewalk/tracewalk/blob/main/docs/", $name)
    };
}

mod captures;
mod coverage;
mod files;
mod following;
mod names;
mod opening;
mod parts;
mod places;
mod remedies;

use tracewalk_analysis::clock::Unit;
use tracewalk_session::{GatherError, Notice, OpenError, RunError};

pub use captures::row;
pub use coverage::{of_coverage_notice, of_unmet};
pub use names::{as_option, itm_name, quoted, source_name};
pub use places::of_places_notice;
use remedies::remedy;

/// The sentence of a notice: what is wrong or was inferred, where, and which option helps. No full stop.
#[must_use]
pub fn sentence(notice: &Notice) -> String {
    opening::sentence(notice).or_else(|| following::sentence(notice)).unwrap_or_else(|| {
        // A newer session may have notices that have no sentence here yet.
        match notice.at {
            Some(at) => format!("{}, first at {at}", notice.kind),
            None => notice.kind.to_string(),
        }
    })
}

/// The sentence of an error of `Session::open`: why the capture cannot be opened, and what to try.
#[must_use]
pub fn of_open(error: &OpenError) -> String {
    match remedy(error) {
        Some(remedy) => format!("{error}; {remedy}"),
        None => error.to_string(),
    }
}

/// The sentence of an error of `Session::run`: why work on a source ended, and what to try.
#[must_use]
pub fn of_run(error: &RunError) -> String {
    match error {
        RunError::Image(error) => of_open(&error.clone().into()),
        RunError::Open(error) => of_open(error),
        RunError::Coverage(error) => format!("{error}; {}", coverage::remedy(error)),
        RunError::Places(error) => places::of_places(error),
        RunError::NoProgram => format!("{error}; {NO_PROGRAM}"),
        RunError::Window(error) => format!("{error}; {}", parts::of_window(error)),
        RunError::Compare(error) => format!("{error}; {}", parts::of_compare(error)),
        other => other.to_string(),
    }
}

/// The sentence of an error of a gathering: why one of many captures gave no answer, and what to try.
#[must_use]
pub fn of_gather(error: &GatherError) -> String {
    match error {
        GatherError::Open(error) => of_open(error),
        GatherError::Run(error) => of_run(error),
        // A newer session may have reasons that have no sentence here yet.
        other => {
            format!("tracewalk has a defect that this capture exposed ({}); please report it", other.name())
        }
    }
}

/// The packets that a trace lacks to be measured in this unit, and the trace unit's setting for them.
#[must_use]
pub const fn not_measured(unit: Unit) -> NotMeasured {
    let (missing, switch) = match unit {
        Unit::Cycles => ("cycle counts", "cycle counting (ETMCR bit 12, or bit 4 of ETMv4's TRCCONFIGR)"),
        Unit::Time => (
            "timestamps",
            "timestamps (ETMCR bit 28, bit 11 of ETMv4's TRCCONFIGR, or bit 1 of an ITM's ITM_TCR)",
        ),
        Unit::Instructions => ("instructions", "tracing"),
        Unit::Samples => ("samples", "the DWT's samples of the program counter (DWT_CTRL, bit 12)"),
    };
    NotMeasured { missing, switch }
}

/// The packets that a trace lacks to be measured in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotMeasured {
    /// The missing packets, like `timestamps`.
    pub missing: &'static str,
    /// The setting to switch on when tracing, with the register's bit.
    pub switch: &'static str,
}

/// The remedy if there is no program to follow.
pub const NO_PROGRAM: &str = "give the traced program's ELF file with --image";

/// The README's example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! The outcome of one of many captures, as a row.

use tracewalk_analysis::Statistics;
use tracewalk_analysis::captures::{CaptureOutcome, OneOfMany};
use tracewalk_session::{Answered, OfCapture, Severity};

use crate::{of_gather, sentence};

/// The outcome of a capture, and the sentence of its first problem.
#[must_use]
pub fn row<T>(of: &OfCapture<Answered<T>>) -> OneOfMany {
    let incomplete = of.notices.iter().find(|notice| notice.severity() == Severity::Incomplete);
    let incomplete = incomplete.map(|notice| (notice.kind.name().to_owned(), sentence(notice)));
    let (outcome, problem, sources, counted) = match &of.found {
        Ok(Answered { sources, statistics, .. }) if incomplete.is_none() => {
            (CaptureOutcome::Whole, None, *sources, *statistics)
        }
        Ok(Answered { sources, statistics, .. }) => {
            (CaptureOutcome::Partial, incomplete, *sources, *statistics)
        }
        Err(error) => {
            let problem = Some((error.name().to_owned(), of_gather(error)));
            (CaptureOutcome::LeftOut, problem, 0, Statistics::default())
        }
    };
    let warnings = of.notices.iter().filter(|notice| notice.severity() != Severity::Note).count() as u64;
    OneOfMany {
        capture: of.capture.display().to_string(),
        outcome,
        sources,
        bytes: counted.bytes,
        instructions: counted.instructions,
        gaps: counted.gaps,
        warnings,
        problem,
    }
}

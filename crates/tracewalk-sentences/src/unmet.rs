//! What makes a check of coverage fail → a sentence.

use tracewalk_analysis::coverage::{SourceSummary, Unmet};
use tracewalk_report::{counted, losses_in_words};

/// The sentence of an unmet check of coverage.
#[must_use]
pub fn of_unmet(unmet: &Unmet) -> String {
    match unmet {
        Unmet::NothingMeasured => "nothing was measured; check that the image is the program that was traced, and that the capture holds \
                                   its trace"
            .to_owned(),
        Unmet::NothingFound { limit, unrecorded } => {
            let why = match unrecorded {
                true => "the trace does not record their outcomes",
                false => "the program has none, or --include and --exclude select none",
            };
            format!("found no {} to compare with {}%: {why}", limit.measure.name(), limit.percent)
        }
        Unmet::Below { limit, found } => {
            let permille = found.covered * 1000 / found.found;
            format!(
                "{}: found {}.{}% covered ({} of {}), expected at least {}%",
                limit.measure.name(),
                permille / 10,
                permille % 10,
                found.covered,
                found.found,
                limit.percent
            )
        }
        Unmet::LostLines(lines) => format!("{} of the base are no longer covered", counted(*lines, "line")),
        Unmet::LostOutcomes(lines) => {
            let lines = counted(*lines, "line");
            format!("outcomes of conditions at {lines} of the base are no longer covered")
        }
        Unmet::LostTrace(source) => lost(source),
        Unmet::CutOff => "a capture was not decoded to its end".to_owned(),
    }
}

/// The losses of a source.
fn lost(source: &SourceSummary) -> String {
    let mut parts = losses_in_words(&source.losses);
    if source.is_undecoded() {
        parts.push(format!("nothing in {} of trace could be decoded", counted(source.bytes, "byte")));
    }
    let id = if source.source == "-" { String::new() } else { format!(", {}", source.source) };
    format!("{}{id}: {}", source.capture, parts.join(", "))
}

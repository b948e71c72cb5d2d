//! The checks of coverage: `--fail-under`, `--fail-on-loss` and `--fail-on-regression`.

use tracewalk_analysis::coverage::{Difference, Metric, ProgramCoverage, Report, SourceSummary, Tally};
use tracewalk_analysis::programs::Programs;
use tracewalk_report::{counted, losses_in_words};

use crate::args::{Coverage, Limit, Measure};
use crate::failure::Failure;

/// Fails if there are unmet checks.
pub(super) fn verdict(unmet: &[String]) -> Result<(), Failure> {
    if unmet.is_empty() { Ok(()) } else { Err(Failure::Unmet(unmet.join("; "))) }
}

/// The messages of the limits that do not hold.
pub(super) fn limits(args: &Coverage, report: &Report, difference: Option<&Difference>) -> Vec<String> {
    if report.programs.is_empty() && !args.fail_under.is_empty() {
        return vec![NOTHING_MEASURED.to_owned()];
    }
    let changed = difference.and_then(|difference| difference.changed);
    let mut unmet =
        args.fail_under.iter().filter_map(|limit| limit.unmet(report, changed)).collect::<Vec<_>>();
    if let (true, Some(difference)) = (args.no_loss, difference) {
        let (lines, branches) = (difference.lost_lines() as u64, difference.lost_branches() as u64);
        if lines > 0 {
            unmet.push(format!("{} of the base are no longer covered", counted(lines, "line")));
        }
        if branches > 0 {
            unmet.push(format!(
                "outcomes of conditions at {} of the base are no longer covered",
                counted(branches, "line")
            ));
        }
    }
    unmet
}

/// The message if no program was followed, so that there is nothing to judge.
const NOTHING_MEASURED: &str = "nothing was measured; check that the image is the program that was traced, and that the capture holds \
                                its trace";

/// The messages of `--fail-on-loss`: one for each source that lost trace.
pub(super) fn losses(found: &Programs<ProgramCoverage>) -> Vec<String> {
    let sources = found.programs.values().flat_map(|program| &program.found.sources).collect::<Vec<_>>();
    if sources.is_empty() {
        return vec![NOTHING_MEASURED.to_owned()];
    }
    let mut unmet = sources.into_iter().filter_map(lost).collect::<Vec<_>>();
    if !found.complete {
        unmet.push("a capture was not decoded to its end".to_owned());
    }
    unmet
}

/// The losses of a source in one sentence; `None` if it lost nothing.
fn lost(source: &SourceSummary) -> Option<String> {
    let mut parts = losses_in_words(&source.losses);
    if source.bytes > 0 && source.instructions == 0 && source.losses.begins == 0 {
        parts.push(format!("nothing in {} of trace could be decoded", counted(source.bytes, "byte")));
    }
    let id = if source.source == "-" { String::new() } else { format!(", {}", source.source) };
    (!parts.is_empty()).then(|| format!("{}{id}: {}", source.capture, parts.join(", ")))
}

impl Limit {
    /// The message if coverage is below the limit.
    fn unmet(&self, report: &Report, changed: Option<Tally>) -> Option<String> {
        let Self { measure, percent } = *self;
        let (Tally { found, covered, unrecorded }, name) = match measure {
            Measure::Of(metric) => (report.totals.of(metric), metric.name()),
            Measure::Changed => (changed.unwrap_or_default(), "changed lines"),
        };
        if found == 0 {
            let why = match (measure, unrecorded) {
                // A change of comments or documents has nothing to cover.
                (Measure::Changed, _) => return None,
                (Measure::Of(Metric::Branches), 1..) => "the trace does not record their outcomes",
                _ => "the program has none, or --include and --exclude select none",
            };
            return Some(format!("found no {name} to compare with {percent}%: {why}"));
        }
        // Both counts are far below 2^52.
        let enough = covered as f64 * 100.0 >= percent * found as f64;
        (!enough).then(|| {
            let permille = covered * 1000 / found;
            format!(
                "{name}: found {}.{}% covered ({covered} of {found}), expected at least {percent}%",
                permille / 10,
                permille % 10
            )
        })
    }
}

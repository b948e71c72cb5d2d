//! Limits of coverage, and what makes a check fail.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use super::{Difference, Metric, ProgramCoverage, Report, SourceSummary, Tally};
use crate::InDoubt;
use crate::programs::Programs;

/// The least coverage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The measure that the limit applies to.
    pub measure: LimitMeasure,
    /// The least percentage.
    pub percent: f64,
}

/// The measure that a limit applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitMeasure {
    /// A metric of the whole report.
    Of(Metric),
    /// The lines that changed since the base.
    Changed,
}

/// Something that makes a check fail.
#[derive(Clone, Debug, PartialEq)]
pub enum Unmet {
    /// No program was followed, so that there is nothing to judge.
    NothingMeasured,
    /// There is nothing that a limit could apply to.
    NothingFound {
        /// The limit.
        limit: Limit,
        /// Whether the trace does not record the outcomes of branches.
        unrecorded: bool,
    },
    /// Less is covered than the limit.
    Below {
        /// The limit.
        limit: Limit,
        /// The tally.
        found: Tally,
    },
    /// This number of lines of the base are no longer covered.
    LostLines(u64),
    /// Outcomes of conditions at this number of lines of the base are no longer covered.
    LostOutcomes(u64),
    /// A source lost trace.
    LostTrace(Box<SourceSummary>),
    /// A capture was not decoded to its end.
    CutOff,
}

impl LimitMeasure {
    /// The name, in the plural.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Of(metric) => metric.name(),
            Self::Changed => "changed lines",
        }
    }
}

/// Why a text is not a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseLimitError(&'static str);

impl fmt::Display for ParseLimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for ParseLimitError {}

/// `METRIC=PERCENT`.
///
/// ```
/// use tracewalk_analysis::coverage::{Limit, LimitMeasure, Metric};
///
/// let limit: Limit = "lines=80".parse()?;
/// assert_eq!(limit, Limit { measure: LimitMeasure::Of(Metric::Lines), percent: 80.0 });
/// # Ok::<(), tracewalk_analysis::coverage::ParseLimitError>(())
/// ```
impl FromStr for Limit {
    type Err = ParseLimitError;

    fn from_str(text: &str) -> Result<Self, ParseLimitError> {
        const EXPECTED: ParseLimitError = ParseLimitError("expected METRIC=PERCENT, for example lines=80");
        let (name, percent) = text.split_once('=').ok_or(EXPECTED)?;
        let metric = Metric::ALL.into_iter().find(|metric| metric.name() == name).map(LimitMeasure::Of);
        let measure = metric.or((name == "changed").then_some(LimitMeasure::Changed));
        let measure = measure.ok_or(ParseLimitError(
            "expected lines, branches, functions, instructions or changed before the =",
        ))?;
        let percent = percent.trim_end_matches('%').parse().map_err(|_| EXPECTED)?;
        if !(0.0..=100.0).contains(&percent) {
            return Err(ParseLimitError("expected a number from 0 to 100 after the ="));
        }
        Ok(Self { measure, percent })
    }
}

impl Limit {
    /// The limits that do not hold. `changed` are the lines that changed since a base.
    #[must_use]
    pub fn unmet(limits: &[Self], report: &Report, changed: Option<Tally>) -> Vec<Unmet> {
        if report.programs.is_empty() && !limits.is_empty() {
            return vec![Unmet::NothingMeasured];
        }
        limits.iter().filter_map(|limit| limit.is_unmet(report, changed)).collect()
    }

    fn is_unmet(self, report: &Report, changed: Option<Tally>) -> Option<Unmet> {
        let tally = match self.measure {
            LimitMeasure::Of(metric) => report.totals.of(metric),
            LimitMeasure::Changed => changed.unwrap_or_default(),
        };
        if tally.found == 0 {
            return match self.measure {
                // A change of comments or documents has nothing to cover.
                LimitMeasure::Changed => None,
                LimitMeasure::Of(metric) => {
                    let unrecorded = metric == Metric::Branches && tally.unrecorded > 0;
                    Some(Unmet::NothingFound { limit: self, unrecorded })
                }
            };
        }
        // Both counts are far below 2^52.
        let enough = tally.covered as f64 * 100.0 >= self.percent * tally.found as f64;
        (!enough).then_some(Unmet::Below { limit: self, found: tally })
    }
}

impl Difference {
    /// The lines and outcomes of the base that are no longer covered.
    #[must_use]
    pub fn regressions(&self) -> Vec<Unmet> {
        let (lines, outcomes) = (self.lost_lines() as u64, self.lost_branches() as u64);
        let lines = (lines > 0).then_some(Unmet::LostLines(lines));
        lines.into_iter().chain((outcomes > 0).then_some(Unmet::LostOutcomes(outcomes))).collect()
    }
}

impl Programs<ProgramCoverage> {
    /// Each source that lost trace, and a capture that was not decoded to its end.
    #[must_use]
    pub fn losses(&self) -> Vec<Unmet> {
        let sources = self.programs.values().flat_map(|program| &program.found.sources).collect::<Vec<_>>();
        if sources.is_empty() {
            return vec![Unmet::NothingMeasured];
        }
        let lost = sources.into_iter().filter(|source| source.has_lost());
        let mut unmet = lost.map(|source| Unmet::LostTrace(Box::new(source.clone()))).collect::<Vec<_>>();
        if !self.complete {
            unmet.push(Unmet::CutOff);
        }
        unmet
    }
}

impl SourceSummary {
    /// Whether nothing of its trace could be decoded.
    #[must_use]
    pub const fn is_undecoded(&self) -> bool {
        self.bytes > 0 && self.instructions == 0 && self.losses.begins == 0
    }

    /// Whether it lost trace, so that the trace does not show all that it should.
    fn has_lost(&self) -> bool {
        let losses = &self.losses;
        let kinds = [losses.trace_lost, losses.address_unknown, losses.contradictions, losses.undecodable];
        kinds.iter().any(|lost| lost.stretches > 0)
            || losses.overflows > 0
            || losses.cut_frame_bytes > 0
            || !losses.no_image.is_empty()
            || losses.in_doubt != InDoubt::default()
            || self.is_undecoded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_metric_and_a_percentage() {
        let of = |metric, percent| Ok(Limit { measure: LimitMeasure::Of(metric), percent });
        assert_eq!("lines=80".parse(), of(Metric::Lines, 80.0));
        assert_eq!("branches=62.5%".parse(), of(Metric::Branches, 62.5));
        assert_eq!("changed=75".parse(), Ok(Limit { measure: LimitMeasure::Changed, percent: 75.0 }));
        for wrong in ["", "80", "lines", "lines=", "lines=x", "line=1", "lines=101", "lines=-1", "lines=NaN"]
        {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
    }
}

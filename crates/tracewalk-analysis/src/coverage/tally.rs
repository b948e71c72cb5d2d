//! Numbers of things, and of those that are covered.

use std::ops::AddAssign;

/// A number of things, and how many of them are covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number that can be judged.
    pub found: u64,
    /// The number of them that are covered.
    pub covered: u64,
    /// The number that no trace can show; not included in `found`.
    pub unrecorded: u64,
}

/// Tallies of everything that is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Lines of source files. A line that ran partly is covered.
    pub lines: Tally,
    /// Outcomes of conditions: two for each conditional instruction.
    pub branches: Tally,
    /// Functions.
    pub functions: Tally,
    /// Instructions.
    pub instructions: Tally,
}

/// A metric of coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Lines of source files.
    Lines,
    /// Outcomes of conditions.
    Branches,
    /// Functions.
    Functions,
    /// Instructions.
    Instructions,
}

/// The state of one thing. The greater of two verdicts counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Uncovered,
    Unrecorded,
    Covered,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 4] = [Self::Lines, Self::Branches, Self::Functions, Self::Instructions];

    /// The name, in the plural.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Branches => "branches",
            Self::Functions => "functions",
            Self::Instructions => "instructions",
        }
    }
}

impl Tally {
    pub(super) const fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Covered => {
                self.found += 1;
                self.covered += 1;
            }
            Verdict::Uncovered => self.found += 1,
            Verdict::Unrecorded => self.unrecorded += 1,
        }
    }

    /// The covered part from 0 to 1; `None` if nothing can be judged.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        // Both are far below 2^52.
        (self.found > 0).then(|| self.covered as f64 / self.found as f64)
    }

    /// The covered part in tenths of a percent, rounded down, so that 100 percent means complete.
    #[must_use]
    pub fn permille(&self) -> Option<u64> {
        self.covered.saturating_mul(1000).checked_div(self.found)
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.found += other.found;
        self.covered += other.covered;
        self.unrecorded += other.unrecorded;
    }
}

impl Totals {
    /// The tally of a metric.
    #[must_use]
    pub const fn of(&self, metric: Metric) -> Tally {
        match metric {
            Metric::Lines => self.lines,
            Metric::Branches => self.branches,
            Metric::Functions => self.functions,
            Metric::Instructions => self.instructions,
        }
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.branches += other.branches;
        self.functions += other.functions;
        self.instructions += other.instructions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_all_is_not_all_and_of_nothing_there_is_no_part() {
        let tally = |covered, found| Tally { found, covered, unrecorded: 7 };
        assert_eq!(tally(9999, 10_000).permille(), Some(999));
        assert_eq!(tally(3, 3).permille(), Some(1000));
        assert_eq!(tally(0, 0).permille(), None);
        assert_eq!(tally(1, 2).rate(), Some(0.5));
    }
}

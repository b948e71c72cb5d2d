//! Coverage collected from several sources, captures and runs.

use serde::{Deserialize, Serialize};

use super::blocks::{BlockCounts, Conditions};
use super::instructions;
use super::losses::Losses;
use super::runs::Runs;
use crate::Code;
use crate::programs::{Merge, Programs};

/// The coverage of one source of one capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The source, and its losses.
    pub source: SourceSummary,
    /// How often each block ran.
    pub blocks: BlockCounts,
}

/// One source of one capture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSummary {
    /// The capture's name.
    pub capture: String,
    /// The source's name in the capture: its trace ID, or `-`.
    pub source: String,
    /// The protocol's name.
    pub protocol: String,
    /// The instructions for which the source records whether their conditions passed.
    pub conditions: Conditions,
    /// Bytes of trace.
    pub bytes: u64,
    /// Instructions that were passed.
    pub instructions: u64,
    /// The losses.
    pub losses: Losses,
}

/// The coverage of one program by several sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramCoverage {
    /// The sources, in order.
    pub sources: Vec<SourceSummary>,
    /// How often each block ran.
    pub blocks: BlockCounts,
    /// The runs that passed each block, if requested.
    pub runs: Runs,
}

/// The coverage of the programs that several sources traced: one, or one for each kind of core.
pub type Coverage = Programs<ProgramCoverage>;

impl ProgramCoverage {
    /// The coverage of one source.
    #[must_use]
    pub fn of(part: Part) -> Self {
        Self { sources: vec![part.source], blocks: part.blocks, runs: Runs::default() }
    }

    /// The coverage of one of several programs that a source ran: the instructions are this program's.
    #[must_use]
    pub fn of_one(mut part: Part, code: &Code) -> Self {
        let instructions = instructions::count(code, &code.symbols.functions(), &part.blocks);
        part.source.instructions =
            instructions.fold(0, |sum: u64, counted| sum.saturating_add(counted.passes.total()));
        Self::of(part)
    }

    /// Records that the end of the capture cuts off this many bytes of a frame.
    pub fn cut_off(&mut self, frame_bytes: u64) {
        self.sources.iter_mut().for_each(|source| source.losses.cut_frame_bytes = frame_bytes);
    }

    /// The losses of all sources, added up.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let mut sum = Losses::default();
        for source in &self.sources {
            sum.add(&source.losses);
        }
        sum
    }
}

/// Fewer new sources than this are inserted one by one; more are appended, and all sources sorted. A run adds one source, a
/// saved file adds thousands.
const MANY: usize = 16;

impl Merge for ProgramCoverage {
    fn merge(&mut self, other: Self) {
        if other.sources.len() < MANY {
            for source in other.sources {
                let at = self.sources.partition_point(|known| *known <= source);
                self.sources.insert(at, source);
            }
        } else {
            self.sources.extend(other.sources);
            self.sources.sort();
        }
        for (block, count) in other.blocks {
            let sum = self.blocks.entry(block).or_default();
            *sum = sum.saturating_add(count);
        }
        self.runs.add(&other.runs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::{BlockKey, Outcome};
    use crate::programs::{MergeError, ProgramId};
    use proptest::prelude::*;
    use tracewalk::ids::{Address, Isa};

    fn block() -> impl Strategy<Value = (BlockKey, u64)> {
        let count = prop_oneof![0..100_u64, Just(u64::MAX)];
        (0..8_u32, 1..4_u32, 0..4_usize, any::<bool>(), count).prop_map(
            |(start, length, outcome, every, count)| {
                let outcome = [Outcome::Passed, Outcome::Failed, Outcome::Taken, Outcome::NotTaken][outcome];
                let conditions = if every { Conditions::OfEvery } else { Conditions::OfBranches };
                let (start, end) = (Address::from(start * 2), Address::from(start * 2 + length * 2));
                (BlockKey { start, end, isa: Isa::T32, outcome, conditions }, count)
            },
        )
    }

    fn losses() -> impl Strategy<Value = Losses> {
        let pages = prop::collection::btree_map(0..3_u32, 1..5_u64, 0..3);
        (0..5_u64, pages).prop_map(|(begins, pages)| Losses {
            begins,
            no_image: pages.into_iter().map(|(page, count)| (Address::from(page << 12), count)).collect(),
            ..Losses::default()
        })
    }

    fn part() -> impl Strategy<Value = Part> {
        (prop::collection::btree_map(0..6_u32, block(), 0..6), losses(), 0..3_u8).prop_map(
            |(blocks, losses, name)| {
                let blocks: BlockCounts = blocks.into_values().collect();
                let source = SourceSummary {
                    capture: format!("capture {name}"),
                    source: "-".to_owned(),
                    protocol: "etmv3".to_owned(),
                    conditions: Conditions::OfEvery,
                    bytes: 1,
                    instructions: 2,
                    losses,
                };
                Part { source, blocks }
            },
        )
    }

    /// Coverage of some of three programs, always of the first.
    fn coverage() -> impl Strategy<Value = Coverage> {
        (part(), prop::collection::vec((0..3_u8, part()), 0..3)).prop_map(|(first, others)| {
            let mut coverage = Coverage::default();
            for (program, part) in [(0, first)].into_iter().chain(others) {
                let images = [format!("{program}.elf")];
                let name = part.source.capture.clone();
                let mut found = ProgramCoverage::of(part);
                found.runs = Runs::of(name, &found.blocks);
                coverage.add(ProgramId::Code([program; 32]), images, found);
            }
            coverage
        })
    }

    /// The merged coverage, or the error.
    fn merged(a: &Coverage, b: &Coverage) -> Result<Coverage, ()> {
        let mut sum = a.clone();
        sum.merge(b.clone()).map(|()| sum).map_err(|_| ())
    }

    #[test]
    fn thousands_of_captures_are_added_in_any_order() {
        let losses = Losses::default();
        let source = |number: u64| SourceSummary {
            capture: format!("run-{}", number % 60_000),
            source: "-".to_owned(),
            protocol: "mtb".to_owned(),
            conditions: Conditions::OfEvery,
            bytes: number,
            instructions: 0,
            losses: losses.clone(),
        };
        let of = |sources: std::ops::Range<u64>| ProgramCoverage {
            sources: sources.rev().map(source).collect(),
            ..ProgramCoverage::default()
        };
        let start = std::time::Instant::now();
        let mut sum = of(0..1);
        sum.merge(of(1..60_000));
        assert!(sum.sources.is_sorted() && sum.sources.len() == 60_000);
        // Sorting takes a fraction of a second, and moving those after each that is inserted half a minute.
        assert!(start.elapsed().as_secs() < 10);
    }

    proptest! {
        #[test]
        fn merging_is_commutative(a in coverage(), b in coverage()) {
            prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        }

        #[test]
        fn merging_is_associative(a in coverage(), b in coverage(), c in coverage()) {
            // Parts of other programs may be refused in one order and not in another; parts of one program never are.
            let only_first = |coverage: &Coverage| {
                let id = ProgramId::Code([0; 32]);
                let programs = [(id.clone(), coverage.programs[&id].clone())];
                Coverage { programs: programs.into_iter().collect(), complete: true }
            };
            let (a, b, c) = (only_first(&a), only_first(&b), only_first(&c));
            let left = merged(&merged(&a, &b).unwrap(), &c);
            let right = merged(&a, &merged(&b, &c).unwrap());
            prop_assert!(left.is_ok());
            prop_assert_eq!(left, right);
        }

        #[test]
        fn nothing_is_the_neutral_element(a in coverage()) {
            prop_assert_eq!(merged(&a, &Coverage::default()), Ok(a.clone()));
        }
    }

    #[test]
    fn coverage_of_another_program_is_refused() {
        let with = |program: u8| {
            let mut coverage = Coverage::default();
            coverage.add(ProgramId::Code([program; 32]), [], ProgramCoverage::default());
            coverage
        };
        let mut coverage = with(1);
        assert_eq!(coverage.merge(with(1)), Ok(()));
        let refused = coverage.merge(with(2)).unwrap_err();
        let expected = vec![ProgramId::Code([1; 32])];
        assert_eq!(refused, MergeError::Program { expected, found: ProgramId::Code([2; 32]) });
        assert_eq!(coverage, with(1));
    }
}

//! Coverage collected from several sources, captures and runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use sha2::{Digest, Sha256};
use tracewalk::program::Program;

use super::blocks::{BlockCounts, Conditions};
use super::recorder::Losses;

/// What one source of one capture says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which source, and what it does not say.
    pub source: SourceSummary,
    /// How often each block ran.
    pub blocks: BlockCounts,
}

/// One source of one capture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceSummary {
    /// The capture's name.
    pub capture: String,
    /// The source's name in it: its trace ID, or `-`.
    pub source: String,
    /// The protocol's name.
    pub protocol: String,
    /// Of which instructions it tells whether their conditions passed.
    pub conditions: Conditions,
    /// Bytes of trace.
    pub bytes: u64,
    /// Instructions that were passed.
    pub instructions: u64,
    /// What it cannot tell.
    pub losses: Losses,
}

/// Which program it was. Counts of different programs cannot be added: their addresses mean different code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProgramId {
    /// The build IDs of its images, where each of them has one.
    Builds(BTreeSet<Vec<u8>>),
    /// The SHA-256 hash of its code: of each region's address and length as little-endian words of eight bytes, and its
    /// bytes.
    Code([u8; 32]),
}

/// What several sources say of one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramCoverage {
    /// The file names of its images, for messages. They say nothing of which program it is.
    pub images: BTreeSet<String>,
    /// The sources, in order.
    pub sources: Vec<SourceSummary>,
    /// How often each block ran.
    pub blocks: BlockCounts,
}

/// What several sources say of the programs that they traced: one, or one for each kind of core.
///
/// Merging is associative and commutative: in which order parts come together does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// By program.
    pub programs: BTreeMap<ProgramId, ProgramCoverage>,
}

/// Two coverages are of different programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferentProgram {
    /// The programs of one of them.
    pub expected: Vec<ProgramId>,
    /// A program that the other has, and this one not.
    pub found: ProgramId,
}

impl ProgramId {
    /// The identity of a program whose images have these build IDs. Where one has none, the code itself is asked.
    #[must_use]
    pub fn of<'a>(program: &Program, build_ids: impl IntoIterator<Item = Option<&'a [u8]>>) -> Self {
        let ids = build_ids.into_iter().map(|id| id.filter(|id| !id.is_empty()).map(<[u8]>::to_vec));
        match ids.collect::<Option<BTreeSet<_>>>() {
            Some(ids) if !ids.is_empty() => Self::Builds(ids),
            _ => Self::of_code(program),
        }
    }

    fn of_code(program: &Program) -> Self {
        let mut hash = Sha256::new();
        for region in program.regions() {
            hash.update(u64::from(region.start().0).to_le_bytes());
            hash.update((region.bytes().len() as u64).to_le_bytes());
            hash.update(region.bytes());
        }
        Self::Code(hash.finalize().into())
    }
}

impl Coverage {
    /// Adds what a source says of a program. `images` are its file names.
    pub fn add(&mut self, program: ProgramId, images: impl IntoIterator<Item = String>, part: Part) {
        let known = self.programs.entry(program).or_default();
        known.merge(ProgramCoverage {
            images: images.into_iter().collect(),
            sources: vec![part.source],
            blocks: part.blocks,
        });
    }

    /// Adds another coverage of the same programs, or of some of them.
    pub fn merge(&mut self, other: Self) -> Result<(), DifferentProgram> {
        let unknown =
            |from: &Self, to: &Self| from.programs.keys().find(|id| !to.programs.contains_key(*id)).cloned();
        if let (Some(found), Some(_)) = (unknown(&other, self), unknown(self, &other)) {
            return Err(DifferentProgram { expected: self.programs.keys().cloned().collect(), found });
        }
        for (id, coverage) in other.programs {
            self.programs.entry(id).or_default().merge(coverage);
        }
        Ok(())
    }
}

impl ProgramCoverage {
    /// Adds what other sources say of the same program.
    pub(super) fn merge(&mut self, other: Self) {
        self.images.extend(other.images);
        self.sources.extend(other.sources);
        self.sources.sort();
        for (block, count) in other.blocks {
            let sum = self.blocks.entry(block).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// What none of the sources can tell, added up.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let mut sum = Losses::default();
        for source in &self.sources {
            sum.add(&source.losses);
        }
        sum
    }
}

impl fmt::Display for ProgramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| {
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        };
        match self {
            Self::Builds(ids) => {
                f.write_str("build")?;
                ids.iter().try_for_each(|id| {
                    f.write_str(" ")?;
                    hex(f, id)
                })
            }
            Self::Code(hash) => {
                f.write_str("code ")?;
                hex(f, hash)
            }
        }
    }
}

impl fmt::Display for DifferentProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let expected = self.expected.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        write!(f, "is of another program: found {}, expected {expected}", self.found)
    }
}

impl std::error::Error for DifferentProgram {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::coverage::{BlockKey, Outcome};
    use proptest::prelude::*;
    use tracewalk::ids::{Address, Isa};

    fn block() -> impl Strategy<Value = (BlockKey, u64)> {
        let count = prop_oneof![0..100_u64, Just(u64::MAX)];
        (0..8_u32, 1..4_u32, 0..4_usize, any::<bool>(), count).prop_map(
            |(start, length, outcome, every, count)| {
                let outcome = [Outcome::Passed, Outcome::Failed, Outcome::Taken, Outcome::NotTaken][outcome];
                let conditions = if every { Conditions::OfEvery } else { Conditions::OfBranches };
                let (start, end) = (Address(start * 2), Address(start * 2 + length * 2));
                (BlockKey { start, end, isa: Isa::T32, outcome, conditions }, count)
            },
        )
    }

    fn losses() -> impl Strategy<Value = Losses> {
        let pages = prop::collection::btree_map(0..3_u32, 1..5_u64, 0..3);
        (0..5_u64, pages).prop_map(|(begins, pages)| Losses {
            begins,
            no_image: pages.into_iter().map(|(page, count)| (Address(page << 12), count)).collect(),
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
                coverage.add(ProgramId::Code([program; 32]), [format!("{program}.elf")], part);
            }
            coverage
        })
    }

    /// Merged, or why not.
    fn merged(a: &Coverage, b: &Coverage) -> Result<Coverage, ()> {
        let mut sum = a.clone();
        sum.merge(b.clone()).map(|()| sum).map_err(|_| ())
    }

    proptest! {
        #[test]
        fn merging_is_commutative(a in coverage(), b in coverage()) {
            prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        }

        #[test]
        fn merging_is_associative(a in coverage(), b in coverage(), c in coverage()) {
            // Parts of other programs may be refused in one order and not in another; of one program none is.
            let only_first = |coverage: &Coverage| {
                let id = ProgramId::Code([0; 32]);
                let programs = [(id.clone(), coverage.programs[&id].clone())];
                Coverage { programs: programs.into_iter().collect() }
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
    fn a_program_is_known_by_its_build_ids_and_without_one_by_its_code() {
        let mut program = Program::new();
        program.add(Address(0x100), &[1, 2, 3, 4]).unwrap();
        let mut other = Program::new();
        other.add(Address(0x102), &[1, 2, 3, 4]).unwrap();
        let id = |build: &[Option<&[u8]>]| ProgramId::of(&program, build.iter().copied());
        assert_eq!(id(&[Some(&[0xab, 0x01])]).to_string(), "build ab01");
        assert_eq!(id(&[Some(&[2]), Some(&[1])]), id(&[Some(&[1]), Some(&[2])]));
        assert_ne!(id(&[Some(&[1])]), id(&[Some(&[2])]));
        // `printf '\0\1\0\0\0\0\0\0\4\0\0\0\0\0\0\0\1\2\3\4' | sha256sum`
        let hash = "code 3b63e5e71defe45135e308e4048ad27aed0fbb2a5d7a93c31039749daef9aa40";
        assert_eq!(id(&[None]).to_string(), hash);
        assert_eq!(id(&[Some(&[1]), None]), id(&[None]));
        assert_ne!(id(&[None]), ProgramId::of(&other, [None]));
        assert_eq!(id(&[]), id(&[None]));
    }

    #[test]
    fn coverage_of_another_program_is_refused() {
        let with = |program: u8| {
            let programs = [(ProgramId::Code([program; 32]), ProgramCoverage::default())];
            Coverage { programs: programs.into_iter().collect() }
        };
        let mut coverage = with(1);
        assert_eq!(coverage.merge(with(1)), Ok(()));
        let refused = coverage.merge(with(2)).unwrap_err();
        assert_eq!(refused.found, ProgramId::Code([2; 32]));
        assert_eq!(coverage, with(1));
    }
}

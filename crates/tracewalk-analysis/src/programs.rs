//! Answers of several captures, added up by program: [`Programs`] keeps one answer for each program's identity.
//!
//! ```
//! use tracewalk_analysis::coverage::{Coverage, ProgramCoverage};
//! use tracewalk_analysis::programs::ProgramId;
//!
//! let firmware = ProgramId::Builds([vec![0x2f, 0x3a]].into());
//! let of_run = |image: &str| {
//!     let mut coverage = Coverage::default();
//!     coverage.add(firmware.clone(), [image.to_owned()], ProgramCoverage::default());
//!     coverage
//! };
//! let mut total = of_run("fw.elf");
//! total.merge(of_run("copy of fw.elf"))?;
//! assert_eq!(total.programs[&firmware].images.len(), 2);
//! # Ok::<(), tracewalk_analysis::programs::MergeError>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use tracewalk::ids::TraceId;
use tracewalk::program::{Program, Scope};

use crate::saved::words;
use crate::table::Cell;

/// The identity of a program. Answers about different programs cannot be added: their addresses mean different code.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum ProgramId {
    /// The build IDs of its images, if each of them has one.
    #[serde(rename = "build", with = "words::set")]
    Builds(BTreeSet<Vec<u8>>),
    /// The SHA-256 hash of its code: for each region, the address and the length as little-endian words of eight bytes, and its
    /// bytes. For code that is visible only in some contexts, the words of context ID and VMID come first, each increased by one,
    /// with 0 for any.
    #[serde(rename = "code", with = "words")]
    Code([u8; 32]),
}

/// The answers about programs: one, or one for each kind of core.
///
/// Merging is associative and commutative: the order of parts does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs<T> {
    /// By program.
    pub programs: BTreeMap<ProgramId, OfProgram<T>>,
    /// Whether every capture was decoded to its end.
    pub complete: bool,
}

/// The answer about one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfProgram<T> {
    /// The file names of its images, for messages. They do not identify the program.
    pub images: BTreeSet<String>,
    /// The answer.
    pub found: T,
}

/// One source of a program's captures: the source with this ID and protocol in each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SourceId {
    /// The trace ID; `None` for captures without IDs.
    #[serde(with = "words::optional")]
    pub id: Option<TraceId>,
    /// The protocol's name.
    #[serde(with = "words")]
    pub protocol: words::ProtocolName,
    /// The number among equal sources, from 1: the buffers of one capture may each have one.
    #[serde(deserialize_with = "from_one")]
    pub number: u16,
}

/// An answer about one program that can be added to other answers about the same program.
pub trait Merge: Default {
    /// Whether each answer is about one file of a program, so that answers of runs that loaded other files can stand beside it.
    const OF_FILES: bool = false;

    /// How the answer was measured, if there are several ways. Answers that were measured differently cannot be added.
    fn measure(&self) -> Option<String> {
        None
    }

    /// Adds an answer about the same program, measured in the same way.
    fn merge(&mut self, other: Self);
}

/// Why two answers cannot be added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// The answers are about different programs.
    Program {
        /// The programs of one answer.
        expected: Vec<ProgramId>,
        /// A program that only the other answer has.
        found: ProgramId,
    },
    /// The answers were measured in different ways.
    Measure {
        /// How one answer was measured.
        expected: String,
        /// How the other answer was measured.
        found: String,
    },
}

/// A number that is counted from 1.
fn from_one<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    std::num::NonZeroU16::deserialize(from).map(std::num::NonZeroU16::get)
}

impl<T> OfProgram<T> {
    /// The program's name: the names of its images.
    #[must_use]
    pub fn name(&self) -> String {
        self.images.iter().map(String::as_str).collect::<Vec<_>>().join(" and ")
    }
}

impl ProgramId {
    /// The build IDs, in hexadecimal.
    #[must_use]
    pub fn build_id(&self) -> Option<String> {
        self.to_string().strip_prefix("build ").map(str::to_owned)
    }

    /// The hash of the code of a program without build IDs, in hexadecimal.
    #[must_use]
    pub fn code_hash(&self) -> Option<String> {
        self.to_string().strip_prefix("code ").map(str::to_owned)
    }

    /// The identity of the code that is visible in all contexts, whose images have these build IDs. If one has none, the code is
    /// hashed.
    #[must_use]
    pub fn of<'a>(program: &Program, build_ids: impl IntoIterator<Item = Option<&'a [u8]>>) -> Self {
        let ids = build_ids.into_iter().map(|id| id.filter(|id| !id.is_empty()).map(<[u8]>::to_vec));
        match ids.collect::<Option<BTreeSet<_>>>() {
            Some(ids) if !ids.is_empty() => Self::Builds(ids),
            _ => Self::of_code(program, false),
        }
    }

    /// The identity of a whole program. If images are for some contexts only, the code is hashed, because build IDs do not
    /// include the contexts.
    #[must_use]
    pub fn of_all<'a>(program: &Program, build_ids: impl IntoIterator<Item = Option<&'a [u8]>>) -> Self {
        match program.scopes().next() {
            None => Self::of(program, build_ids),
            Some(_) => Self::of_code(program, true),
        }
    }

    fn of_code(program: &Program, of_all: bool) -> Self {
        let mut hash = Sha256::new();
        let word = |hash: &mut Sha256, word: u64| hash.update(word.to_le_bytes());
        let regions = program.all_regions().filter(|(scope, _)| of_all || *scope == Scope::EVERYWHERE);
        for (scope, region) in regions {
            if scope != Scope::EVERYWHERE {
                word(&mut hash, scope.context_id.map_or(0, |id| u64::from(id.0) + 1));
                word(&mut hash, scope.vmid.map_or(0, |vmid| u64::from(vmid.0) + 1));
            }
            word(&mut hash, region.start().get());
            word(&mut hash, region.bytes().len() as u64);
            hash.update(region.bytes());
        }
        Self::Code(hash.finalize().into())
    }
}

impl<T> Default for Programs<T> {
    fn default() -> Self {
        Self { programs: BTreeMap::new(), complete: true }
    }
}

impl<T: Merge> Programs<T> {
    /// Adds answers about the same programs, or about some of them; [answers about files](Merge::OF_FILES) may be about any.
    ///
    /// # Errors
    ///
    /// If the answers are about different programs, or measured differently. Nothing is added.
    pub fn merge(&mut self, other: Self) -> Result<(), MergeError> {
        self.accepts(&other)?;
        self.add_all(other);
        Ok(())
    }

    /// Whether other answers can be added.
    ///
    /// # Errors
    ///
    /// If they are about other programs, or were measured in another way.
    pub fn accepts(&self, other: &Self) -> Result<(), MergeError> {
        let unknown =
            |from: &Self, to: &Self| from.programs.keys().find(|id| !to.programs.contains_key(*id)).cloned();
        if let (false, Some(found), Some(_)) = (T::OF_FILES, unknown(other, self), unknown(self, other)) {
            return Err(MergeError::Program { expected: self.programs.keys().cloned().collect(), found });
        }
        if let (Some(expected), Some(found)) = (self.measure(), other.measure())
            && expected != found
        {
            return Err(MergeError::Measure { expected, found });
        }
        Ok(())
    }

    /// Adds answers about any programs, measured in the same way: each program keeps its own.
    pub fn add_all(&mut self, other: Self) {
        self.complete &= other.complete;
        for (id, OfProgram { images, found }) in other.programs {
            self.add(id, images, found);
        }
    }

    /// Adds an answer about a program, whose images have these file names.
    pub fn add(&mut self, id: ProgramId, images: impl IntoIterator<Item = String>, found: T) {
        let program = self.programs.entry(id).or_default();
        program.images.extend(images);
        program.found.merge(found);
    }

    /// How the answers were measured, if there are several ways.
    #[must_use]
    pub fn measure(&self) -> Option<String> {
        self.programs.values().find_map(|program| program.found.measure())
    }
}

impl SourceId {
    /// The first cells of each row of a source's tables, as those of its [section](crate::Section::cells).
    #[must_use]
    pub fn cells(&self) -> [Cell; 3] {
        [self.id.into(), self.protocol.into(), self.number.into()]
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

impl MergeError {
    /// A stable short name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Program { .. } => "other_program",
            Self::Measure { .. } => "other_measure",
        }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { expected, found } => {
                let expected = expected.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
                write!(f, "is of another program: found {found}, expected {expected}")
            }
            Self::Measure { expected, found } => {
                write!(f, "was measured differently: found {found}, expected {expected}")
            }
        }
    }
}

impl std::error::Error for MergeError {}

#[cfg(test)]
mod tests {
    use super::*;
    use tracewalk::ids::{Address, ContextId};

    #[test]
    fn a_program_is_known_by_its_build_ids_and_without_one_by_its_code() {
        let mut program = Program::new();
        program.add(Address::new(0x100), &[1, 2, 3, 4]).unwrap();
        let mut other = Program::new();
        other.add(Address::new(0x102), &[1, 2, 3, 4]).unwrap();
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
    fn images_of_some_contexts_are_part_of_the_whole_program_alone() {
        let with = |context: u32| {
            let mut program = Program::new();
            program.add(Address::new(0x100), &[1, 2, 3, 4]).unwrap();
            program.add_in(Scope::context(ContextId(context)), Address::new(0x200), &[5, 6]).unwrap();
            program
        };
        let builds = [Some(&[1_u8][..]), Some(&[2][..])];
        let all = |context| ProgramId::of_all(&with(context), builds);
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
        assert_eq!(ProgramId::of(&with(7), builds), ProgramId::of(&with(8), builds));
        assert_eq!(ProgramId::of(&with(7), [None]), ProgramId::of(&with(8), [None]));
    }
}

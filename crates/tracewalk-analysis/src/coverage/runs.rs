//! The runs that passed a block, an instruction or a line: sets of runs, kept only on request.

use std::collections::BTreeMap;

use super::blocks::{BlockCounts, BlockKey};

/// A set of runs, by their indices.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunSet {
    /// Run `n` is bit `n % 64` of word `n / 64`; the last word is not 0.
    words: Vec<u64>,
}

impl RunSet {
    /// Adds a run.
    pub fn insert(&mut self, run: usize) {
        let (word, bit) = (run / 64, 1 << (run % 64));
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        if let Some(word) = self.words.get_mut(word) {
            *word |= bit;
        }
    }

    /// Whether the set has a run.
    #[must_use]
    pub fn contains(&self, run: usize) -> bool {
        self.words.get(run / 64).is_some_and(|word| word >> (run % 64) & 1 != 0)
    }

    /// Adds all runs of another set.
    pub fn add(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// The runs, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let bits = |(index, &word): (usize, &u64)| {
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| 64 * index + bit)
        };
        self.words.iter().enumerate().flat_map(bits)
    }

    /// How many runs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The set with each run's index replaced.
    #[must_use]
    fn renumbered(&self, numbers: &[usize]) -> Self {
        self.iter().filter_map(|run| numbers.get(run).copied()).collect()
    }
}

impl FromIterator<usize> for RunSet {
    fn from_iter<I: IntoIterator<Item = usize>>(runs: I) -> Self {
        let mut set = Self::default();
        runs.into_iter().for_each(|run| set.insert(run));
        set
    }
}

/// The runs of one program, and those that passed each block. Empty if runs were not kept apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runs {
    /// In order.
    names: Vec<String>,
    blocks: BTreeMap<BlockKey, RunSet>,
}

impl Runs {
    /// One run, which passed these blocks.
    #[must_use]
    pub fn of(name: String, blocks: &BlockCounts) -> Self {
        let passed = blocks.keys().map(|block| (*block, std::iter::once(0).collect()));
        Self { names: vec![name], blocks: passed.collect() }
    }

    /// The runs' names, in order: a run's index is that of its name.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The blocks that were passed, each with its runs.
    #[must_use]
    pub const fn blocks(&self) -> &BTreeMap<BlockKey, RunSet> {
        &self.blocks
    }

    /// Adds other runs. Runs of one name are one run.
    pub fn add(&mut self, other: &Self) {
        // A saved file has its runs in order.
        if self.names.last() < other.names.first() {
            let before = self.names.len();
            self.names.extend_from_slice(&other.names);
            for (block, set) in &other.blocks {
                let runs = self.blocks.entry(*block).or_default();
                set.iter().for_each(|run| runs.insert(before + run));
            }
            return;
        }
        let mut names = self.names.iter().chain(&other.names).cloned().collect::<Vec<_>>();
        names.sort_unstable();
        names.dedup();
        let ours = numbers(&self.names, &names);
        let theirs = numbers(&other.names, &names);
        if ours.iter().enumerate().any(|(old, new)| old != *new) {
            self.blocks.values_mut().for_each(|set| *set = set.renumbered(&ours));
        }
        self.names = names;
        for (block, set) in &other.blocks {
            self.blocks.entry(*block).or_default().add(&set.renumbered(&theirs));
        }
    }

    /// The sets of runs, with indices into `names`, which contains all their names.
    pub(super) fn numbered_by(&self, names: &[String]) -> BTreeMap<BlockKey, RunSet> {
        let numbers = numbers(&self.names, names);
        self.blocks.iter().map(|(block, set)| (*block, set.renumbered(&numbers))).collect()
    }
}

/// The indices of the names of one list in another that has all of them.
fn numbers(of: &[String], all: &[String]) -> Vec<usize> {
    of.iter().filter_map(|name| all.binary_search(name).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_of_runs_is_a_set(one in prop::collection::btree_set(0..200_usize, 0..9), other in prop::collection::btree_set(0..200_usize, 0..9)) {
            let of = |runs: &BTreeSet<usize>| runs.iter().copied().collect::<RunSet>();
            let mut sum = of(&one);
            prop_assert_eq!(sum.iter().collect::<BTreeSet<_>>(), one.clone());
            prop_assert_eq!(sum.len(), one.len());
            prop_assert_eq!(sum.is_empty(), one.is_empty());
            sum.add(&of(&other));
            prop_assert_eq!(&sum, &of(&one.union(&other).copied().collect()));
            prop_assert!((0..200).all(|run| sum.contains(run) == (one.contains(&run) || other.contains(&run))));
        }
    }
}

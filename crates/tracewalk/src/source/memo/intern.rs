//! Numbers for values: equal values have the same number.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Values by number. The table grows with every new value until the caller [clears](Interned::clear) it.
#[derive(Clone, Debug)]
pub(super) struct Interned<T> {
    values: Vec<T>,
    numbers: HashTable<u32>,
}

impl<T: Eq + Hash> Interned<T> {
    pub(super) const fn new() -> Self {
        Self { values: Vec::new(), numbers: HashTable::new() }
    }

    /// The number of `value`.
    pub(super) fn number(&mut self, value: T) -> u32 {
        let hash = FxBuildHasher.hash_one(&value);
        let is_it = |number: &u32| self.values.get(*number as usize) == Some(&value);
        if let Some(number) = self.numbers.find(hash, is_it) {
            return *number;
        }
        let number = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(value);
        let hash_of =
            |number: &u32| self.values.get(*number as usize).map_or(0, |value| FxBuildHasher.hash_one(value));
        self.numbers.insert_unique(hash, number, hash_of);
        number
    }

    /// The value with this number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Forgets all values.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.numbers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_the_same_number_and_others_do_not() {
        let mut interned = Interned::new();
        let numbers = || (0..1000_u32).map(|value| value * value);
        assert!(numbers().map(|value| interned.number(value)).eq(0..1000));
        assert!(numbers().map(|value| interned.number(value)).eq(0..1000));
        assert_eq!(interned.get(30), Some(&900));
        assert_eq!(interned.len(), 1000);
        interned.clear();
        assert_eq!((interned.number(7), interned.number(8), interned.number(7)), (0, 1, 0));
    }
}

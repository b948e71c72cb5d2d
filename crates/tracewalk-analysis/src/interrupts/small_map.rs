//! A map that is usually small, and whose newest entries are looked up most.

use std::hash::Hash;

use crate::quick::QuickMap;

/// Values by keys. The newest are found without a table.
#[derive(Debug)]
pub(super) struct SmallMap<K, V> {
    /// The newest last.
    newest: Vec<(K, V)>,
    /// All other entries.
    older: QuickMap<K, V>,
}

/// The most entries outside of the table.
const NEWEST: usize = 8;

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        Self { newest: Vec::with_capacity(NEWEST), older: QuickMap::default() }
    }
}

impl<K: Eq + Hash, V> SmallMap<K, V> {
    #[inline]
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self.newest.iter().rposition(|(known, _)| known == key) {
            Some(index) => self.newest.get_mut(index).map(|(_, value)| value),
            None if self.older.is_empty() => None,
            None => self.older.get_mut(key),
        }
    }

    /// Sets the value of a key.
    #[inline]
    pub(super) fn insert(&mut self, key: K, value: V) {
        if let Some(known) = self.get_mut(&key) {
            *known = value;
            return;
        }
        if self.newest.len() == NEWEST {
            self.older.extend(Some(self.newest.remove(0)));
        }
        self.newest.push((key, value));
    }

    #[inline]
    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        if let Some((_, value)) = self.newest.pop_if(|(known, _)| known == key) {
            return Some(value);
        }
        match self.newest.iter().rposition(|(known, _)| known == key) {
            Some(index) => Some(self.newest.remove(index).1),
            None if self.older.is_empty() => None,
            None => self.older.remove(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn it_holds_what_a_map_holds() {
        let (mut small, mut map) = (SmallMap::default(), HashMap::new());
        for step in 0..2000_u64 {
            let key = step * step % 31;
            match step % 5 {
                0..=2 => {
                    small.insert(key, step);
                    map.insert(key, step);
                }
                3 => assert_eq!(small.remove(&key), map.remove(&key)),
                _ => assert_eq!(small.get_mut(&key), map.get_mut(&key)),
            }
            for key in 0..31 {
                assert_eq!(small.get_mut(&key), map.get_mut(&key), "step {step}");
            }
        }
    }
}

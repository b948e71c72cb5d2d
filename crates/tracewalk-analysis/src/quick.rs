//! A hash that is fast but not collision-resistant: chosen keys can make a table slow, and do no other harm.
//!
//! ```
//! use tracewalk_analysis::quick::QuickMap;
//!
//! let mut names = QuickMap::default();
//! names.insert(0x100_u32, "main");
//! assert_eq!(names.get(&0x100), Some(&"main"));
//! ```

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// A map by quick hashes, for frequent look-ups.
pub type QuickMap<K, V> = HashMap<K, V, FxBuildHasher>;

/// The places of a list's items, by their hashes, for look-ups in a long list. A map would hold every item once more.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuickIndex(HashTable<u32>);

/// An index follows from its list.
impl PartialEq for QuickIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl QuickIndex {
    /// The place of the item that `is_wanted` accepts, and that `key` gives the hash of.
    #[inline]
    pub(crate) fn find<T>(&self, list: &[T], key: &impl Hash, is_wanted: impl Fn(&T) -> bool) -> Option<u32> {
        let wanted = |place: &u32| list.get(*place as usize).is_some_and(&is_wanted);
        self.0.find(hash(key), wanted).copied()
    }

    /// Notes the items at the end of the list that are not noted yet. `key` gives what an item is found by.
    pub(crate) fn note<T, K: Hash>(&mut self, list: &[T], key: impl Fn(&T) -> K) {
        let of_place = |place: &u32| list.get(*place as usize).map_or(0, |item| hash(&key(item)));
        for place in self.0.len()..list.len() {
            let Ok(place) = u32::try_from(place) else { return };
            self.0.insert_unique(of_place(&place), place, of_place);
        }
    }

    /// Forgets all places, because the list has another order or is empty.
    pub(crate) fn clear(&mut self) {
        self.0 = HashTable::new();
    }
}

/// The quick hash of a key.
#[inline]
pub fn hash(key: &impl Hash) -> u64 {
    FxBuildHasher.hash_one(key)
}

/// Spreads differences over all bits of a word.
#[inline]
pub(crate) const fn mix(value: u64) -> u64 {
    let product = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

#[cfg(test)]
mod tests {
    use super::QuickIndex;

    #[test]
    fn an_index_finds_the_items_of_a_list_in_any_order() {
        let (mut list, mut index) = (Vec::new(), QuickIndex::default());
        for item in 0..1000_u32 {
            assert_eq!(index.find(&list, &item, |known| *known == item), None);
            list.push(item);
            index.note(&list, |item| *item);
            assert_eq!(index.find(&list, &item, |known| *known == item), Some(item));
        }
        list.reverse();
        index.clear();
        index.note(&list, |item| *item);
        assert!((0..1000).all(|item| index.find(&list, &item, |known| *known == item) == Some(999 - item)));
    }
}

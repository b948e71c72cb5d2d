//! A small cache: a later entry takes the place of an earlier one with the same hash.

/// Values that were found recently, by key.
pub(super) struct Recent<K, V, const PLACES: usize> {
    /// Empty before the first entry.
    places: Box<[Option<(K, V)>]>,
}

impl<K, V, const PLACES: usize> Default for Recent<K, V, PLACES> {
    fn default() -> Self {
        Self { places: Box::default() }
    }
}

impl<K: PartialEq, V: Clone, const PLACES: usize> Recent<K, V, PLACES> {
    /// The value of `key`, whose hash is `hash`, if it is still there.
    pub(super) fn get(&self, hash: u64, key: &K) -> Option<V> {
        match self.places.get(Self::place(hash)) {
            Some(Some((known, value))) if known == key => Some(value.clone()),
            _ => None,
        }
    }

    pub(super) fn put(&mut self, hash: u64, key: K, value: V) {
        if self.places.is_empty() {
            self.places = std::iter::repeat_with(|| None).take(PLACES).collect();
        }
        if let Some(place) = self.places.get_mut(Self::place(hash)) {
            *place = Some((key, value));
        }
    }

    /// Addresses of code and names differ most in their low bits, but not in the lowest.
    fn place(hash: u64) -> usize {
        usize::try_from((hash ^ hash >> 13) >> 1).map_or(0, |hash| hash % PLACES)
    }
}

#[cfg(test)]
mod tests {
    use super::Recent;

    #[test]
    fn a_later_entry_takes_the_place_of_an_earlier_one() {
        let mut recent = Recent::<u64, u64, 8>::default();
        assert_eq!(recent.get(6, &6), None);
        for key in 0..100 {
            recent.put(key, key, key * 2);
            assert_eq!(recent.get(key, &key), Some(key * 2));
        }
        let left = (0..100).filter(|key| recent.get(*key, key) == Some(key * 2)).count();
        assert!((1..=8).contains(&left), "{left}");
        assert_eq!(recent.get(99, &98), None);
    }
}
